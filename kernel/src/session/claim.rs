//! Who has the session: nobody, a run, a run that is settling, a compaction that the user asked for, or a
//! navigation.
//! Claiming is atomic (P6), queues take messages only while a run can still deliver them, and what
//! arrives while a run settles is put off until everybody has heard of that (R3, R4). Who changes what
//! is registered is let in where no handler or tool runs: between two turns, or while nobody has the
//! session, and what begins then waits until that is done (`resources.md` §12.4).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::entering::Asked;
use crate::pipeline::PromptError;

/// The state of a session's one place for a run.
#[derive(Debug, Default)]
pub(super) struct Claims {
    place: Mutex<Place>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Place {
    holder: Holder,
    /// Prompts on their way to a run.
    passing: usize,
    /// What arrived while a run settled, in order.
    deferred: VecDeque<Asked>,
    /// The session ends; nobody else gets it.
    ending: bool,
    /// Whoever has the session is compacting the conversation.
    compacting: bool,
    /// Who wants to be let in for a change, or is.
    changers: usize,
    /// Somebody changes what is registered.
    changing: bool,
    /// The run that has the session stands between two turns.
    between_turns: bool,
}

#[derive(Debug, Default)]
enum Holder {
    #[default]
    Nobody,
    Run(CancellationToken),
    /// The token ends the run that may follow, of what was put off.
    Settling(CancellationToken),
    Compaction(CancellationToken),
    Navigation(CancellationToken),
}

/// How the session stands for something that wants to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nobody has it.
    Free,
    /// A run is active.
    Running,
    /// A run has ended and not everybody has heard; what was put off follows.
    Settling,
    /// The user asked for a compaction.
    Compacting,
    /// The session moves to another place of its tree.
    Navigating,
    /// Nobody has it, and what is registered changes; what begins waits for that.
    Changing,
    /// The session ends.
    Closed,
}

impl Standing {
    /// Why no prompt may pass now, if so (stage 2).
    pub(super) fn refusal(self) -> Option<PromptError> {
        match self {
            Self::Compacting => Some(PromptError::Compacting),
            Self::Navigating => Some(PromptError::Navigating),
            Self::Closed => Some(PromptError::Closed),
            Self::Free | Self::Running | Self::Settling | Self::Changing => None,
        }
    }
}

/// The session claimed for one run or compaction; free again when this is dropped.
pub(super) struct Claimed {
    claims: Arc<Claims>,
    pub(super) cancel: CancellationToken,
    released: bool,
}

impl Drop for Claimed {
    /// What was put off goes with a run that nobody waits for any more.
    fn drop(&mut self) {
        if self.released {
            return;
        }
        let _forgotten = {
            let mut place = self.claims.place();
            place.set_free();
            std::mem::take(&mut place.deferred)
        };
        self.claims.changed.notify_waiters();
    }
}

impl Claimed {
    /// The next thing that was put off until the run had settled; with none, the session is free.
    pub(super) fn next_deferred(&mut self) -> Option<Asked> {
        let mut place = self.claims.place();
        let next = place.deferred.pop_front();
        if next.is_none() {
            place.set_free();
            self.released = true;
            drop(place);
            self.claims.changed.notify_waiters();
        }
        next
    }

    /// Another run for what was put off, without giving the session away in between. One that was given
    /// up before it began ends at its start (L29).
    ///
    /// # Errors
    /// When the session ends: nothing new begins then.
    pub(super) fn run_again(&mut self) -> Result<(), PromptError> {
        {
            let mut place = self.claims.place();
            if place.ending {
                return Err(PromptError::Closed);
            }
            self.cancel = match &place.holder {
                Holder::Settling(cancel) => cancel.clone(),
                _ => CancellationToken::new(),
            };
            place.holder = Holder::Run(self.cancel.clone());
        }
        self.claims.changed.notify_waiters();
        Ok(())
    }
}

/// A prompt on its way through the stages: the tree must stay where it is (P7).
#[derive(Debug)]
pub(super) struct Passing(Arc<Claims>);

impl Drop for Passing {
    fn drop(&mut self) {
        let someone_waits = {
            let mut place = self.0.place();
            place.passing -= 1;
            place.changers > 0
        };
        if someone_waits {
            self.0.changed.notify_waiters();
        }
    }
}

/// Somebody who wants to be let in.
struct Waiting<'a>(&'a Arc<Claims>);

impl<'a> Waiting<'a> {
    fn new(claims: &'a Arc<Claims>) -> Self {
        claims.place().changers += 1;
        Self(claims)
    }

    /// The place was found, and is kept.
    fn let_in(self) -> LetIn {
        let claims = Arc::clone(self.0);
        std::mem::forget(self);
        LetIn(claims)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.place().changers -= 1;
        self.0.changed.notify_waiters();
    }
}

/// What is registered may change until this is dropped.
pub(super) struct LetIn(Arc<Claims>);

impl Drop for LetIn {
    fn drop(&mut self) {
        {
            let mut place = self.0.place();
            place.changing = false;
            place.changers -= 1;
        }
        self.0.changed.notify_waiters();
    }
}

/// A run that stands between two turns.
struct BetweenTurns<'a>(&'a Claims);

impl Drop for BetweenTurns<'_> {
    fn drop(&mut self) {
        self.0.place().between_turns = false;
    }
}

impl Claims {
    /// Claims the session for a run.
    ///
    /// # Errors
    /// Who has it instead.
    pub(super) fn claim(self: &Arc<Self>) -> Result<Claimed, Standing> {
        self.claim_as(Holder::Run, |_| true)
    }

    /// Claims the session for a compaction of its own.
    ///
    /// # Errors
    /// Who has it instead.
    pub(super) fn claim_for_compaction(self: &Arc<Self>) -> Result<Claimed, Standing> {
        self.claim_as(Holder::Compaction, |_| true)
    }

    /// Claims the session for moving to another place of its tree; refused also while a prompt is on its
    /// way to a run (P7).
    ///
    /// # Errors
    /// Who has it instead; [`Standing::Free`] means such a prompt.
    pub(super) fn claim_for_navigation(self: &Arc<Self>) -> Result<Claimed, Standing> {
        self.claim_as(Holder::Navigation, |place| place.passing == 0)
    }

    fn claim_as(
        self: &Arc<Self>,
        claimer: fn(CancellationToken) -> Holder,
        may: impl FnOnce(&Place) -> bool,
    ) -> Result<Claimed, Standing> {
        let mut place = self.place();
        match place.standing() {
            Standing::Free if may(&place) => {}
            other => return Err(other),
        }
        let cancel = CancellationToken::new();
        place.holder = claimer(cancel.clone());
        Ok(Claimed {
            claims: Arc::clone(self),
            cancel,
            released: false,
        })
    }

    /// Lets a prompt pass the stages before a run; until the answer is dropped the tree stays where it
    /// is. Waits while what is registered changes.
    ///
    /// # Errors
    /// When prompts are refused now.
    pub(super) async fn pass(self: &Arc<Self>) -> Result<Passing, PromptError> {
        loop {
            {
                let mut place = self.place();
                if place.ending {
                    return Err(PromptError::Closed);
                }
                let standing = place.standing();
                if let Some(refusal) = standing.refusal() {
                    return Err(refusal);
                }
                if standing != Standing::Changing {
                    place.passing += 1;
                    return Ok(Passing(Arc::clone(self)));
                }
            }
            self.changed().await;
        }
    }

    /// Waits for a place where what is registered may change: while nobody has the session and no prompt
    /// is on its way, or between two turns of a run. Until the answer is dropped nothing begins, and the
    /// run stays where it is.
    pub(super) async fn let_in(self: &Arc<Self>) -> LetIn {
        let waiting = Waiting::new(self);
        self.until(|place| {
            let may = place.may_change();
            place.changing |= may;
            may
        })
        .await;
        waiting.let_in()
    }

    /// As [`Claims::let_in`], if that is possible now.
    pub(super) fn let_in_now(self: &Arc<Self>) -> Option<LetIn> {
        let waiting = Waiting::new(self);
        {
            let mut place = self.place();
            if !place.may_change() {
                return None;
            }
            place.changing = true;
        }
        Some(waiting.let_in())
    }

    /// The run that has the session stands between two turns: who waits to change something is let in,
    /// and this returns when everybody is done, or the run was given up.
    pub(super) async fn between_turns(&self, cancel: &CancellationToken) {
        {
            let mut place = self.place();
            if place.changers == 0 {
                return;
            }
            place.between_turns = true;
        }
        let _over = BetweenTurns(self);
        self.changed.notify_waiters();
        tokio::select! {
            () = self.until(|place| place.changers == 0) => {}
            () = cancel.cancelled() => self.changed().await,
        }
    }

    /// Returns when nothing that is registered changes.
    pub(super) async fn changed(&self) {
        self.until(|place| !place.changing).await;
    }

    /// Looks who has the session and acts on it before that can change.
    pub(super) fn look<T>(&self, act: impl FnOnce(Standing) -> T) -> T {
        let place = self.place();
        act(place.standing())
    }

    /// How the session stands.
    pub(super) fn standing(&self) -> Standing {
        self.place().standing()
    }

    /// Puts something off until the run that is settling has settled; gives it back if none is,
    /// or if the session ends with it.
    pub(super) fn defer(&self, asked: Asked) -> Option<Asked> {
        let mut place = self.place();
        if place.ending || !matches!(place.holder, Holder::Settling(_)) {
            return Some(asked);
        }
        place.deferred.push_back(asked);
        None
    }

    /// Does something while a run is active and cannot begin to settle; `None` when none is.
    pub(super) fn while_running<T>(&self, act: impl FnOnce() -> T) -> Option<T> {
        self.look(|standing| (standing == Standing::Running).then(act))
    }

    /// The run begins to settle, unless `may` says that there is still something to do.
    pub(super) fn begin_settling(&self, may: impl FnOnce() -> bool) -> bool {
        let mut place = self.place();
        let settles = may();
        if settles {
            place.holder = Holder::Settling(CancellationToken::new());
        }
        settles
    }

    /// From here on nothing new begins.
    pub(super) fn close(&self) {
        self.place().ending = true;
    }

    /// Asks whatever has the session to stop.
    pub(super) fn cancel(&self) {
        match &self.place().holder {
            Holder::Run(cancel)
            | Holder::Settling(cancel)
            | Holder::Compaction(cancel)
            | Holder::Navigation(cancel) => cancel.cancel(),
            Holder::Nobody => {}
        }
    }

    /// Notes that whoever has the session begins or ends a compaction. One that is given up midway ends
    /// with the claim.
    pub(super) fn set_compacting(&self, compacting: bool) {
        let mut place = self.place();
        place.compacting = compacting && !matches!(place.holder, Holder::Nobody);
    }

    /// Whether the conversation is being compacted.
    pub(super) fn is_compacting(&self) -> bool {
        self.place().compacting
    }

    /// Returns when nobody has the session and nothing that is registered changes.
    pub(super) async fn idle(&self) {
        self.until(|place| matches!(place.holder, Holder::Nobody) && !place.changing)
            .await;
    }

    /// Whether the session ends, or has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.place().ending
    }

    /// Returns when no run is settling.
    pub(super) async fn settled(&self) {
        self.until(|place| !matches!(place.holder, Holder::Settling(_)))
            .await;
    }

    async fn until(&self, mut reached: impl FnMut(&mut Place) -> bool) {
        loop {
            // Made before the look: a change in between wakes it.
            let changed = self.changed.notified();
            if reached(&mut self.place()) {
                return;
            }
            changed.await;
        }
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    fn set_free(&mut self) {
        self.holder = Holder::Nobody;
        self.compacting = false;
    }

    fn standing(&self) -> Standing {
        match self.holder {
            Holder::Run(_) => Standing::Running,
            Holder::Settling(_) => Standing::Settling,
            Holder::Compaction(_) => Standing::Compacting,
            Holder::Navigation(_) => Standing::Navigating,
            Holder::Nobody if self.ending => Standing::Closed,
            Holder::Nobody if self.changing => Standing::Changing,
            Holder::Nobody => Standing::Free,
        }
    }

    /// Whether what is registered may change now.
    fn may_change(&self) -> bool {
        let free = matches!(self.holder, Holder::Nobody) && self.passing == 0;
        !self.changing && (free || self.between_turns)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// What comes of passing when it need not wait.
    fn pass_now(claims: &Arc<Claims>) -> Result<Passing, PromptError> {
        claims.pass().now_or_never().unwrap()
    }

    #[tokio::test]
    async fn a_change_waits_for_the_end_of_a_turn_and_what_begins_waits_for_the_change() {
        // resources §12.4
        let claims = Arc::new(Claims::default());
        let passing = pass_now(&claims).unwrap();
        assert!(claims.let_in_now().is_none());
        drop(passing);
        let run = claims.claim().ok().unwrap();
        let mut change = std::pin::pin!(claims.let_in());
        assert!(change.as_mut().now_or_never().is_none(), "in a turn");
        let cancel = CancellationToken::new();
        let mut boundary = std::pin::pin!(claims.between_turns(&cancel));
        assert!(boundary.as_mut().now_or_never().is_none());
        let changing = change.now_or_never().unwrap();
        assert!(claims.let_in_now().is_none(), "one at a time");
        assert!(boundary.as_mut().now_or_never().is_none());
        drop(changing);
        boundary.now_or_never().unwrap();
        let boundary = claims.between_turns(&cancel);
        boundary.now_or_never().unwrap();
        drop(run);
        let changing = claims.let_in_now().unwrap();
        assert_eq!(claims.claim().err(), Some(Standing::Changing));
        assert!(claims.pass().now_or_never().is_none());
        assert!(claims.idle().now_or_never().is_none());
        drop(changing);
        assert!(pass_now(&claims).is_ok());
    }

    #[tokio::test]
    async fn a_run_that_is_given_up_waits_for_a_change_under_way_and_for_no_other() {
        let claims = Arc::new(Claims::default());
        let _run = claims.claim().ok().unwrap();
        let given_up = CancellationToken::new();
        given_up.cancel();
        let mut change = std::pin::pin!(claims.let_in());
        assert!(change.as_mut().now_or_never().is_none());
        let boundary = claims.between_turns(&given_up);
        boundary.now_or_never().unwrap();
        assert!(change.as_mut().now_or_never().is_none(), "it went on");
        let cancel = CancellationToken::new();
        let mut boundary = std::pin::pin!(claims.between_turns(&cancel));
        assert!(boundary.as_mut().now_or_never().is_none());
        let changing = change.now_or_never().unwrap();
        cancel.cancel();
        assert!(boundary.as_mut().now_or_never().is_none());
        drop(changing);
        boundary.now_or_never().unwrap();
    }

    #[test]
    fn the_session_has_one_holder_at_a_time_and_each_loser_learns_who() {
        // P6
        let claims = Arc::new(Claims::default());
        let run = claims.claim().ok().unwrap();
        assert_eq!(claims.claim().err(), Some(Standing::Running));
        assert_eq!(claims.claim_for_navigation().err(), Some(Standing::Running));
        drop(run);
        let compaction = claims.claim_for_compaction().ok().unwrap();
        assert_eq!(claims.claim().err(), Some(Standing::Compacting));
        assert_eq!(pass_now(&claims).err(), Some(PromptError::Compacting));
        drop(compaction);
        assert_eq!(claims.standing(), Standing::Free);
    }

    #[test]
    fn the_tree_stays_where_it_is_while_a_prompt_is_on_its_way() {
        // P7
        let claims = Arc::new(Claims::default());
        let passing = pass_now(&claims).unwrap();
        assert_eq!(claims.claim_for_navigation().err(), Some(Standing::Free));
        drop(passing);
        let moving = claims.claim_for_navigation().ok().unwrap();
        assert_eq!(pass_now(&claims).err(), Some(PromptError::Navigating));
        drop(moving);
        assert!(pass_now(&claims).is_ok());
    }

    #[test]
    fn nothing_begins_in_a_session_that_ends() {
        let claims = Arc::new(Claims::default());
        claims.close();
        assert_eq!(claims.claim().err(), Some(Standing::Closed));
        assert_eq!(pass_now(&claims).err(), Some(PromptError::Closed));
    }

    #[test]
    fn what_is_given_up_or_ends_while_a_run_settles_reaches_the_run_that_follows() {
        // R51, R54, L29
        let claims = Arc::new(Claims::default());
        let mut run = claims.claim().ok().unwrap();
        assert!(claims.begin_settling(|| true));
        claims.cancel();
        assert_eq!(run.run_again(), Ok(()));
        assert!(run.cancel.is_cancelled());
        assert!(claims.begin_settling(|| true));
        claims.close();
        assert_eq!(run.run_again(), Err(PromptError::Closed));
    }
}
