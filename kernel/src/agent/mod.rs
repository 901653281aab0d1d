//! The agent loop itself: turns of one answer and its tool calls, until there is nothing to answer.
//!
//! Nothing here has heard of sessions, files, plugins or wires. What the loop needs to decide or to
//! reach comes in through [`Driver`]; what it says goes out as [`Event`]s. State that outlives a run
//! (transcript, queues, model) is the driver's.

mod arguments;
mod channel;
mod loadout;
mod respond;
mod tools;
mod turns;

use std::future::Future;
use std::sync::Arc;

use pliant_sdk::host::BoxFuture;
use pliant_sdk::message::{AssistantMessage, Message, ThinkingLevel};
use pliant_sdk::tool::{ExecutionMode, ToolResult, ToolSpec};
use pliant_sdk::{Error, Event};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

pub use arguments::{ArgumentSchema, coerce};
pub use channel::{EventReceiver, EventSender, Sent, event_channel};
pub use loadout::declare_tools;
pub use tools::{Call, NestedCall, NestedCalls, NestedEnd, Reach, Running, Updates};
pub use turns::{RunOutcome, run};

/// What the loop asks of its surroundings. One driver serves one run at a time.
pub trait Driver: Send + Sync {
    /// Announces an event that is not the end of a message. Returns when every listener has seen it.
    fn emit(&self, event: Event) -> impl Future<Output = ()> + Send;

    /// A message is complete: handlers may replace it, it joins the transcript and is announced.
    ///
    /// # Errors
    /// When it cannot be stored; the run ends then, because a later entry must not follow a hole.
    fn message_end(
        &self,
        message: Message,
    ) -> impl Future<Output = Result<Arc<Message>, Error>> + Send;

    /// Messages that enter before the next request, one batch by the queue's mode (L8).
    fn poll_steering(&self) -> impl Future<Output = Vec<Message>> + Send;

    /// Messages that enter when the run would stop, one batch by the queue's mode.
    fn poll_follow_up(&self) -> impl Future<Output = Vec<Message>> + Send;

    /// Between two turns: may compact, and answers messages that enter before pending ones (L19).
    fn prepare_next_turn(&self) -> impl Future<Output = Result<Vec<Message>, Error>> + Send;

    /// Declares tool changes in a batch about to enter the transcript (L24).
    fn declare(&self, batch: Vec<Message>) -> impl Future<Output = Vec<Message>> + Send;

    /// An empty answer that names the model and the time, for answers that fail before they stream.
    fn template(&self) -> AssistantMessage;

    /// Sends the transcript to the model and answers the stream of its answer (L20). A failure
    /// before the stream becomes an answer with stop reason `error`.
    fn request(
        &self,
        cancel: &CancellationToken,
    ) -> impl Future<Output = Result<Answer, Error>> + Send;

    /// The tool of that name, if it is within reach of its caller.
    fn tool(&self, name: &str, reach: Reach) -> Option<Arc<dyn ToolRunner>>;

    /// Names of the tools within reach, for the message about an unknown one.
    fn tool_names(&self, reach: Reach) -> Vec<String>;

    /// How calls are run unless a tool says otherwise (T1).
    fn execution_mode(&self) -> ExecutionMode;

    /// The gate before a call runs; may change the arguments.
    ///
    /// # Errors
    /// A failing gate blocks the call with its text (T2).
    fn before_tool_call(
        &self,
        call: &Call,
        arguments: Map<String, Value>,
    ) -> impl Future<Output = Result<Verdict, Error>> + Send;

    /// After a call has run; may change the result (T4).
    fn after_tool_call(
        &self,
        call: &Call,
        arguments: &Map<String, Value>,
        result: ToolResult,
    ) -> impl Future<Output = ToolResult> + Send;

    /// A turn is complete, results stored.
    fn finish_turn(
        &self,
        message: &Arc<Message>,
        results: &[Arc<Message>],
    ) -> impl Future<Output = NextStep> + Send;

    /// Unix milliseconds.
    fn now_ms(&self) -> i64;

    /// Level stamped on every answer (M6).
    fn thinking_level(&self) -> ThinkingLevel;
}

/// What a boundary says about the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NextStep {
    /// By what is pending.
    #[default]
    Natural,
    /// At least one more request.
    Continue,
    /// Stop without looking at the queues.
    End,
}

/// A streamed answer.
pub struct Answer {
    /// Names and time of the answer, for the partial message.
    pub template: AssistantMessage,
    /// Events in order; closed when the provider is done.
    pub events: EventReceiver,
    /// The final message. Dropping it cancels the request.
    pub done: BoxFuture<'static, Result<AssistantMessage, Error>>,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer")
            .field("model", &self.template.model)
            .finish_non_exhaustive()
    }
}

/// What the gate before a tool says.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Run with these arguments; they are not validated again (T9).
    Run(Map<String, Value>),
    /// Do not run.
    Block {
        /// Why, for the model.
        reason: Option<String>,
        /// Ends the run after the batch, if every result says so.
        terminate: bool,
    },
}

/// A tool as the loop runs it.
pub trait ToolRunner: Send + Sync {
    /// Its declaration.
    fn spec(&self) -> &ToolSpec;

    /// The compiled schema of its arguments.
    fn schema(&self) -> &ArgumentSchema;

    /// Brings old argument shapes into today's.
    fn prepare(&self, arguments: Value) -> BoxFuture<'static, Result<Value, Error>>;

    /// Runs a call. Dropping the future cancels it.
    fn execute(
        &self,
        arguments: Map<String, Value>,
        call: Running,
    ) -> BoxFuture<'static, Result<ToolResult, Error>>;
}
