//! Who has the session: nobody, a run, a run that is settling, a compaction that the user asked for, or a
//! navigation.
//! Claiming is atomic (P6), queues take messages only while a run can still deliver them, and what
//! arrives while a run settles is put off until everybody has heard of that (R3, R4).

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
            Self::Free | Self::Running | Self::Settling => None,
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
        self.0.place().passing -= 1;
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
    /// is.
    ///
    /// # Errors
    /// When prompts are refused now.
    pub(super) fn pass(self: &Arc<Self>) -> Result<Passing, PromptError> {
        let mut place = self.place();
        if place.ending {
            return Err(PromptError::Closed);
        }
        if let Some(refusal) = place.standing().refusal() {
            return Err(refusal);
        }
        place.passing += 1;
        Ok(Passing(Arc::clone(self)))
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

    /// Returns when nobody has the session.
    pub(super) async fn idle(&self) {
        self.until(|holder| matches!(holder, Holder::Nobody)).await;
    }

    /// Whether the session ends, or has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.place().ending
    }

    /// Returns when no run is settling.
    pub(super) async fn settled(&self) {
        self.until(|holder| !matches!(holder, Holder::Settling(_)))
            .await;
    }

    async fn until(&self, reached: impl Fn(&Holder) -> bool) {
        loop {
            // Made before the look: a change in between wakes it.
            let changed = self.changed.notified();
            if reached(&self.place().holder) {
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
            Holder::Nobody => Standing::Free,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(claims.pass().err(), Some(PromptError::Compacting));
        drop(compaction);
        assert_eq!(claims.standing(), Standing::Free);
    }

    #[test]
    fn the_tree_stays_where_it_is_while_a_prompt_is_on_its_way() {
        // P7
        let claims = Arc::new(Claims::default());
        let passing = claims.pass().unwrap();
        assert_eq!(claims.claim_for_navigation().err(), Some(Standing::Free));
        drop(passing);
        let moving = claims.claim_for_navigation().ok().unwrap();
        assert_eq!(claims.pass().err(), Some(PromptError::Navigating));
        drop(moving);
        assert!(claims.pass().is_ok());
    }

    #[test]
    fn nothing_begins_in_a_session_that_ends() {
        let claims = Arc::new(Claims::default());
        claims.close();
        assert_eq!(claims.claim().err(), Some(Standing::Closed));
        assert_eq!(claims.pass().err(), Some(PromptError::Closed));
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
