//! What a run needs of the session it belongs to. The session implements it; a run reads and changes
//! the session through nothing else.

use std::sync::Arc;
use std::time::Duration;

use pliant_sdk::host::{BoxFuture, Services};
use pliant_sdk::message::ThinkingLevel;
use pliant_sdk::provider::StreamOptions;
use pliant_sdk::{Error, Event, Message, Model};

use super::{Assembly, Loadout, RetryPolicy};
use crate::compaction::CompactionSettings;
use crate::models::ModelClient;
use crate::registry::{HandlerFailure, Registry, Snapshot, Source};
use crate::tree::{Entry, EntryBody, SessionTree};

/// The session of a run: a cheap handle, which what goes on beside the run takes along.
pub trait RunHost: PluginHost + TreeHost + QueueHost + ModelHost + Clone + 'static {
    /// Unix milliseconds.
    fn now_ms(&self) -> i64;
}

/// The registry, what its handlers are called with, and who hears of events.
pub trait PluginHost: Send + Sync {
    /// What is registered.
    fn registry(&self) -> &Registry;

    /// Services for a handler of this session.
    fn services(&self, source: &Source) -> Arc<dyn Services>;

    /// Longest time a handler may take.
    fn handler_limit(&self) -> Option<Duration>;

    /// Hands an event to the subscribers.
    fn publish(&self, event: impl Into<Arc<Event>> + Send) -> impl Future<Output = ()> + Send;

    /// Reports a failure of a plugin's code; the session goes on.
    fn report(&self, failure: HandlerFailure);

    /// Publishes what was reported.
    fn publish_reports(&self) -> impl Future<Output = ()> + Send;
}

/// The conversation: what is stored of a run, and what is read back.
pub trait TreeHost: Send + Sync {
    /// Stores a message at the end of the branch.
    ///
    /// # Errors
    /// When it cannot be written; nothing changed then (S12).
    fn store(&self, message: &Arc<Message>) -> Result<(), Error>;

    /// Leaves a stored answer and the results of its calls out of later requests, and answers the
    /// entries that say so, as they are stored (R9).
    ///
    /// # Errors
    /// When it cannot be written; nothing changed then (S12).
    fn omit(&self, message: &Arc<Message>) -> Result<Vec<serde_json::Value>, Error>;

    /// Looks at the session's tree.
    fn look<T>(&self, look: impl FnOnce(&SessionTree) -> T) -> T;

    /// Changes the session's tree, in one step for everybody else.
    fn change<T>(&self, change: impl FnOnce(&mut SessionTree) -> T) -> T;

    /// Stores an entry at the end of the branch.
    ///
    /// # Errors
    /// When it cannot be written; nothing changed then (S12).
    fn append(&self, body: EntryBody) -> Result<Arc<Entry>, Error>;

    /// Whether the conversation was compacted because a request did not fit, and nothing good came
    /// since (R22, R23).
    fn has_recovered(&self) -> bool;

    /// Notes that, and answers what was noted before.
    fn note_recovery(&self, recovered: bool) -> bool;

    /// What was stored so far has to reach the disk; nobody waits for it.
    fn run_boundary(&self);

    /// The projection of the branch (S35).
    fn context(&self) -> Vec<Arc<Message>>;

    /// Works on the projection together with what is kept of the requests made from it.
    fn assemble<T>(&self, work: impl FnOnce(&[Arc<Message>], &mut Assembly) -> T) -> T;

    /// Name of the conversation at providers.
    fn conversation(&self) -> String;
}

/// Messages that wait for a run.
pub trait QueueHost: Send + Sync {
    /// One batch of steering messages.
    fn take_steering(&self) -> Vec<Message>;

    /// One batch of follow-up messages.
    fn take_follow_up(&self) -> Vec<Message>;

    /// The messages that plugins have for this run's start; nobody gets them again.
    fn take_next_turn(&self) -> Vec<Message>;

    /// Returns when what plugins sent in the user's name is in the queues, or refused.
    fn arrived(&self) -> BoxFuture<'_, ()>;

    /// A user message begins: if it was queued, it leaves the list it is shown in, and that is told
    /// (P32).
    fn delivered(&self, text: String) -> BoxFuture<'_, ()>;

    /// Stores and announces what was held so that it would not stand between a call and its results.
    ///
    /// # Errors
    /// When it cannot be written; it is then held on.
    fn flush_held(&self) -> BoxFuture<'_, Result<(), Error>>;

    /// The run is over: from here on the session is settling and takes nothing into its queues.
    /// `false` when something is still queued and the run was not ended by force.
    fn begin_settling(&self, force: bool) -> bool;
}

/// The model, and what goes with it.
pub trait ModelHost: Send + Sync {
    /// Asks models.
    fn client(&self) -> &ModelClient;

    /// Model and level in force.
    fn selection(&self) -> Selection;

    /// Options of a request that the settings decide.
    fn stream_options(&self) -> StreamOptions;

    /// Images are kept from models, by the user's wish (M17).
    fn images_blocked(&self) -> bool;

    /// Whether and how failed answers are asked for again.
    fn retry_policy(&self) -> RetryPolicy;

    /// How the conversation of this model is compacted.
    ///
    /// # Errors
    /// When the settings are wrong.
    fn compaction_settings(&self, model: &Model) -> Result<CompactionSettings, Error>;

    /// Room that a request for the summary of a branch leaves in the model's window, if the settings
    /// say so.
    fn branch_summary_reserve(&self) -> Option<u64>;

    /// The executable tools and the prompt sections in force, from a snapshot of the registry.
    fn loadout(&self, snapshot: &Arc<Snapshot>) -> Arc<Loadout>;
}

/// Model and level of a request.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The model.
    pub model: Model,
    /// The level, clamped to the model.
    pub level: ThinkingLevel,
}
