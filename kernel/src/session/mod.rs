//! An open session: the only thing a front end talks to. It owns the tree, the queues and the
//! selection, passes prompts through the pipeline, and starts runs.

mod active;
mod bash;
mod claim;
mod compact;
mod custom;
mod discovering;
mod disk;
mod display;
mod entering;
mod events;
mod export;
mod leaving;
mod mcp;
mod model;
mod name;
mod navigate;
mod outbox;
mod prompt_texts;
mod prompting;
mod queue;
mod queueing;
mod reading;
mod recall;
mod reloading;
mod run_host;
mod selection;
mod services;
mod standing;
mod state;
mod stats;
mod surroundings;
mod system_prompt;
mod telling;
mod tools;
mod typing;
mod usage;

pub(crate) use services::service_names;
pub use surroundings::{Replaced, Replacement, Replaces, Surroundings};

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use pliant_sdk::host::Services;
use pliant_sdk::message::ThinkingLevel;
use pliant_sdk::{Error, Event, Message, Model};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::host::HostServices;
use crate::host::actions::{Actions, Asker, CallScope};
use crate::host::ui::HostUi;
use crate::models::{Catalog, ModelClient};
use crate::pipeline::{Prompt, PromptError};
use crate::prompt::{PromptEdits, PromptSource};
use crate::registry::{
    Callers, Dispatcher, Grace, HandlerFailure, HookPoint, Patience, Registry, Source,
};
use crate::reload::Reloader;
use crate::run::Assembly;
use crate::settings::LiveSettings;
use crate::tree::{Header, SessionTree};

pub use bash::BashOptions;
pub use events::Subscription;
pub use model::{Cycled, Direction, Keep, SelectError, SelectOptions};
pub use queue::Delivery;
pub use recall::implied_model;
pub use selection::{DEFAULT_TOOLS, ToolSelection};
pub use stats::{SessionStats, TokenStats};

use active::ActiveTools;
use claim::{Claims, Standing};
use entering::{Asked, Entered, Preflight, Trigger};
use events::Subscribers;
use outbox::Outbox;
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
    pub settings: Arc<LiveSettings>,
    /// What the front end shows for plugins.
    pub ui: Arc<dyn HostUi>,
    /// Loads what is registered anew.
    pub reloader: Arc<Reloader>,
    /// What is around the sessions.
    pub surroundings: Arc<Surroundings>,
    /// Called with each session before its handlers hear of it, so that a front end misses nothing.
    pub opened: Opened,
}

/// What a front end does with a session that begins, such as subscribing.
pub type Opened = Arc<dyn Fn(&Session) + Send + Sync>;

impl std::fmt::Debug for Equipment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Equipment")
    }
}

/// How a session begins.
pub struct SessionStart {
    /// The conversation so far.
    pub tree: SessionTree,
    /// Where it works.
    pub cwd: PathBuf,
    /// The model; `None` lets every prompt be refused until one is chosen.
    pub model: Option<Model>,
    /// The level wanted; clamped to the model.
    pub level: ThinkingLevel,
    /// Models to choose from and to cycle through, as patterns; empty = all.
    pub scope: Vec<String>,
    /// Which tools.
    pub tools: ToolSelection,
    /// Whether the settings say which are active at first: the command line does not.
    pub default_tools_by_settings: bool,
    /// What the system prompt is read from.
    pub prompt: PromptSource,
    /// `startup`, `resume`, … for `session_start` handlers.
    pub reason: &'static str,
    /// The session that it takes the place of.
    pub previous_file: Option<PathBuf>,
    /// What the user should be told once, in sentences.
    pub notices: Vec<String>,
}

impl std::fmt::Debug for SessionStart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionStart")
            .field("id", self.tree.id())
            .finish_non_exhaustive()
    }
}

/// What became of a prompt, told once: before anything is sent, or before the refusal is answered (P2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// A run begins.
    Started,
    /// It waits in a queue of the active run.
    Queued,
    /// A command or handler has dealt with it.
    Handled,
    /// It is refused.
    Rejected,
}

/// How a prompt ended.
#[derive(Debug, Default)]
pub struct PromptEnd {
    /// The last answer of the run, if it started one.
    pub last: Option<Arc<Message>>,
    /// Set when the session could not be stored; the run stopped there.
    pub failure: Option<Error>,
    /// It arrived while a run settled, and is put off until everybody has heard of that (stage 0).
    pub deferred: bool,
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
    /// Held while the queues change and that is told.
    announcing: tokio::sync::Mutex<()>,
    outbox: Outbox,
    telling: telling::Telling,
    mcp_servers: mcp::KnownServers,
    prompts: prompting::OpenPrompts,
    assembly: Mutex<Assembly>,
    claims: Arc<Claims>,
    commands: bash::UserCommands,
    /// The last force to the disk.
    syncing: Mutex<Option<JoinHandle<()>>>,
    /// Ends what runs outside a run (commands, input handlers); made anew when it has been used.
    abort: Mutex<CancellationToken>,
    /// Closes the dialogs that are open when the session ends; made anew for those of its last handlers.
    leaving: Mutex<CancellationToken>,
    /// What an abort leaves to handlers.
    grace: Grace,
    /// The process is about to end.
    hurries: AtomicBool,
    /// Set at the end: who kept a handle of this session is told so.
    let_go: AtomicBool,
    /// What handlers, tools and commands are asking it.
    asked: services::UnderWay,
    /// Ends the wait for the next attempt.
    retry_wait: Mutex<Option<CancellationToken>>,
    subscribers: Subscribers,
    reports: Mutex<Vec<HandlerFailure>>,
    scope: Vec<String>,
    default_tools_by_settings: bool,
    prompt: prompt_texts::PromptTexts,
    notices: Vec<String>,
    cwd: PathBuf,
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
            cwd,
            model,
            level,
            scope,
            tools,
            default_tools_by_settings,
            prompt,
            reason,
            previous_file,
            mut notices,
        } = start;
        let prompt = prompt_texts::PromptTexts::read(prompt, &mut notices);
        let level = model
            .as_ref()
            .map_or(ThinkingLevel::Off, |model| model.clamp_level(level));
        recall::record_start(&mut tree, model.as_ref(), level)?;
        let settings = equipment.settings.now();
        let used = settings.used();
        let mode = |queue: Delivery| settings.queue_mode(queue.setting());
        let modes = (mode(Delivery::Steer), mode(Delivery::FollowUp));
        let shared = Shared {
            tree: Mutex::new(tree),
            state: Mutex::new(State {
                model,
                level,
                tools: ActiveTools::new(tools, &equipment.registry.snapshot()),
                model_of: equipment.registry.snapshot().number(),
                default_level: used.default_thinking_level,
                loadout: None,
                prompt_edits: PromptEdits::default(),
                recovered: false,
            }),
            queues: Mutex::new(Queues::new(modes.0, modes.1)),
            announcing: tokio::sync::Mutex::default(),
            outbox: Outbox::here(),
            telling: telling::Telling::default(),
            mcp_servers: mcp::KnownServers::default(),
            prompts: prompting::OpenPrompts::default(),
            assembly: Mutex::default(),
            claims: Arc::default(),
            commands: bash::UserCommands::default(),
            syncing: Mutex::default(),
            abort: Mutex::default(),
            leaving: Mutex::default(),
            grace: Grace::default(),
            hurries: AtomicBool::default(),
            let_go: AtomicBool::default(),
            asked: services::UnderWay::default(),
            retry_wait: Mutex::default(),
            subscribers: Subscribers::default(),
            reports: Mutex::default(),
            scope,
            default_tools_by_settings,
            prompt,
            notices,
            cwd,
            equipment,
        };
        shared.restore_tools();
        shared.equipment.host.settle_here();
        let session = Self(Arc::new(shared));
        session.watch_registry();
        let open: Weak<Shared> = Arc::downgrade(&session.0);
        session.0.equipment.reloader.open(open);
        (session.0.equipment.opened)(&session);
        let mut event = json!({"type": "session_start", "reason": reason});
        if let Some(file) = previous_file {
            event["previousSessionFile"] = json!(file);
        }
        session.0.know_mcp_servers();
        session.tell(HookPoint::SessionStart, &event).await;
        session.0.report_unconnected();
        session.discover("startup").await;
        session.0.publish_reports().await;
        Ok(session)
    }

    /// Receives everything that happens from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.0.subscribers.subscribe()
    }

    /// Passes a prompt through the pipeline and, if it starts a run, returns when that has settled,
    /// with everything that was put off until then (P5). `preflight` is told once what became of the
    /// prompt, before anything is sent or the refusal is answered (P2). A prompt that arrives while a
    /// run settles is put off and its call returns at once; `preflight` is told when its turn comes.
    ///
    /// Events must be read meanwhile: a subscription that is full holds the run.
    ///
    /// # Errors
    /// The refusal; the session is as before (P4).
    pub async fn prompt(
        &self,
        prompt: Prompt,
        preflight: impl FnOnce(Disposition) + Send + 'static,
    ) -> Result<PromptEnd, PromptError> {
        let asked = Asked {
            trigger: Trigger::Prompt(prompt),
            preflight: Preflight::new(preflight),
            sender: None,
            depth: 0,
        };
        Ok(match self.enter(asked).await? {
            Entered::Run(starting) => self.drive(starting).await,
            Entered::Done => PromptEnd::default(),
            Entered::Deferred => PromptEnd {
                deferred: true,
                ..PromptEnd::default()
            },
        })
    }

    /// Stops the active run and waits until the session is idle. Queued messages stay (L11).
    pub async fn abort(&self) {
        self.cancel();
        self.wait_idle().await;
    }

    /// Asks the active run or compaction, and commands that run beside it, to stop, without waiting for them.
    pub fn cancel(&self) {
        self.0.grace.begin();
        self.0.claims.cancel();
        std::mem::take(&mut *lock(&self.0.abort)).cancel();
    }

    /// As [`Session::cancel`], where the process is about to end and does not wait for long: handlers of
    /// `session_shutdown` have little time then.
    pub fn hurry(&self) {
        self.0.hurries.store(true, Ordering::Release);
        self.cancel();
    }

    /// Returns when nothing has the session, nothing is put off, and nothing that a plugin sent is on
    /// its way.
    pub async fn wait_idle(&self) {
        self.0.outbox.arrived().await;
        self.0.claims.idle().await;
    }

    /// Whether nothing has the session: no run, no compaction, no navigation (R52). A run that is settling no longer
    /// has it (R3).
    #[must_use]
    pub fn is_idle(&self) -> bool {
        use Standing::{Changing, Closed, Free, Settling};
        let standing = self.0.claims.standing();
        matches!(standing, Free | Settling | Changing | Closed)
    }

    /// Whether a run is active.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.0.claims.standing() == Standing::Running
    }

    /// What the user should be told once, in sentences.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.0.notices
    }

    /// Lets every subscription end once what is in it has been read.
    pub fn end_subscriptions(&self) {
        self.0.subscribers.end();
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

    /// Ends the session: stops a run, tells `session_shutdown` handlers, waits for the disk, and lets
    /// others open the file. Never fails.
    pub async fn close(&self, reason: &str) {
        self.close_for(reason, None).await;
    }

    /// Ends the session because another one takes its place.
    pub async fn close_for(&self, reason: &str, target: Option<&Path>) {
        self.0.claims.close();
        std::mem::take(&mut *lock(&self.0.leaving)).cancel();
        self.abort_bash();
        self.abort().await;
        let mut event = json!({"type": "session_shutdown", "reason": reason});
        if let Some(file) = target {
            event["targetSessionFile"] = json!(file);
        }
        self.tell(HookPoint::SessionShutdown, &event).await;
        self.0.outbox.arrived().await;
        self.0.let_go.store(true, Ordering::Release);
        let conversation = self.0.tree().id().to_string();
        self.0.equipment.client.forget(&conversation);
        self.0.equipment.host.processes_ended(LETTING_GO).await;
        self.0.synced().await;
        self.0.tree().close();
    }

    async fn tell(&self, point: HookPoint, event: &serde_json::Value) {
        self.tell_some(point, event, None).await;
    }

    /// Tells handlers, of these sources only if some are named.
    async fn tell_some(
        &self,
        point: HookPoint,
        event: &serde_json::Value,
        only: Option<&[String]>,
    ) {
        let shared = &self.0;
        let snapshot = shared.equipment.registry.snapshot();
        let patience = shared.patience(lock(&shared.abort).clone());
        let patience = match point {
            HookPoint::SessionStart => patience.at_most(SESSION_HANDLER_LIMIT),
            HookPoint::SessionShutdown if shared.hurries.load(Ordering::Acquire) => {
                patience.at_most(HURRIED_HANDLER_LIMIT)
            }
            HookPoint::SessionShutdown => patience.at_most(SESSION_HANDLER_LIMIT),
            _ => patience,
        };
        let callers = Callers::new(shared, patience);
        if let Some(dispatcher) = Dispatcher::new(&snapshot, point, callers) {
            let dispatcher = match only {
                Some(sources) => dispatcher.only(sources),
                None => dispatcher,
            };
            dispatcher.notify(event).await;
        }
        shared.publish_reports().await;
    }
}

/// How long plugins may take to let go of the processes of an aborted run.
const LETTING_GO: Duration = Duration::from_secs(2);

/// Handlers of a session's beginning and end are bounded more tightly (`extensions.md` §6).
const SESSION_HANDLER_LIMIT: Duration = Duration::from_secs(5);

/// The same where a signal ends the process: what is left of its time is short.
const HURRIED_HANDLER_LIMIT: Duration = Duration::from_millis(500);

impl Shared {
    fn tree(&self) -> MutexGuard<'_, SessionTree> {
        lock(&self.tree)
    }

    fn patience(&self, cancel: CancellationToken) -> Patience {
        let limit = self.equipment.settings.now().handler_limit();
        Patience::new(cancel, limit, self.grace.clone())
    }

    fn now(&self) -> i64 {
        crate::host::clock::now_ms()
    }

    fn source_services(self: &Arc<Self>, source: &Source, scope: CallScope) -> Arc<dyn Services> {
        let session: Arc<dyn Actions> = Arc::clone(self) as Arc<dyn Actions>;
        let asker = Asker { session, scope };
        self.equipment.host.for_source(source, Some(asker))
    }

    async fn publish_reports(&self) {
        let failures = std::mem::take(&mut *lock(&self.reports));
        for failure in failures {
            self.subscribers.publish(Event::from(failure)).await;
        }
        self.publish_notices().await;
    }
}
