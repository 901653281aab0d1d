//! What exists now, and who brought it.
//!
//! Sources publish generations; every change makes a new immutable [`Snapshot`] and swaps it in. A
//! stage takes what it needs from the snapshot of the moment, a turn pins the one whose tools it
//! declared, and a call holds its generation alive. Precedence is decided here and nowhere else
//! (`extensions.md` §4.12); losers stay visible as diagnostics.

mod ask;
mod dispatch;
mod flag;
mod generation;
mod grown;
mod hook;
mod lifetime;
mod patience;
mod placeholder;
mod quarantine;
mod snapshot;
mod stopwatch;
#[cfg(test)]
pub(crate) mod testing;
mod vitals;
mod watch;

use std::sync::{Arc, Mutex, PoisonError, Weak};

use arc_swap::ArcSwap;

pub use ask::Asked;
pub use dispatch::{Callers, Dispatcher, HandlerFailure, Lender, call_ctx};
pub use flag::FlagValues;
pub use generation::{Contribution, Generation, InProcess, Kind, MakeServices, Rank, Source};
pub use hook::{BUS_PREFIX, HandlerSpec, HookPoint};
pub(crate) use lifetime::until;
pub use patience::{Grace, Patience};
pub use placeholder::{Placeholder, Promise};
pub use snapshot::{Registered, Served, Snapshot};
pub use vitals::Vitals;
pub use watch::Watcher;

use quarantine::Quarantine;
use watch::Watchers;

/// The registry: a swap of immutable snapshots.
pub struct Registry {
    current: ArcSwap<Snapshot>,
    writing: Mutex<()>,
    watchers: Arc<Watchers>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry")
            .field("snapshot", &self.current.load().number())
            .finish()
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            current: ArcSwap::from_pointee(Snapshot::default()),
            writing: Mutex::new(()),
            watchers: Arc::default(),
        }
    }
}

impl Registry {
    /// The snapshot of the moment.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Whether anybody has a handler of this event at the moment.
    #[must_use]
    pub fn hears(&self, event: &str) -> bool {
        !self.current.load().handlers(event).is_empty()
    }

    /// Publishes a generation in place of an earlier one of the same source name, or as a new source
    /// at the place its rank gives it.
    pub fn publish(&self, generation: Arc<dyn Generation>) {
        self.publish_all(vec![generation]);
    }

    /// Publishes several generations as one change: nobody sees some without the others.
    pub fn publish_all(&self, generations: Vec<Arc<dyn Generation>>) {
        self.change(|sources| {
            generations
                .into_iter()
                .for_each(|new| place(sources, self.watched(new)));
        });
    }

    /// Publishes generations and withdraws the other sources of these names, as one change.
    pub fn exchange(&self, withdrawn: &[String], generations: Vec<Arc<dyn Generation>>) {
        self.change(|sources| {
            let stays = |name: &String| generations.iter().any(|new| new.source().name == *name);
            let goes = |name: &String| withdrawn.contains(name) && !stays(name);
            sources.retain(|old| !goes(&old.source().name));
            generations
                .into_iter()
                .for_each(|new| place(sources, self.watched(new)));
        });
    }

    /// Takes in what sources have registered since they were loaded. Nothing of what was there before
    /// begins anew.
    pub fn look_again(&self) {
        self.change(|_| {});
    }

    /// Withdraws a source.
    pub fn withdraw(&self, name: &str) {
        self.change(|sources| sources.retain(|generation| generation.source().name != name));
    }

    /// Tells `watcher` of every change and of sources that stop working, for as long as there is one.
    pub fn watch(&self, watcher: Weak<dyn Watcher>) {
        self.watchers.add(watcher);
    }

    /// Every generation comes in here, so every one is watched.
    fn watched(&self, generation: Arc<dyn Generation>) -> Arc<dyn Generation> {
        Quarantine::around(generation, &self.watchers)
    }

    fn change(&self, edit: impl FnOnce(&mut Vec<Served>)) {
        let replaced = self.replace(edit);
        // Outside the lock: this may end a generation, and its code may change the registry then.
        drop(replaced);
        self.watchers.changed();
    }

    fn replace(&self, edit: impl FnOnce(&mut Vec<Served>)) -> Vec<Served> {
        let _one_writer = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.current.load_full();
        let before = old.sources().to_vec();
        let mut sources = before.clone();
        edit(&mut sources);
        let next = Snapshot::build(old.number() + 1, sources);
        next.keep_strikes(&old);
        let stays = |old: &Served| next.sources().iter().any(|new| new.is(old));
        let over = before.iter().filter(|old| !stays(old));
        let over: Vec<Served> = over.cloned().collect();
        self.current.store(Arc::new(next));
        over.iter().for_each(Served::end);
        before
    }
}

/// Puts a generation where an earlier one of its source stood, or where its rank belongs.
fn place(sources: &mut Vec<Served>, generation: Arc<dyn Generation>) {
    let Source { name, rank, .. } = generation.source();
    let old = sources.iter().position(|old| old.source().name == *name);
    match old {
        Some(index) if sources[index].source().rank == *rank => {
            sources[index] = Served::new(generation);
        }
        _ => {
            if let Some(index) = old {
                sources.remove(index);
            }
            let at = sources.partition_point(|other| other.source().rank <= *rank);
            sources.insert(at, Served::new(generation));
        }
    }
}
