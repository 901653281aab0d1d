//! The agent loop's surroundings in a session: what the loop decides or reaches is answered here
//! from the registry, the tree and the queues.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pliant_sdk::message::{AssistantMessage, Message, StopReason, ThinkingLevel};
use pliant_sdk::provider::StreamOptions;
use pliant_sdk::tool::{ExecutionMode, ToolResult};
use pliant_sdk::{Error, Event};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::attempts::Attempts;
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
    attempts: Mutex<Attempts>,
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
            attempts: Mutex::default(),
            state: Mutex::new(TurnState {
                snapshot,
                loadout,
                prompt,
                run_prompt: RunPrompt::default(),
                begins: true,
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

    pub(super) fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
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
        if let Some(answer) = answer {
            self.note_answer(answer).await;
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

    /// Plugins and scripts that were changed serve from here on. The conversation may have to become
    /// shorter; then the prompt is compared afresh, so a tool
    /// or section that changed takes effect now (R12).
    async fn prepare_next_turn(&self) -> Result<Vec<Message>, Error> {
        self.host.between_turns(self.cancel).await;
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
            asked: self.asks(),
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
