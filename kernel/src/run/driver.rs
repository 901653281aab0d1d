//! The agent loop's surroundings in a session: what the loop decides or reaches is answered here
//! from the registry, the tree and the queues.

use std::sync::{Arc, Mutex, PoisonError};

use pliant_sdk::message::{Message, ThinkingLevel, ToolCall};
use pliant_sdk::provider::StreamOptions;
use pliant_sdk::tool::ToolResult;
use pliant_sdk::{Error, Event};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::convert::Converted;
use super::toolbox::Toolbox;
use super::{RunHost, hooks, prepare};
use crate::agent::{Answer, Driver, NextStep, ToolRunner, Verdict, declare_tools};
use crate::models::ModelRequest;
use crate::prompt::PromptState;
use crate::registry::Snapshot;

/// One session run.
pub(super) struct RunDriver<'a, H> {
    host: &'a H,
    state: Mutex<TurnState>,
}

/// What changes from turn to turn.
struct TurnState {
    /// The registry as the model was told of it.
    snapshot: Arc<Snapshot>,
    toolbox: Arc<Toolbox>,
    prompt: PromptState,
    converted: Converted,
}

impl<'a, H: RunHost> RunDriver<'a, H> {
    pub(super) fn new(host: &'a H) -> Self {
        let snapshot = host.registry().snapshot();
        let toolbox = host.toolbox(&snapshot);
        let mut prompt = PromptState::default();
        host.context()
            .iter()
            .for_each(|message| prompt.take(message));
        let state = TurnState {
            snapshot,
            toolbox,
            prompt,
            converted: Converted::default(),
        };
        Self {
            host,
            state: Mutex::new(state),
        }
    }

    /// The prompt that the transcript declares.
    pub(super) fn prompt_state(&self) -> PromptState {
        self.lock().prompt.clone()
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

    async fn publish_reports(&self) {
        for failure in self.host.take_reports() {
            let path = failure
                .source
                .path
                .map_or(failure.source.name, |path| path.display().to_string());
            let event = Event::ExtensionError {
                extension_path: path,
                event: failure.event.to_owned(),
                error: failure.error.to_string(),
            };
            self.host.publish(event).await;
        }
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
    /// Handlers first, then subscribers (L30).
    async fn emit(&self, event: Event) {
        self.user_message_begins(&event).await;
        hooks::notify(self.host, &event).await;
        self.host.publish(event).await;
        self.publish_reports().await;
    }

    /// Handlers may replace the message; then it is stored; then it is announced, so that whoever
    /// hears of it can rely on it.
    async fn message_end(&self, message: Message) -> Result<Arc<Message>, Error> {
        let message = Arc::new(hooks::message_end(self.host, message).await);
        self.host.store(&message)?;
        self.lock().prompt.take(&message);
        self.host
            .publish(Event::MessageEnd {
                message: Arc::clone(&message),
            })
            .await;
        self.publish_reports().await;
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
        Ok(prepare::patch(self.host, &self.prompt_state())
            .into_iter()
            .collect())
    }

    async fn declare(&self, batch: Vec<Message>) -> Vec<Message> {
        let snapshot = self.host.registry().snapshot();
        let toolbox = self.host.toolbox(&snapshot);
        let mut state = self.lock();
        state.snapshot = snapshot;
        state.toolbox = toolbox;
        declare_tools(
            state.prompt.tools(),
            &state.toolbox.declarations(),
            batch,
            self.host.now_ms(),
        )
    }

    async fn request(&self, cancel: &CancellationToken) -> Result<Answer, Error> {
        let selection = self.host.selection();
        let context = self.host.context();
        let mut state = self.lock();
        let request = ModelRequest {
            options: StreamOptions {
                reasoning: (selection.level != ThinkingLevel::Off).then_some(selection.level),
                session_id: Some(self.host.conversation()),
                ..StreamOptions::default()
            },
            model: selection.model,
            messages: state.converted.update(&context),
            conversation: Some(self.host.conversation()),
            now_ms: self.host.now_ms(),
        };
        self.host.client().open(&state.snapshot, request, cancel)
    }

    fn tool(&self, name: &str) -> Option<Arc<dyn ToolRunner>> {
        self.lock().toolbox.get(name)
    }

    fn tool_names(&self) -> Vec<String> {
        self.lock().toolbox.names()
    }

    async fn before_tool_call(
        &self,
        call: &ToolCall,
        arguments: Map<String, Value>,
    ) -> Result<Verdict, Error> {
        hooks::tool_call(self.host, call, arguments).await
    }

    async fn after_tool_call(
        &self,
        call: &ToolCall,
        arguments: &Map<String, Value>,
        result: ToolResult,
    ) -> ToolResult {
        hooks::tool_result(self.host, call, arguments, result).await
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
