//! A session over in-process sources for tests: a scripted wire, an echoing tool, and the words that
//! its events come down to.
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pliant_kernel::models::ModelWish;
use pliant_kernel::pipeline::Prompt;
use pliant_kernel::registry::{InProcess, Rank, Registry, Source};
use pliant_kernel::session::{Disposition, PromptEnd, Session, Subscription};
use pliant_kernel::{Kernel, KernelOptions, OpenOptions, SessionChoice};
use pliant_sdk::message::{AssistantMessage, Message, ToolCall, joined_text};
use pliant_sdk::provider::{Provider, ProviderSpec, StreamOptions, StreamOut, StreamRequest, Wire};
use pliant_sdk::stream::MessageWriter;
use pliant_sdk::tool::{ExecutionMode, ToolCtx, ToolResult, ToolSpec};
use pliant_sdk::{Error, Event, Model, Plugin, Tool};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;

/// What the scripted model does next.
pub enum Reply {
    Text(&'static str),
    Calls(Vec<(&'static str, &'static str, Value)>),
    Fail(&'static str),
    /// An answer as it stands; what is not given is that of an empty one.
    Answer(Value),
    /// Says something as soon as it is let.
    When(Arc<Notify>, &'static str),
    /// Says something, then waits until it is dropped.
    Hang(&'static str),
}

#[derive(Clone, Default)]
pub struct Script {
    pub replies: Arc<Mutex<VecDeque<Reply>>>,
    pub requests: Arc<Mutex<Vec<Vec<Arc<Message>>>>>,
    pub options: Arc<Mutex<Vec<StreamOptions>>>,
    /// `provider/id` of each request.
    pub models: Arc<Mutex<Vec<String>>>,
}

impl Script {
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            replies: Arc::new(Mutex::new(replies.into_iter().collect())),
            ..Self::default()
        }
    }

    /// The requests so far, each as `role:text` lines.
    pub fn requests(&self) -> Vec<Vec<String>> {
        let show = |message: &Arc<Message>| match &**message {
            Message::User(user) => format!("user:{}", user.content.joined_text("")),
            Message::Assistant(answer) => format!("assistant:{}", joined_text(&answer.content, "")),
            Message::ToolResult(result) => format!("result:{}", joined_text(&result.content, "")),
            other => other.role().to_owned(),
        };
        self.requests
            .lock()
            .unwrap()
            .iter()
            .map(|request| request.iter().map(show).collect())
            .collect()
    }
}

pub struct ScriptedWire(pub Script);

impl Wire for ScriptedWire {
    fn api(&self) -> &'static str {
        "scripted"
    }

    async fn stream(
        &self,
        request: StreamRequest,
        out: StreamOut,
    ) -> Result<AssistantMessage, Error> {
        self.0
            .requests
            .lock()
            .unwrap()
            .push(request.messages.to_vec());
        self.0.options.lock().unwrap().push(request.options.clone());
        let model = request.model.reference();
        self.0.models.lock().unwrap().push(model);
        let reply = self.0.replies.lock().unwrap().pop_front();
        match reply.ok_or_else(|| Error::failed("the script has no reply left"))? {
            Reply::Fail(text) => Err(Error::failed(text)),
            Reply::Answer(given) => {
                let mut answer = serde_json::to_value(request.answer())?;
                answer["stopReason"] = json!("stop");
                for (key, value) in given.as_object().into_iter().flatten() {
                    answer[key] = value.clone();
                }
                Ok(serde_json::from_value(answer)?)
            }
            Reply::Text(text) => {
                let mut writer = MessageWriter::new(request.answer(), &out);
                text.split_inclusive(' ').for_each(|word| writer.text(word));
                Ok(writer.finish(None))
            }
            Reply::When(let_go, text) => {
                let_go.notified().await;
                let mut writer = MessageWriter::new(request.answer(), &out);
                writer.text(text);
                Ok(writer.finish(None))
            }
            Reply::Hang(text) => {
                MessageWriter::new(request.answer(), &out).text(text);
                std::future::pending().await
            }
            Reply::Calls(calls) => {
                let mut writer = MessageWriter::new(request.answer(), &out);
                for (id, name, arguments) in calls {
                    let arguments = arguments.as_object().cloned().unwrap_or_default();
                    writer.tool_call(ToolCall {
                        id: id.into(),
                        name: name.into(),
                        arguments,
                        ..ToolCall::default()
                    });
                }
                Ok(writer.finish(None))
            }
        }
    }
}

pub struct ScriptedProvider;

impl Provider for ScriptedProvider {
    fn spec(&self) -> ProviderSpec {
        ProviderSpec {
            name: "fake".into(),
            keyless: true,
            ..ProviderSpec::default()
        }
    }

    fn models(&self) -> Vec<Model> {
        vec![Model {
            id: "m".into(),
            provider: "fake".into(),
            api: "scripted".into(),
            ..Model::default()
        }]
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub struct EchoInput {
    pub text: String,
    /// Milliseconds to wait first.
    pub wait: Option<u64>,
}

/// Answers its text, after a pause if asked; counts how often it ran.
#[derive(Clone, Default)]
pub struct Echo {
    pub name: &'static str,
    pub mode: ExecutionMode,
    pub ran: Arc<AtomicUsize>,
    pub running: Arc<Notify>,
}

impl Tool for Echo {
    type Input = EchoInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            execution_mode: self.mode,
            ..ToolSpec::new(self.name, "Say it back.")
        }
    }

    async fn execute(&self, input: EchoInput, ctx: ToolCtx) -> Result<ToolResult, Error> {
        self.ran.fetch_add(1, Ordering::SeqCst);
        ctx.update(&ToolResult::text("so far"));
        self.running.notify_one();
        if let Some(ms) = input.wait {
            ctx.host().sleep_ms(ms).await?;
        }
        Ok(ToolResult::text(input.text))
    }
}

pub fn echo(name: &'static str) -> Echo {
    Echo {
        name,
        ..Echo::default()
    }
}

/// What the observer of a prompt was told (P2).
#[derive(Clone, Default)]
pub struct Said(Arc<Mutex<Vec<Disposition>>>);

impl Said {
    pub fn listener(&self) -> impl FnOnce(Disposition) + Send + 'static {
        let said = Arc::clone(&self.0);
        move |disposition| said.lock().unwrap().push(disposition)
    }

    pub fn take(&self) -> Vec<Disposition> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

pub struct Scene {
    pub kernel: Kernel,
    pub session: Session,
    pub events: Subscription,
    pub script: Script,
    pub registry: Arc<Registry>,
    pub dir: TempDir,
}

/// A kernel whose user keeps everything in `dir`.
pub fn kernel_in(dir: &std::path::Path) -> Kernel {
    Kernel::boot(KernelOptions::new(dir.to_path_buf(), dir.join("agent"))).unwrap()
}

/// A new session with the scripted model.
pub async fn open_session(kernel: &Kernel) -> Session {
    let open = OpenOptions {
        session: SessionChoice::New,
        model: ModelWish {
            provider: Some("fake".into()),
            model: Some("m".into()),
        },
        ..OpenOptions::default()
    };
    kernel.open_session(open).await.unwrap()
}

pub async fn scene(script: Script, plugin: Plugin) -> Scene {
    scene_with(script, plugin, json!({"retry": {"baseDelayMs": 1}})).await
}

pub async fn scene_with(script: Script, plugin: Plugin, settings: Value) -> Scene {
    let (kernel, dir) = kernel_with(&script, plugin, settings);
    let session = open_session(&kernel).await;
    let events = session.subscribe();
    Scene {
        session,
        events,
        script,
        registry: Arc::clone(kernel.registry()),
        kernel,
        dir,
    }
}

/// A kernel of the scripted model and an extension.
pub fn kernel_with(
    script: &Script,
    plugin: Plugin,
    settings: Value,
) -> (Kernel, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let kernel = scripted_kernel(&dir, script, plugin, &settings, None);
    (kernel, dir)
}

/// The same in a folder, with a `models.json`.
pub fn scripted_kernel(
    dir: &tempfile::TempDir,
    script: &Script,
    plugin: Plugin,
    settings: &Value,
    models: Option<&Value>,
) -> Kernel {
    std::fs::create_dir(dir.path().join("agent")).unwrap();
    std::fs::write(dir.path().join("agent/settings.json"), settings.to_string()).unwrap();
    if let Some(models) = models {
        std::fs::write(dir.path().join("agent/models.json"), models.to_string()).unwrap();
    }
    let kernel = kernel_in(dir.path());
    let fake = Plugin::new()
        .wire(ScriptedWire(script.clone()))
        .provider(ScriptedProvider);
    for (name, plugin) in [("fake", fake), ("extension", plugin)] {
        let source = Source::inline(name, Rank::User);
        kernel
            .registry()
            .publish(Arc::new(InProcess::new(source, plugin).unwrap()));
    }
    kernel
}

impl Scene {
    /// Another plugin, from now on.
    pub fn publish(&self, name: &str, plugin: Plugin) {
        let source = Source::inline(name, Rank::User);
        let generation = InProcess::new(source, plugin).unwrap();
        self.registry.publish(Arc::new(generation));
    }

    pub async fn prompt(&self, text: &str) -> PromptEnd {
        let end = self.session.prompt(Prompt::text(text), |_| ());
        tokio::time::timeout(Duration::from_secs(10), end)
            .await
            .expect("settles")
            .expect("is accepted")
    }

    /// What failed so far, in the words of it. Other events are let go.
    pub fn errors(&mut self) -> Vec<String> {
        let mut errors = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            if let Event::ExtensionError { error, .. } = &*event {
                errors.push(error.clone());
            }
        }
        errors
    }

    /// The events so far, as short words.
    pub fn events(&mut self) -> Vec<String> {
        let mut words = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            words.extend(word(&event));
        }
        words
    }
}

pub fn word(event: &Event) -> Option<String> {
    let json = serde_json::to_value(event).unwrap();
    let kind = json["type"].as_str().unwrap().to_owned();
    Some(match event {
        Event::MessageUpdate { .. } => return None,
        Event::MessageStart { message } | Event::MessageEnd { message } => {
            format!("{kind} {}", message.role())
        }
        Event::ToolExecutionStart { tool_call_id, .. }
        | Event::ToolExecutionUpdate { tool_call_id, .. }
        | Event::ToolExecutionEnd { tool_call_id, .. } => format!("{kind} {tool_call_id}"),
        Event::QueueUpdate {
            steering,
            follow_up,
        } => format!("{kind} {steering:?} {follow_up:?}"),
        Event::ExtensionError { event, .. } => format!("{kind} {event}"),
        Event::AgentEnd {
            will_retry: true, ..
        } => format!("{kind} willRetry"),
        Event::AutoRetryStart {
            attempt,
            max_attempts,
            ..
        } => format!("{kind} {attempt}/{max_attempts}"),
        Event::CompactionStart { reason } => format!("{kind} {reason:?}"),
        Event::CompactionEnd {
            reason,
            result,
            aborted,
            will_retry,
            error_message,
        } => {
            let how = match (result, error_message) {
                (Some(_), None) => "done",
                (None, Some(_)) => "failed",
                (None, None) if *aborted => "aborted",
                _ => "neither",
            };
            let retry = if *will_retry { " willRetry" } else { "" };
            format!("{kind} {reason:?} {how}{retry}")
        }
        Event::AutoRetryEnd {
            success,
            attempt,
            final_error,
        } => format!("{kind} {success} {attempt} {final_error:?}"),
        _ => kind,
    })
}

pub fn calls<const N: usize>(calls: [(&'static str, &'static str, Value); N]) -> Reply {
    Reply::Calls(calls.to_vec())
}

pub fn result_texts(session: &Session) -> Vec<(String, bool)> {
    let result = |message: &Arc<Message>| match &**message {
        Message::ToolResult(result) => Some((joined_text(&result.content, ""), result.is_error)),
        _ => None,
    };
    session.messages().iter().filter_map(result).collect()
}
