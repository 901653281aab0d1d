//! From an accepted prompt to settled: prepare the messages, run the loop, decide what comes after,
//! settle. The run reads and changes a session through [`RunHost`] alone.

mod driver;
mod prepare;

mod after;
mod compact;
mod retry;
mod settle;
mod summary;

mod convert;
mod hooks;
mod loadout;
mod repair;

use std::sync::Arc;
use std::time::Duration;

use pliant_sdk::host::{BoxFuture, Services};
use pliant_sdk::message::ThinkingLevel;
use pliant_sdk::provider::StreamOptions;
use pliant_sdk::{Error, Event, Message, Model};
use tokio_util::sync::CancellationToken;

use crate::agent;
use crate::compaction::CompactionSettings;
use crate::models::ModelClient;
use crate::registry::{HandlerFailure, Registry, Snapshot, Source};
use crate::tree::{Compaction, EntryId, SessionTree};

pub use compact::compact;
pub use loadout::Loadout;
pub use repair::{Transcript, repair_notice};
pub use retry::{RetryPolicy, is_overflow, is_retryable};

/// What a run needs of the session it belongs to.
pub trait RunHost: Send + Sync {
    /// What is registered.
    fn registry(&self) -> &Registry;

    /// Asks models.
    fn client(&self) -> &ModelClient;

    /// Model and level in force.
    fn selection(&self) -> Selection;

    /// Options of a request that the settings decide.
    fn stream_options(&self) -> StreamOptions;

    /// The executable tools and the prompt sections in force, from a snapshot of the registry.
    fn loadout(&self, snapshot: &Arc<Snapshot>) -> Arc<Loadout>;

    /// Services bound to this session.
    fn services(&self, source: &Source) -> Arc<dyn Services>;

    /// Longest time a handler may take.
    fn handler_limit(&self) -> Option<Duration>;

    /// Hands an event to the subscribers.
    fn publish(&self, event: Event) -> BoxFuture<'_, ()>;

    /// Reports a failure of a plugin's code; the session goes on.
    fn report(&self, failure: HandlerFailure);

    /// Publishes what was reported.
    fn publish_reports(&self) -> BoxFuture<'_, ()>;

    /// Stores a message at the end of the branch.
    ///
    /// # Errors
    /// When it cannot be written; nothing changed then (S12).
    fn store(&self, message: &Arc<Message>) -> Result<(), Error>;

    /// Whether and how failed answers are asked for again.
    fn retry_policy(&self) -> RetryPolicy;

    /// Leaves a stored message out of later requests, and answers the entries that say so, as they
    /// are stored (R9).
    ///
    /// # Errors
    /// When it cannot be written; nothing changed then (S12).
    fn omit(&self, message: &Arc<Message>) -> Result<Vec<serde_json::Value>, Error>;

    /// How the conversation of this model is compacted.
    ///
    /// # Errors
    /// When the settings are wrong.
    fn compaction_settings(&self, model: &Model) -> Result<CompactionSettings, Error>;

    /// Looks at the session's tree.
    fn look<T>(&self, look: impl FnOnce(&SessionTree) -> T) -> T;

    /// Stores a compaction at the end of the branch and answers its id.
    ///
    /// # Errors
    /// When it cannot be written; nothing changed then (S12).
    fn append_compaction(&self, compaction: Compaction) -> Result<EntryId, Error>;

    /// What was stored so far has to reach the disk; nobody waits for it.
    fn run_boundary(&self);

    /// The projection of the branch (S35).
    fn context(&self) -> Vec<Arc<Message>>;

    /// The projection as the model is sent it (`kernel.md` §1.5).
    fn transcript(&self, model: &Model) -> Vec<Arc<Message>>;

    /// One batch of steering messages.
    fn take_steering(&self) -> Vec<Message>;

    /// One batch of follow-up messages.
    fn take_follow_up(&self) -> Vec<Message>;

    /// A user message begins; answers the queues as shown if it was in one (P32).
    fn delivered(&self, text: &str) -> Option<(Vec<String>, Vec<String>)>;

    /// The run is over: from here on the session is settling and takes nothing into its queues.
    /// `false` when something is still queued and the run was not ended by force.
    fn begin_settling(&self, force: bool) -> bool;

    /// Name of the conversation at providers.
    fn conversation(&self) -> String;

    /// Unix milliseconds.
    fn now_ms(&self) -> i64;
}

/// Model and level of a request.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The model.
    pub model: Model,
    /// The level, clamped to the model.
    pub level: ThinkingLevel,
}

/// How a session run ended.
#[derive(Debug, Default)]
pub struct RunEnd {
    /// The last answer.
    pub last: Option<Arc<Message>>,
    /// Set when a message could not be stored.
    pub failure: Option<Error>,
}

/// Runs a prompt until it has settled (`kernel.md` §6.1). `started` is called once, after
/// preparation and before the first request (P2).
pub async fn run<H: RunHost>(
    host: &H,
    prompt: Message,
    cancel: &CancellationToken,
    started: impl FnOnce() + Send,
) -> RunEnd {
    let driver = driver::RunDriver::new(host, cancel);
    after::before_prompt(&driver).await;
    let mut prompts = prepare::messages(host, &driver.prompt_state(), prompt);
    started();
    let mut end = RunEnd::default();
    loop {
        let outcome = agent::run(&driver, prompts, cancel).await;
        prompts = Vec::new();
        if after::goes_on(&driver, outcome, &mut end).await {
            continue;
        }
        if host.begin_settling(end.failure.is_some() || cancel.is_cancelled()) {
            break;
        }
        prompts = prepare::queued(host);
    }
    settle::settle(&driver, cancel.is_cancelled()).await;
    end
}
