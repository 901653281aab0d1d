//! From an accepted prompt to settled: prepare the messages, run the loop, decide what comes after,
//! settle. The run reads and changes a session through [`RunHost`] alone.

mod convert;
mod driver;
mod hooks;
mod prepare;
mod settle;
mod toolbox;

use std::sync::Arc;

use pliant_sdk::host::{BoxFuture, Services};
use pliant_sdk::message::ThinkingLevel;
use pliant_sdk::{Error, Event, Message, Model};
use tokio_util::sync::CancellationToken;

use crate::agent;
use crate::models::ModelClient;
use crate::prompt::PromptOptions;
use crate::registry::{HandlerFailure, Registry, Snapshot, Source};

pub(crate) use toolbox::MakeServices;
pub use toolbox::Toolbox;

/// What a run needs of the session it belongs to.
pub trait RunHost: Send + Sync {
    /// What is registered.
    fn registry(&self) -> &Registry;

    /// Asks models.
    fn client(&self) -> &ModelClient;

    /// Model and level in force.
    fn selection(&self) -> Selection;

    /// The executable tools, from a snapshot of the registry.
    fn toolbox(&self, snapshot: &Arc<Snapshot>) -> Arc<Toolbox>;

    /// What the system prompt is built from.
    fn prompt_options(&self) -> PromptOptions;

    /// Services bound to this session.
    fn services(&self, source: &Source) -> Arc<dyn Services>;

    /// Hands an event to the subscribers.
    fn publish(&self, event: Event) -> BoxFuture<'_, ()>;

    /// Reports a failure of a plugin's code; the session goes on.
    fn report(&self, failure: HandlerFailure);

    /// Failures reported since the last call.
    fn take_reports(&self) -> Vec<HandlerFailure>;

    /// Stores a message at the end of the branch.
    ///
    /// # Errors
    /// When it cannot be written; nothing changed then (S12).
    fn store(&self, message: &Arc<Message>) -> Result<(), Error>;

    /// The projection of the branch: what a model sees (S35).
    fn context(&self) -> Vec<Arc<Message>>;

    /// One batch of steering messages.
    fn take_steering(&self) -> Vec<Message>;

    /// One batch of follow-up messages.
    fn take_follow_up(&self) -> Vec<Message>;

    /// Whether messages wait.
    fn has_queued(&self) -> bool;

    /// A user message begins; answers the queues as shown if it was in one (P32).
    fn delivered(&self, text: &str) -> Option<(Vec<String>, Vec<String>)>;

    /// The run is over: from here on the session is idle, and what comes next may start (R3).
    fn release(&self);

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
    let driver = driver::RunDriver::new(host);
    let prompts = prepare::messages(host, &driver.prompt_state(), prompt);
    started();
    let mut end = RunEnd::default();
    let mut prompts = Some(prompts);
    loop {
        let outcome = agent::run(&driver, prompts.take().unwrap_or_default(), cancel).await;
        end.last = outcome
            .messages
            .iter()
            .rev()
            .find(|m| m.as_assistant().is_some())
            .cloned()
            .or(end.last);
        driver.low_level_end(outcome.messages).await;
        end.failure = outcome.failure;
        // Only handlers of `agent_end` can have queued something: the loop drains both queues.
        if end.failure.is_some() || cancel.is_cancelled() || !host.has_queued() {
            break;
        }
    }
    settle::settle(host, &driver, cancel.is_cancelled()).await;
    end
}
