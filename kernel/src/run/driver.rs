//! The agent loop's surroundings in a session: what the loop decides or reaches is answered here
//! from the registry, the tree and the queues.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pliant_sdk::message::{AssistantMessage, Message, StopReason, ThinkingLevel};
use pliant_sdk::provider::StreamOptions;
use pliant_sdk::tool::{ExecutionMode, ToolResult};
use pliant_sdk::{Error, Event};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::loadout::Loadout;
use super::prepare::{Prepared, RunPrompt};
use super::route::{self, Routing};
use super::{RequestView, RunHost, Selection, after, boundary, hooks, prepare, request};
use crate::agent::{Answer, Call, Driver, NextStep, Reach, ToolRunner, Verdict, declare_tools};
use crate::models::ModelRequest;
use crate::prompt::PromptState;
use crate::registry::Snapshot;

/// One session run.
pub(super) struct RunDriver<'a, H> {
    pub(super) host: &'a H,
    pub(super) cancel: &'a CancellationToken,
    state: Mutex<TurnState>,
    routing: Mutex<Routing>,
}

/// What changes from turn to turn.
struct TurnState {
    /// The registry as the model was told of it.
    snapshot: Arc<Snapshot>,
    loadout: Arc<Loadout>,
    prompt: PromptState,
    run_prompt: RunPrompt,
    /// No request was made yet.
    begins: bool,
    /// Times the failed answer was asked for again (R7, R8).
    attempts: u32,
    /// A compaction failed in this run.
    compaction_failed: bool,
    /// Turns begun since `agent_start`.
    turns: u32,
    /// Requests made because handlers wanted them.
    continuations: u64,
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
            routing: Mutex::default(),
            state: Mutex::new(TurnState {
                snapshot,
                loadout,
                prompt,
                run_prompt: RunPrompt::default(),
                begins: true,
                attempts: 0,
                compaction_failed: false,
                turns: 0,
                continuations: 0,
            }),
        }
    }

    /// The messages that the run starts with (P37, P41).
    pub(super) async fn prepare(&self, trigger: Message) -> Vec<Message> {
        let Prepared { messages, prompt } = prepare::prepare(self.host, self.cancel, trigger).await;
        hooks::prepare_loadout(self.host, self.cancel).await;
        let mut state = self.lock();
        state.run_prompt = prompt;
        let patch = prepare::patch(self.host, &state.prompt, &state.run_prompt);
        patch.into_iter().chain(messages).collect()
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
        let given_up = self.host.begin_retry_wait();
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
        self.routing().failed(failed);
        let cancelled = async {
            tokio::select! {
                () = self.cancel.cancelled() => {}
                () = given_up.cancelled() => {}
            }
        };
        tokio::select! {
            biased;
            () = cancelled => {
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

    /// Number of the turn that runs, from 0 at each `agent_start` (R49).
    pub(super) fn turn_index(&self) -> u32 {
        self.lock().turns.saturating_sub(1)
    }

    /// Counts a request that is made only because a handler wants it; false when there were too many.
    pub(super) fn may_continue(&self, most: u64) -> bool {
        let mut state = self.lock();
        let may = state.continuations < most;
        state.continuations += u64::from(may);
        may
    }

    /// Tells handlers of an event; whether any may have heard. A turn's beginning has more to say to them
    /// than to subscribers; its end is a boundary, which has told them.
    async fn tell_handlers(&self, event: &Event) -> bool {
        match event {
            Event::AgentStart => self.lock().turns = 0,
            Event::TurnStart => {
                self.lock().turns += 1;
                let index = self.turn_index();
                hooks::turn_start(self.host, self.cancel, index).await;
                return true;
            }
            Event::TurnEnd { .. } => return true,
            _ => {}
        }
        hooks::notify(self.host, self.cancel, event).await
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

    pub(super) fn routing(&self) -> MutexGuard<'_, Routing> {
        self.routing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Model and level of the request under way, or of the next one.
    fn selection(&self) -> Selection {
        let under_way = self.routing().under_way().cloned();
        under_way.unwrap_or_else(|| self.host.selection())
    }

    fn lock(&self) -> MutexGuard<'_, TurnState> {
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
            let is_heard = self.tell_handlers(&event).await;
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
        if answer.is_some() {
            self.routing().answered();
        }
        // An answer that the user stopped says nothing of whether the service works again.
        let works_again = |answer: &AssistantMessage| match answer.stop_reason {
            StopReason::Error => false,
            StopReason::Aborted => !self.is_cancelled(),
            _ => true,
        };
        if answer.is_some_and(works_again) {
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
        hooks::prepare_loadout(self.host, self.cancel).await;
        let patch = {
            let state = self.lock();
            prepare::patch(self.host, &state.prompt, &state.run_prompt)
        };
        Ok(patch.into_iter().collect())
    }

    async fn declare(&self, batch: Vec<Message>) -> Vec<Message> {
        hooks::prepare_loadout(self.host, self.cancel).await;
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
        let model = self.selection().model;
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
        let selection = route::selection(self).await?;
        let view = {
            let state = self.lock();
            RequestView {
                hidden_tools: Arc::clone(state.loadout.hidden()),
                forced_prompt: state.run_prompt.forced.clone(),
            }
        };
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

    /// What other tools call need not have been declared: one that was registered meanwhile is there.
    fn tool(&self, name: &str, reach: Reach) -> Option<Arc<dyn ToolRunner>> {
        let pinned = Arc::clone(&self.lock().loadout);
        pinned.get(name, reach).or_else(|| match reach {
            Reach::Declared => None,
            Reach::Callable => {
                let snapshot = self.host.registry().snapshot();
                self.host.loadout(&snapshot).get(name, reach)
            }
        })
    }

    fn tool_names(&self, reach: Reach) -> Vec<String> {
        self.lock().loadout.names(reach)
    }

    fn execution_mode(&self) -> ExecutionMode {
        self.host.execution_mode()
    }

    async fn before_tool_call(
        &self,
        call: &Call,
        arguments: Map<String, Value>,
    ) -> Result<Verdict, Error> {
        hooks::tool_call(self.host, self.cancel, call, arguments).await
    }

    async fn after_tool_call(
        &self,
        call: &Call,
        arguments: &Map<String, Value>,
        result: ToolResult,
    ) -> ToolResult {
        hooks::tool_result(self.host, self.cancel, call, arguments, result).await
    }

    async fn finish_turn(
        &self,
        message: &Arc<Message>,
        results: &[Arc<Message>],
        more_tools: bool,
    ) -> Result<NextStep, Error> {
        boundary::turn_end(self, message, results, more_tools).await
    }

    fn now_ms(&self) -> i64 {
        self.host.now_ms()
    }

    fn thinking_level(&self) -> ThinkingLevel {
        self.selection().level
    }
}

/// Why an answer failed.
fn error_of(message: &Arc<Message>) -> Option<String> {
    let answer = message.as_assistant()?;
    let failed = answer.stop_reason == StopReason::Error;
    failed.then(|| answer.error_message.clone().unwrap_or_default())
}
