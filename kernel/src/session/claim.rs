//! Who has the session: nobody, a run, a run that is settling, or a compaction or navigation that the
//! user asked for. Claiming is atomic (P6), queues take messages only while a run can still deliver them, and what
//! arrives while a run settles waits.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::pipeline::PromptError;

/// The state of a session's one place for a run.
#[derive(Debug, Default)]
pub(super) struct Claims {
    holder: Mutex<Holder>,
    changed: Notify,
    /// Prompts on their way to a run, which will find the session where they have seen it (P7).
    preparing: AtomicUsize,
}

#[derive(Debug, Default)]
enum Holder {
    #[default]
    Nobody,
    Run(CancellationToken),
    Settling,
    Compaction(CancellationToken),
    Navigation(CancellationToken),
}

/// A prompt that may be on its way to a run, until this is dropped.
pub(super) struct Preparing {
    claims: Arc<Claims>,
    begun: AtomicBool,
}

impl Preparing {
    /// It is on its way: until it has its run, nobody moves the session in its tree (P7).
    pub(super) fn begin(&self) {
        if !self.begun.swap(true, Ordering::SeqCst) {
            self.claims.preparing.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Preparing {
    fn drop(&mut self) {
        if *self.begun.get_mut() {
            self.claims.preparing.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// The session claimed for one run, compaction or navigation; free again when this is dropped.
pub(super) struct Claimed {
    claims: Arc<Claims>,
    pub(super) cancel: CancellationToken,
}

impl Drop for Claimed {
    fn drop(&mut self) {
        *self.claims.holder() = Holder::Nobody;
        self.claims.changed.notify_waiters();
    }
}

impl Claims {
    /// Claims the session for a run that `cancel` can end; `None` while another one has it.
    pub(super) fn claim(self: &Arc<Self>, cancel: CancellationToken) -> Option<Claimed> {
        self.claim_as(Holder::Run(cancel.clone()), cancel)
    }

    /// Claims the session for a compaction of its own.
    pub(super) fn claim_for_compaction(self: &Arc<Self>) -> Option<Claimed> {
        let cancel = CancellationToken::new();
        self.claim_as(Holder::Compaction(cancel.clone()), cancel)
    }

    /// Claims the session for going to another place; `None` also while a prompt is on its way (P7).
    pub(super) fn claim_for_navigation(
        self: &Arc<Self>,
        cancel: CancellationToken,
    ) -> Option<Claimed> {
        if self.preparing.load(Ordering::SeqCst) > 0 {
            return None;
        }
        self.claim_as(Holder::Navigation(cancel.clone()), cancel)
    }

    /// A prompt arrives.
    pub(super) fn preparing(self: &Arc<Self>) -> Preparing {
        Preparing {
            claims: Arc::clone(self),
            begun: AtomicBool::new(false),
        }
    }

    fn claim_as(self: &Arc<Self>, claimer: Holder, cancel: CancellationToken) -> Option<Claimed> {
        let mut holder = self.holder();
        if !matches!(*holder, Holder::Nobody) {
            return None;
        }
        *holder = claimer;
        Some(Claimed {
            claims: Arc::clone(self),
            cancel,
        })
    }

    /// Whether a run is active; one that is settling no longer is (R3).
    pub(super) fn is_running(&self) -> bool {
        matches!(*self.holder(), Holder::Run(_))
    }

    /// Whether nobody has the session, or a run that is settling (R52).
    pub(super) fn is_idle(&self) -> bool {
        matches!(*self.holder(), Holder::Nobody | Holder::Settling)
    }

    /// Why a prompt is refused, if what has the session takes none.
    pub(super) fn refusal(&self) -> Option<PromptError> {
        match &*self.holder() {
            Holder::Compaction(_) => Some(PromptError::Compacting),
            Holder::Navigation(_) => Some(PromptError::Navigating),
            Holder::Nobody | Holder::Run(_) | Holder::Settling => None,
        }
    }

    /// Does something while a run is active and cannot begin to settle; `None` when none is.
    pub(super) fn while_running<T>(&self, act: impl FnOnce() -> T) -> Option<T> {
        let holder = self.holder();
        matches!(*holder, Holder::Run(_)).then(act)
    }

    /// The run begins to settle, unless `may` says that there is still something to do.
    pub(super) fn begin_settling(&self, may: impl FnOnce() -> bool) -> bool {
        let mut holder = self.holder();
        let settles = may();
        if settles {
            *holder = Holder::Settling;
        }
        settles
    }

    /// Asks what has the session to stop.
    pub(super) fn cancel(&self) {
        use Holder::{Compaction, Navigation, Run};
        if let Run(cancel) | Compaction(cancel) | Navigation(cancel) = &*self.holder() {
            cancel.cancel();
        }
    }

    /// Returns when nobody has the session.
    pub(super) async fn idle(&self) {
        self.until(|holder| matches!(holder, Holder::Nobody)).await;
    }

    /// Returns when no run is settling.
    pub(super) async fn settled(&self) {
        self.until(|holder| !matches!(holder, Holder::Settling))
            .await;
    }

    async fn until(&self, reached: impl Fn(&Holder) -> bool) {
        loop {
            // Made before the look: a change in between wakes it.
            let changed = self.changed.notified();
            if reached(&self.holder()) {
                return;
            }
            changed.await;
        }
    }

    fn holder(&self) -> MutexGuard<'_, Holder> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
