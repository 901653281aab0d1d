//! An open session: the only thing a front end talks to. It owns the tree, the queues and the
//! selection, passes prompts through the pipeline, and starts runs.

mod events;
mod queue;
mod run_host;
mod state;

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pliant_sdk::message::{Content, Extra, MessageContent, ThinkingLevel, UserMessage};
use pliant_sdk::plugin::CallCtx;
use pliant_sdk::{Error, Event, Host, Message, Model};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::host::HostServices;
use crate::host::actions::{Actions, HostUi};
use crate::models::{Catalog, ModelClient};
use crate::pipeline::{self, Passage, Prompt, PromptError, Scene, WhenActive};
use crate::prompt::PromptOptions;
use crate::registry::{Dispatcher, HandlerFailure, HookPoint, Registry, Source};
use crate::run;
use crate::settings::Settings;
use crate::tree::{EntryBody, Header, ModelChange, SessionTree, ThinkingLevelChange};

pub use events::Subscription;
pub use queue::Delivery;
pub use state::{DEFAULT_TOOLS, ToolSelection};

use events::Subscribers;
use queue::Queues;
use state::State;

/// What a session is made of, beside its tree.
pub struct Equipment {
    /// What is registered.
    pub registry: Arc<Registry>,
    /// Services for plugins and scripts.
    pub host: Arc<HostServices>,
    /// The models there are.
    pub catalog: Arc<Catalog>,
    /// Asks models.
    pub client: Arc<ModelClient>,
    /// The settings in force.
    pub settings: Arc<Settings>,
    /// What the front end shows for plugins.
    pub ui: Arc<dyn HostUi>,
}

impl std::fmt::Debug for Equipment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Equipment")
    }
}

/// How a session begins.
pub struct SessionStart {
    /// The conversation so far.
    pub tree: SessionTree,
    /// The model; `None` lets every prompt be refused until one is chosen.
    pub model: Option<Model>,
    /// The level wanted; clamped to the model.
    pub level: ThinkingLevel,
    /// Which tools.
    pub tools: ToolSelection,
    /// What the system prompt is built from.
    pub prompt: PromptOptions,
    /// `startup`, `resume`, … for `session_start` handlers.
    pub reason: &'static str,
}

impl std::fmt::Debug for SessionStart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionStart")
            .field("id", self.tree.id())
            .finish_non_exhaustive()
    }
}

/// What became of a prompt, told once, before anything is sent (P2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// A run begins.
    Started,
    /// It waits in a queue of the active run.
    Queued,
    /// A command or handler has dealt with it.
    Handled,
}

/// How a prompt ended.
#[derive(Debug, Default)]
pub struct PromptEnd {
    /// The last answer of the run, if it started one.
    pub last: Option<Arc<Message>>,
    /// Set when the session could not be stored; the run stopped there.
    pub failure: Option<Error>,
}

/// A cheap handle to an open session.
#[derive(Clone)]
pub struct Session(Arc<Shared>);

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Session").field(self.0.tree().id()).finish()
    }
}

/// The session itself. One lock per state, none held across an await.
struct Shared {
    equipment: Equipment,
    tree: Mutex<SessionTree>,
    state: Mutex<State>,
    queues: Mutex<Queues>,
    active: Mutex<Option<ActiveRun>>,
    runs: AtomicU64,
    idle: Notify,
    subscribers: Subscribers,
    reports: Mutex<Vec<HandlerFailure>>,
    tools: ToolSelection,
    prompt: PromptOptions,
    cwd: PathBuf,
}

/// A run in progress. The number tells it from the next one.
struct ActiveRun {
    number: u64,
    cancel: CancellationToken,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    /// Opens a session and tells `session_start` handlers.
    ///
    /// # Errors
    /// When the session's file cannot be written.
    pub async fn start(equipment: Equipment, start: SessionStart) -> Result<Self, Error> {
        let SessionStart {
            mut tree,
            model,
            level,
            tools,
            prompt,
            reason,
        } = start;
        let level = model
            .as_ref()
            .map_or(ThinkingLevel::Off, |model| model.clamp_level(level));
        record_selection(&mut tree, model.as_ref(), level)?;
        let used = equipment.settings.used();
        let modes = (
            used.steering_mode.unwrap_or_default(),
            used.follow_up_mode.unwrap_or_default(),
        );
        let cwd = PathBuf::from(&tree.header().cwd);
        let shared = Shared {
            tree: Mutex::new(tree),
            state: Mutex::new(State {
                model,
                level,
                toolbox: None,
            }),
            queues: Mutex::new(Queues::new(modes.0, modes.1)),
            active: Mutex::new(None),
            runs: AtomicU64::new(0),
            idle: Notify::new(),
            subscribers: Subscribers::default(),
            reports: Mutex::default(),
            tools,
            prompt,
            cwd,
            equipment,
        };
        let session = Self(Arc::new(shared));
        let event = json!({"type": "session_start", "reason": reason});
        session.tell(HookPoint::SessionStart, &event).await;
        Ok(session)
    }

    /// Receives everything that happens from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.0.subscribers.subscribe()
    }

    /// Passes a prompt through the pipeline and, if it starts a run, returns when that has settled
    /// (P5). `accepted` is called once when the prompt is not refused.
    ///
    /// # Errors
    /// The refusal; the session is as before (P4).
    pub async fn prompt(
        &self,
        prompt: Prompt,
        accepted: impl FnOnce(Disposition) + Send,
    ) -> Result<PromptEnd, PromptError> {
        let end = match self.pass(prompt).await? {
            Passage::Handled => {
                accepted(Disposition::Handled);
                PromptEnd::default()
            }
            Passage::Queue(prompt, when) => {
                self.enqueue(prompt, when).await;
                accepted(Disposition::Queued);
                PromptEnd::default()
            }
            Passage::Start(prompt) => self.run(prompt, accepted).await?,
        };
        self.0.publish_reports().await;
        Ok(end)
    }

    /// Stops the active run and waits until the session is idle. Queued messages stay (L11).
    pub async fn abort(&self) {
        self.cancel();
        self.wait_idle().await;
    }

    /// Asks the active run to stop, without waiting for it.
    pub fn cancel(&self) {
        if let Some(run) = &*lock(&self.0.active) {
            run.cancel.cancel();
        }
    }

    /// Lets every subscription end once what is in it has been read.
    pub fn end_subscriptions(&self) {
        self.0.subscribers.end();
    }

    /// Returns when no run is active.
    pub async fn wait_idle(&self) {
        loop {
            let idle = self.0.idle.notified();
            if lock(&self.0.active).is_none() {
                return;
            }
            idle.await;
        }
    }

    /// Whether a run is active.
    #[must_use]
    pub fn is_running(&self) -> bool {
        lock(&self.0.active).is_some()
    }

    /// Empties both queues and answers their texts, steering first.
    pub async fn clear_queue(&self) -> (Vec<String>, Vec<String>) {
        let cleared = lock(&self.0.queues).clear();
        self.0
            .subscribers
            .publish(Event::QueueUpdate {
                steering: Vec::new(),
                follow_up: Vec::new(),
            })
            .await;
        cleared
    }

    /// The header of the session's file.
    #[must_use]
    pub fn header(&self) -> Header {
        self.0.tree().header().clone()
    }

    /// Where the session is stored, if it is.
    #[must_use]
    pub fn file(&self) -> Option<PathBuf> {
        self.0.tree().path().map(PathBuf::from)
    }

    /// The projection: what a model sees of the branch.
    #[must_use]
    pub fn messages(&self) -> Vec<Arc<Message>> {
        self.0.tree().context().to_vec()
    }

    /// The model in force.
    #[must_use]
    pub fn model(&self) -> Option<Model> {
        lock(&self.0.state).model.clone()
    }

    /// Ends the session: stops a run, tells `session_shutdown` handlers. Never fails.
    pub async fn close(&self, reason: &str) {
        self.abort().await;
        let event = json!({"type": "session_shutdown", "reason": reason});
        self.tell(HookPoint::SessionShutdown, &event).await;
    }

    async fn pass(&self, prompt: Prompt) -> Result<Passage, PromptError> {
        let shared = &self.0;
        let snapshot = shared.equipment.registry.snapshot();
        let model = self.model();
        let provider = model
            .as_ref()
            .map(|model| model.provider.clone())
            .unwrap_or_default();
        let key_variables = shared.equipment.catalog.key_variables(&provider);
        let scene = Scene {
            snapshot: &snapshot,
            ctx: &|source| shared.call_ctx(source),
            report: &|failure| lock(&shared.reports).push(failure),
            run_active: &|| self.is_running(),
            model: model.as_ref(),
            usable: shared.equipment.catalog.usable(&provider),
            key_variables: &key_variables,
        };
        pipeline::pass(&scene, prompt).await
    }

    /// Starts a run, unless another one was started meanwhile: claiming it is atomic (P6).
    async fn run(
        &self,
        prompt: Prompt,
        accepted: impl FnOnce(Disposition) + Send,
    ) -> Result<PromptEnd, PromptError> {
        let Some(claimed) = self.0.claim() else {
            let Some(when) = prompt.when_active else {
                return Err(PromptError::Busy);
            };
            self.enqueue(prompt, when).await;
            accepted(Disposition::Queued);
            return Ok(PromptEnd::default());
        };
        let message = user_message(&prompt, self.0.now_ms());
        let end = run::run(&self.0, message, &claimed.cancel, || {
            accepted(Disposition::Started)
        })
        .await;
        Ok(PromptEnd {
            last: end.last,
            failure: end.failure,
        })
    }

    async fn enqueue(&self, prompt: Prompt, when: WhenActive) {
        let message = user_message(&prompt, self.0.now_ms());
        let delivery = match when {
            WhenActive::Steer => Delivery::Steer,
            WhenActive::FollowUp => Delivery::FollowUp,
        };
        let (steering, follow_up) = {
            let mut queues = lock(&self.0.queues);
            queues.push(delivery, prompt.text, message);
            queues.shown()
        };
        self.0
            .subscribers
            .publish(Event::QueueUpdate {
                steering,
                follow_up,
            })
            .await;
    }

    async fn tell(&self, point: HookPoint, event: &serde_json::Value) {
        let shared = &self.0;
        let snapshot = shared.equipment.registry.snapshot();
        let ctx = |source: &Source| shared.call_ctx(source);
        let report = |failure| lock(&shared.reports).push(failure);
        if let Some(dispatcher) =
            Dispatcher::new(&snapshot, point, Some(SESSION_HANDLER_LIMIT), &ctx, &report)
        {
            dispatcher.notify(event).await;
        }
        shared.publish_reports().await;
    }
}

/// Handlers of a session's beginning and end are bounded more tightly (`extensions.md` §6).
const SESSION_HANDLER_LIMIT: std::time::Duration = std::time::Duration::from_secs(5);

/// A new session notes its selection; a resumed one only what the branch does not imply (V3, V8).
fn record_selection(
    tree: &mut SessionTree,
    model: Option<&Model>,
    level: ThinkingLevel,
) -> Result<(), Error> {
    let Some(model) = model else { return Ok(()) };
    let said = tree.settings().clone();
    let same = said
        .model
        .as_ref()
        .is_some_and(|said| said.provider == model.provider && said.model_id == model.id);
    let failed = |error: crate::tree::TreeError| Error::failed(error.to_string());
    if !same {
        let change = ModelChange {
            provider: model.provider.clone(),
            model_id: model.id.clone(),
        };
        tree.append(EntryBody::ModelChange(change))
            .map_err(failed)?;
    }
    if said.thinking_level != Some(level) {
        let change = ThinkingLevelChange {
            thinking_level: level.as_str().to_owned(),
        };
        tree.append(EntryBody::ThinkingLevelChange(change))
            .map_err(failed)?;
    }
    Ok(())
}

fn user_message(prompt: &Prompt, timestamp: i64) -> Message {
    let mut blocks = vec![Content::text(prompt.text.clone())];
    blocks.extend(prompt.images.iter().cloned());
    Message::User(UserMessage {
        content: MessageContent::Blocks(blocks),
        timestamp,
        extra: Extra::new(),
    })
}

/// A session claimed for one run; free again when the run ends, however it ends.
struct Claimed {
    shared: Arc<Shared>,
    number: u64,
    cancel: CancellationToken,
}

impl Drop for Claimed {
    fn drop(&mut self) {
        // The run has usually released the session itself, and the next run may hold it by now.
        let mut active = lock(&self.shared.active);
        if active.as_ref().is_some_and(|run| run.number == self.number) {
            *active = None;
        }
        drop(active);
        self.shared.idle.notify_waiters();
    }
}

impl Shared {
    fn tree(&self) -> MutexGuard<'_, SessionTree> {
        lock(&self.tree)
    }

    /// Claims the session for a run; `None` while another one has it.
    fn claim(self: &Arc<Self>) -> Option<Claimed> {
        let mut active = lock(&self.active);
        if active.is_some() {
            return None;
        }
        let number = self.runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let cancel = CancellationToken::new();
        *active = Some(ActiveRun {
            number,
            cancel: cancel.clone(),
        });
        Some(Claimed {
            shared: Arc::clone(self),
            number,
            cancel,
        })
    }

    fn release(&self) {
        *lock(&self.active) = None;
        self.idle.notify_waiters();
    }

    fn now_ms(&self) -> i64 {
        crate::host::clock::now_ms()
    }

    fn call_ctx(self: &Arc<Self>, source: &Source) -> CallCtx {
        let actions: Arc<dyn Actions> = Arc::clone(self) as Arc<dyn Actions>;
        let services = self.equipment.host.for_source(source, Some(actions));
        CallCtx::answer_only(Host::from_shared(services))
    }

    async fn publish_reports(&self) {
        let failures = std::mem::take(&mut *lock(&self.reports));
        for failure in failures {
            let name = failure.source.name;
            let event = Event::ExtensionError {
                extension_path: failure
                    .source
                    .path
                    .map_or(name, |path| path.display().to_string()),
                event: failure.event.to_owned(),
                error: failure.error.to_string(),
            };
            self.subscribers.publish(event).await;
        }
    }
}
