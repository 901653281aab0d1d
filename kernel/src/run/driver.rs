//! The agent loop's surroundings in a session: what the loop decides or reaches is answered here
//! from the registry, the tree and the queues.

use std::sync::{Arc, Mutex, PoisonError};

use pliant_sdk::message::{AssistantMessage, Message, StopReason, ThinkingLevel, ToolCall};
use pliant_sdk::provider::StreamOptions;
use pliant_sdk::tool::ToolResult;
use pliant_sdk::{Error, Event};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::loadout::Loadout;
use super::{RequestView, RunHost, after, hooks, prepare, request};
use crate::agent::{Answer, Driver, NextStep, ToolRunner, Verdict, declare_tools};
use crate::models::ModelRequest;
use crate::prompt::PromptState;
use crate::registry::Snapshot;

/// One session run.
pub(super) struct RunDriver<'a, H> {
    pub(super) host: &'a H,
    pub(super) cancel: &'a CancellationToken,
    state: Mutex<TurnState>,
}

/// What changes from turn to turn.
struct TurnState {
    /// The registry as the model was told of it.
    snapshot: Arc<Snapshot>,
    loadout: Arc<Loadout>,
    prompt: PromptState,
    /// No request was made yet.
    begins: bool,
    /// Times the failed answer was asked for again (R7, R8).
    attempts: u32,
    /// A compaction failed in this run.
    compaction_failed: bool,
}

impl<'a, H: RunHost> RunDriver<'a, H> {
    pub(super) fn new(host: &'a H, cancel: &'a CancellationToken) -> Self {
        let snapshot = host.registry().snapshot();
        let loadout = host.loadout(&snapshot);
        let mut prompt = PromptState::default();
        host.context()
            .iter()
            .for_each(|message| prompt.take(message));
        Self {
            host,
            cancel,
            state: Mutex::new(TurnState {
                snapshot,
                loadout,
                prompt,
                begins: true,
                attempts: 0,
                compaction_failed: false,
            }),
        }
    }

    /// The prompt that the transcript declares.
    pub(super) fn prompt_state(&self) -> PromptState {
        self.lock().prompt.clone()
    }

    /// Waits for what its handlers sent, unless the user gave up.
    pub(super) async fn arrived(&self) {
        tokio::select! {
            biased;
            () = self.host.arrived() => {}
            () = self.cancel.cancelled() => {}
        }
    }

    /// What the run has stored is worth a place on the disk.
    pub(super) fn run_boundary(&self) {
        self.host.run_boundary();
    }

    /// Announces the end of a low-level run.
    pub(super) async fn low_level_end(&self, messages: Vec<Arc<Message>>, will_retry: bool) {
        self.emit(Event::AgentEnd {
            messages,
            will_retry,
        })
        .await;
    }

    /// Whether the answer failed in a way that is worth another attempt (R6, R10).
    pub(super) fn may_retry(&self, answer: &Message) -> bool {
        let attempts = self.lock().attempts;
        let policy = self.host.retry_policy();
        !self.cancel.is_cancelled()
            && answer
                .as_assistant()
                .is_some_and(|answer| policy.allows(attempts, answer))
    }

    /// Leaves the failed answer out and waits for the next attempt; false when the user does not want
    /// to wait (R7).
    pub(super) async fn retry(&self, failed: &Arc<Message>) -> Result<bool, Error> {
        if self.cancel.is_cancelled() {
            self.give_up(None).await;
            return Ok(false);
        }
        let policy = self.host.retry_policy();
        let attempt = {
            let mut state = self.lock();
            state.attempts += 1;
            state.attempts
        };
        let delay = policy.delay(attempt);
        self.emit(Event::AutoRetryStart {
            attempt,
            max_attempts: policy.max_retries,
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            error_message: error_of(failed).unwrap_or_default(),
        })
        .await;
        if let Err(error) = self.omit(failed).await {
            self.end_retry(false, Some(error.to_string())).await;
            return Err(error);
        }
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => {
                self.end_retry(false, Some("Retry cancelled".to_owned())).await;
                Ok(false)
            }
            () = tokio::time::sleep(delay) => Ok(true),
        }
    }

    /// Leaves a stored answer out of later requests (R9).
    pub(super) async fn omit(&self, answer: &Arc<Message>) -> Result<(), Error> {
        for entry in self.host.omit(answer)? {
            self.emit(Event::EntryAppended { entry }).await;
        }
        Ok(())
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    pub(super) fn compaction_failed(&self) -> bool {
        self.lock().compaction_failed
    }

    pub(super) fn note_failed_compaction(&self) {
        self.lock().compaction_failed = true;
    }

    /// No other attempt follows: says how a series of them ended, if there was one.
    pub(super) async fn give_up(&self, last: Option<&Arc<Message>>) {
        let error = if self.cancel.is_cancelled() {
            Some("Retry cancelled".to_owned())
        } else {
            last.and_then(error_of)
        };
        if error.is_some() {
            self.end_retry(false, error).await;
        }
    }

    async fn end_retry(&self, success: bool, final_error: Option<String>) {
        let attempt = std::mem::take(&mut self.lock().attempts);
        if attempt > 0 {
            self.emit(Event::AutoRetryEnd {
                success,
                attempt,
                final_error,
            })
            .await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, TurnState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A user message that was queued leaves the lists before it is announced (P32).
    async fn user_message_begins(&self, event: &Event) {
        let Event::MessageStart { message } = event else {
            return;
        };
        let Message::User(user) = &**message else {
            return;
        };
        self.host.note_recovery(false);
        self.host.delivered(user.content.joined_text("")).await;
    }
}

impl<H: RunHost> Driver for RunDriver<'_, H> {
    /// Handlers first, then what failed in them, then subscribers (L30): so `agent_settled` is the last
    /// event of its run.
    fn emit(&self, event: Event) -> impl Future<Output = ()> + Send {
        // An event is large, and every future that holds it moves it.
        let event = Arc::new(event);
        async move {
            self.user_message_begins(&event).await;
            let is_heard = hooks::notify(self.host, self.cancel, &event).await;
            // Of pieces there are many, and most are heard by nobody who could have failed.
            if is_heard || !matches!(*event, Event::MessageUpdate { .. }) {
                self.host.publish_reports().await;
            }
            let ends_turn = matches!(*event, Event::TurnEnd { .. });
            self.host.publish(event).await;
            if ends_turn {
                // What cannot be stored now is held on, and said of when the run ends.
                let _ = self.host.flush_held().await;
            }
        }
    }

    /// Handlers may replace the message; then it is stored; then it is announced, so that whoever
    /// hears of it can rely on it.
    async fn message_end(&self, message: Message) -> Result<Arc<Message>, Error> {
        let message = Arc::new(hooks::message_end(self.host, self.cancel, message).await);
        self.host.store(&message)?;
        self.lock().prompt.take(&message);
        self.host.publish_reports().await;
        self.host
            .publish(Event::MessageEnd {
                message: Arc::clone(&message),
            })
            .await;
        let answer = message.as_assistant();
        if answer.is_some_and(|answer| !answer.stop_reason.is_failure()) {
            self.end_retry(true, None).await;
        }
        let good = |answer: &AssistantMessage| {
            !matches!(answer.stop_reason, StopReason::Error | StopReason::Length)
        };
        if answer.is_some_and(good) {
            self.host.note_recovery(false);
        }
        Ok(message)
    }

    async fn poll_steering(&self) -> Vec<Message> {
        self.arrived().await;
        self.host.take_steering()
    }

    async fn poll_follow_up(&self) -> Vec<Message> {
        self.arrived().await;
        self.host.take_follow_up()
    }

    /// The conversation may have to become shorter first; then the prompt is compared afresh, so a tool
    /// or section that changed takes effect now (R12).
    async fn prepare_next_turn(&self) -> Result<Vec<Message>, Error> {
        after::between_turns(self).await;
        let patch = {
            let state = self.lock();
            prepare::patch(self.host, &state.prompt)
        };
        Ok(patch.into_iter().collect())
    }

    async fn declare(&self, batch: Vec<Message>) -> Vec<Message> {
        let snapshot = self.host.registry().snapshot();
        let loadout = self.host.loadout(&snapshot);
        let mut state = self.lock();
        state.snapshot = snapshot;
        state.loadout = loadout;
        declare_tools(
            state.prompt.tools(),
            state.loadout.declarations(),
            batch,
            self.host.now_ms(),
        )
    }

    fn template(&self) -> AssistantMessage {
        let model = self.host.selection().model;
        AssistantMessage {
            api: model.api,
            provider: model.provider,
            model: model.id,
            timestamp: self.host.now_ms(),
            ..AssistantMessage::default()
        }
    }

    async fn request(&self, cancel: &CancellationToken) -> Result<Answer, Error> {
        if std::mem::take(&mut self.lock().begins) {
            // The prompt is the one thing that cannot be made again.
            self.host.run_boundary();
        }
        let selection = self.host.selection();
        let view = RequestView::default();
        let messages = request::messages(self.host, cancel, &view, &selection.model).await;
        let hooks = hooks::provider(self.host, cancel, &selection.model);
        let request = ModelRequest {
            options: StreamOptions {
                reasoning: (selection.level != ThinkingLevel::Off).then_some(selection.level),
                session_id: Some(self.host.conversation()),
                ..self.host.stream_options()
            },
            messages,
            model: selection.model,
            conversation: Some(self.host.conversation()),
            now_ms: self.host.now_ms(),
        };
        let snapshot = Arc::clone(&self.lock().snapshot);
        self.host
            .client()
            .open(&snapshot, request, Some(hooks), cancel)
    }

    fn tool(&self, name: &str) -> Option<Arc<dyn ToolRunner>> {
        self.lock().loadout.get(name)
    }

    fn tool_names(&self) -> Vec<String> {
        self.lock().loadout.names()
    }

    async fn before_tool_call(
        &self,
        call: &ToolCall,
        arguments: Map<String, Value>,
    ) -> Result<Verdict, Error> {
        hooks::tool_call(self.host, self.cancel, call, arguments).await
    }

    async fn after_tool_call(
        &self,
        call: &ToolCall,
        arguments: &Map<String, Value>,
        result: ToolResult,
    ) -> ToolResult {
        hooks::tool_result(self.host, self.cancel, call, arguments, result).await
    }

    async fn finish_turn(&self, _: &Arc<Message>, _: &[Arc<Message>]) -> NextStep {
        NextStep::Natural
    }

    fn now_ms(&self) -> i64 {
        self.host.now_ms()
    }

    fn thinking_level(&self) -> ThinkingLevel {
        self.host.selection().level
    }
}

/// Why an answer failed.
fn error_of(message: &Arc<Message>) -> Option<String> {
    let answer = message.as_assistant()?;
    let failed = answer.stop_reason == StopReason::Error;
    failed.then(|| answer.error_message.clone().unwrap_or_default())
}
