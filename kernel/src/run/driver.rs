//! The agent loop's surroundings in a session: what the loop decides or reaches is answered here
//! from the registry, the tree and the queues.

use std::sync::{Arc, Mutex, PoisonError};

use pliant_sdk::message::{AssistantMessage, Message, ThinkingLevel, ToolCall};
use pliant_sdk::provider::StreamOptions;
use pliant_sdk::tool::ToolResult;
use pliant_sdk::{Error, Event};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::loadout::Loadout;
use super::{RunHost, hooks, prepare};
use crate::agent::{Answer, Driver, NextStep, ToolRunner, Verdict, declare_tools};
use crate::models::ModelRequest;
use crate::prompt::PromptState;
use crate::registry::Snapshot;

/// One session run.
pub(super) struct RunDriver<'a, H> {
    host: &'a H,
    cancel: &'a CancellationToken,
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
            }),
        }
    }

    /// The prompt that the transcript declares.
    pub(super) fn prompt_state(&self) -> PromptState {
        self.lock().prompt.clone()
    }

    /// What the run has stored is worth a place on the disk.
    pub(super) fn run_boundary(&self) {
        self.host.run_boundary();
    }

    /// Announces the end of a low-level run.
    pub(super) async fn low_level_end(&self, messages: Vec<Arc<Message>>) {
        self.emit(Event::AgentEnd {
            messages,
            will_retry: false,
        })
        .await;
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
        if let Some((steering, follow_up)) = self.host.delivered(&user.content.joined_text("")) {
            self.host
                .publish(Event::QueueUpdate {
                    steering,
                    follow_up,
                })
                .await;
        }
    }
}

impl<H: RunHost> Driver for RunDriver<'_, H> {
    /// Handlers first, then what failed in them, then subscribers (L30): so `agent_settled` is the last
    /// event of its run.
    async fn emit(&self, event: Event) {
        self.user_message_begins(&event).await;
        hooks::notify(self.host, self.cancel, &event).await;
        self.host.publish_reports().await;
        self.host.publish(event).await;
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
        Ok(message)
    }

    async fn poll_steering(&self) -> Vec<Message> {
        self.host.take_steering()
    }

    async fn poll_follow_up(&self) -> Vec<Message> {
        self.host.take_follow_up()
    }

    /// The prompt is compared afresh, so a tool or section that changed takes effect now (R12).
    async fn prepare_next_turn(&self) -> Result<Vec<Message>, Error> {
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
        let request = ModelRequest {
            options: StreamOptions {
                reasoning: (selection.level != ThinkingLevel::Off).then_some(selection.level),
                session_id: Some(self.host.conversation()),
                ..self.host.stream_options()
            },
            messages: self.host.transcript(&selection.model),
            model: selection.model,
            conversation: Some(self.host.conversation()),
            now_ms: self.host.now_ms(),
        };
        let snapshot = Arc::clone(&self.lock().snapshot);
        self.host.client().open(&snapshot, request, cancel)
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
