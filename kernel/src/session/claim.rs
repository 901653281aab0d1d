//! Who has the session: nobody, a run, a run that is settling, or a compaction that the user asked for.
//! Claiming is atomic (P6), queues take messages only while a run can still deliver them, and what
//! arrives while a run settles waits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The state of a session's one place for a run.
#[derive(Debug, Default)]
pub(super) struct Claims {
    holder: Mutex<Holder>,
    changed: Notify,
}

#[derive(Debug, Default)]
enum Holder {
    #[default]
    Nobody,
    Run(CancellationToken),
    Settling,
    Compaction(CancellationToken),
}

/// The session claimed for one run or compaction; free again when this is dropped.
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

    /// Whether the user asked for a compaction that is not done.
    pub(super) fn is_compacting(&self) -> bool {
        matches!(*self.holder(), Holder::Compaction(_))
    }

    /// Does something while a run is active and cannot begin to settle; `None` when none is.
    pub(super) fn while_running<T>(&self, act: impl FnOnce() -> T) -> Option<T> {
        let holder = self.holder();
        matches!(*holder, Holder::Run(_)).then(act)
    }

    /// Does something that depends on whether a run or a compaction works on the conversation; none
    /// begins or ends meanwhile.
    pub(super) fn by_activity<T>(&self, act: impl FnOnce(bool) -> T) -> T {
        let holder = self.holder();
        act(matches!(*holder, Holder::Run(_) | Holder::Compaction(_)))
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

    /// Asks an active run or compaction to stop.
    pub(super) fn cancel(&self) {
        if let Holder::Run(cancel) | Holder::Compaction(cancel) = &*self.holder() {
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
