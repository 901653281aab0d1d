//! What a run needs of the session it belongs to. The session implements it; a run reads and changes
//! the session through nothing else.

use std::sync::Arc;

use pliant_sdk::host::BoxFuture;
use pliant_sdk::loadout::LoadoutChanges;
use pliant_sdk::message::ThinkingLevel;
use pliant_sdk::provider::StreamOptions;
use pliant_sdk::tool::ExecutionMode;
use pliant_sdk::{Error, Event, Message, Model};
use tokio_util::sync::CancellationToken;

use super::{Assembly, Loadout, RetryPolicy};
use crate::compaction::CompactionSettings;
use crate::models::ModelClient;
use crate::prompt::PromptEdits;
use crate::registry::{Lender, Patience, Registry, Snapshot};
use crate::tree::{Entry, EntryBody, SessionTree};

/// The session of a run: a cheap handle, which what goes on beside the run takes along.
pub trait RunHost:
    PluginHost + TreeHost + QueueHost + ModelHost + ToolHost + Clone + 'static
{
    /// Unix milliseconds.
    fn now_ms(&self) -> i64;
}

/// The registry, what its handlers are called with, and who hears of events.
pub trait PluginHost: Lender {
    /// What is registered.
    fn registry(&self) -> &Registry;

    /// How long a handler may take, if not ended before.
    fn patience(&self, cancel: &CancellationToken) -> Patience;

    /// The run stands between two turns: who waits to change what is registered may do it now
    /// (`resources.md` §12.4).
    fn between_turns(&self, cancel: &CancellationToken) -> impl Future<Output = ()> + Send;

    /// Requests that handlers of boundaries may cause in one session run.
    fn continuation_limit(&self) -> u64;

    /// Hands an event to the subscribers.
    fn publish(&self, event: impl Into<Arc<Event>> + Send) -> impl Future<Output = ()> + Send;

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

    /// Stores what the user's commands printed while the run was active (R45).
    ///
    /// # Errors
    /// When it cannot be written; what was not stays held.
    fn flush_bash(&self) -> Result<(), Error>;

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

    /// Whether anything is queued.
    fn has_queued(&self) -> bool;

    /// What enters before the next request, as far as it is known now: what is held until the turn
    /// ends, and what the next poll would take (L12).
    fn pending(&self) -> Vec<Message>;

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

    /// Looks the model up again if the registry has changed (G15), and notes on the branch what is
    /// selected, where the branch implies something else (V8).
    ///
    /// # Errors
    /// When it cannot be written.
    fn record_selection(&self) -> BoxFuture<'_, Result<(), Error>>;

    /// The model of that name, `provider/id`.
    fn find_model(&self, reference: String) -> BoxFuture<'_, Option<Model>>;

    /// Whether requests to the provider can be paid for.
    fn usable(&self, provider: &str) -> bool;

    /// Options of a request that the settings decide.
    fn stream_options(&self) -> StreamOptions;

    /// Images are kept from models, by the user's wish (M17).
    fn images_blocked(&self) -> bool;

    /// Whether and how failed answers are asked for again.
    fn retry_policy(&self) -> RetryPolicy;

    /// A token by which the user ends the wait that begins now.
    fn begin_retry_wait(&self) -> CancellationToken;

    /// How the conversation of this model is compacted.
    ///
    /// # Errors
    /// When the settings are wrong.
    fn compaction_settings(&self, model: &Model) -> Result<CompactionSettings, Error>;

    /// Room that a request for the summary of a branch leaves in the model's window, if the settings
    /// say so.
    fn branch_summary_reserve(&self) -> Option<u64>;
}

/// The tools.
pub trait ToolHost: Send + Sync {
    /// How calls are run unless a tool says otherwise (T1).
    fn execution_mode(&self) -> ExecutionMode;

    /// The executable tools and the prompt sections in force, from a snapshot of the registry.
    fn loadout(&self, snapshot: &Arc<Snapshot>) -> Arc<Loadout>;

    /// Notes what handlers have made of the prompt of the run so far; the default when it has ended.
    fn note_prompt(&self, edits: PromptEdits);

    /// Makes these tools the active ones; names of none are passed by (T23).
    fn select_tools(&self, names: &[String]);

    /// Tools want the model to be told otherwise; passed by when other tools are in force by now.
    fn change_loadout(&self, loadout: &Arc<Loadout>, changes: LoadoutChanges);
}

/// Model and level of a request.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The model.
    pub model: Model,
    /// The level, clamped to the model.
    pub level: ThinkingLevel,
}
