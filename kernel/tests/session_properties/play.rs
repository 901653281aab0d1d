//! Plays a script: everything that waits, waits at gates, so the script says what happens when.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pliant_kernel::models::ModelWish;
use pliant_kernel::pipeline::{Prompt, WhenActive};
use pliant_kernel::registry::{InProcess, Rank, Source};
use pliant_kernel::run::NavigateOptions;
use pliant_kernel::session::{Keep, SelectOptions, Session, Subscription};
use pliant_kernel::{Kernel, KernelOptions, OpenOptions, SessionChoice};
use pliant_sdk::message::{BashExecutionMessage, StopReason};
use pliant_sdk::session::MessageDraft;
use pliant_sdk::tool::ExecutionMode;
use pliant_sdk::{Event, Plugin};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::extension::Extension;
use crate::model::{Router, ScriptedProvider, ScriptedWire, Talk};
use crate::record::{Aborted, Prompted, Record, word};
use crate::script::{After, Script, Setting, Way, What};
use crate::tools::{Doer, Workshop};

/// How long a handler may take here.
const HANDLER_LIMIT_MS: u64 = 12;

/// The pause before another attempt.
const RETRY_DELAY_MS: u64 = 2;

/// Turns of everybody else after which nothing moves any more.
const QUIET: usize = 60;

/// The prompt that shows that a session is usable at the end.
pub const PROBE: &str = "probe";

pub fn play(script: &Script) -> Record {
    runtime(&script.setting).block_on(async { Stage::open(script).await.perform(script).await })
}

fn runtime(setting: &Setting) -> Runtime {
    let mut builder = match setting.threads {
        true => Builder::new_multi_thread(),
        false => Builder::new_current_thread(),
    };
    builder.worker_threads(2).enable_all().build().unwrap()
}

/// A session and everything around it.
struct Stage {
    folder: TempDir,
    /// Holds what the session shares with others.
    _kernel: Kernel,
    session: Session,
    talk: Arc<Talk>,
    workshop: Arc<Workshop>,
    extension: Arc<Extension>,
    events: Arc<Mutex<Vec<Arc<Event>>>>,
    collector: JoinHandle<()>,
    prompts: Arc<Mutex<Vec<Prompted>>>,
    aborts: Arc<Mutex<Vec<Aborted>>>,
    cleared: Arc<Mutex<Vec<String>>>,
    commands: Vec<String>,
    files: Vec<Vec<u8>>,
    tasks: JoinSet<()>,
}

impl Stage {
    async fn open(script: &Script) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let agent = folder.path().join("agent");
        std::fs::create_dir(&agent).unwrap();
        std::fs::write(agent.join("settings.json"), settings(&script.setting)).unwrap();
        let kernel = Kernel::boot(KernelOptions::new(folder.path().to_path_buf(), agent)).unwrap();
        let talk = Arc::new(Talk::default());
        talk.replies.lock().unwrap().extend(script.replies.clone());
        let workshop = Arc::new(Workshop::default());
        let doer = |name, mode| Doer {
            name,
            mode,
            workshop: Arc::clone(&workshop),
        };
        let plugin = Plugin::new()
            .wire(ScriptedWire(Arc::clone(&talk)))
            .provider(ScriptedProvider)
            .virtual_model(Router)
            .tool(doer("echo", ExecutionMode::default()))
            .tool(doer("slow", ExecutionMode::Sequential));
        let source = Source::inline("fake", Rank::User);
        kernel
            .registry()
            .publish(Arc::new(InProcess::new(source, plugin).unwrap()));
        let extension = Extension::new(
            Arc::clone(kernel.registry()),
            script.generations.clone(),
            Arc::clone(&workshop),
            Arc::clone(&talk.loads),
        );
        extension.load();
        // Who waits at the opening would wait for a session that is not there.
        let opener = Arc::clone(&extension);
        let opening = tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(1)).await;
                opener.gate.open(1);
            }
        });
        let open = OpenOptions {
            session: match script.setting.on_disk {
                true => SessionChoice::New,
                false => SessionChoice::InMemory,
            },
            model: ModelWish {
                provider: Some("fake".into()),
                model: Some("m".into()),
            },
            ..OpenOptions::default()
        };
        let session = kernel.open_session(open).await.unwrap();
        opening.abort();
        let events = Arc::new(Mutex::default());
        let collector = tokio::spawn(collect(session.subscribe(), Arc::clone(&events)));
        Self {
            folder,
            _kernel: kernel,
            session,
            talk,
            workshop,
            extension,
            events,
            collector,
            prompts: Arc::default(),
            aborts: Arc::default(),
            cleared: Arc::default(),
            commands: Vec::new(),
            files: Vec::new(),
            tasks: JoinSet::new(),
        }
    }

    async fn perform(mut self, script: &Script) -> Record {
        for (number, act) in script.acts.iter().enumerate() {
            wait(act.after, script.setting.threads).await;
            self.look_at_file();
            self.act(number, &act.what);
        }
        wait(After::Quiet, script.setting.threads).await;
        self.come_to_rest(script).await;
        self.probe(script).await;
        self.record(script).await
    }

    fn act(&mut self, number: usize, what: &What) {
        match what {
            What::Prompt(way) => self.prompt(format!("prompt {number}"), *way),
            What::Prompts(one, other) => {
                self.prompt(format!("prompt {number} a"), *one);
                self.prompt(format!("prompt {number} b"), *other);
            }
            What::Abort => self.abort(),
            What::Cancel => self.session.cancel(),
            What::Open(so_many) => {
                self.talk.gate.open(*so_many);
                self.workshop.gate.open(*so_many);
                self.extension.gate.open(*so_many);
            }
            What::Reload => self.extension.load(),
            What::Message(options) => {
                let draft = MessageDraft::text("note", format!("note {number}"));
                let options = *options;
                self.with_session(|session| async move {
                    let sent = session.send_message(draft, options, None).await;
                    // It may be refused like a prompt; then it is not said.
                    drop(sent);
                });
            }
            What::Compact => self.with_session(|session| async move {
                // Why there is none is told in the answer only.
                let _ = session.compact(None).await;
            }),
            What::Navigate(to, summarize) => {
                let entries = self.session.entries();
                let to = entries[entries.len() - 1 - to % entries.len()].id().clone();
                let options = NavigateOptions {
                    summarize: *summarize,
                    ..NavigateOptions::default()
                };
                self.with_session(|session| async move {
                    // Why it stays is told in the answer only.
                    let _ = session.navigate_tree(&to, options).await;
                });
            }
            What::Model(model) => {
                let model = *model;
                self.with_session(|session| async move { select(&session, model).await });
            }
            What::Level(level) => {
                let level = *level;
                self.with_session(|session| async move {
                    let set = session.set_thinking_level(level, Keep::Session).await;
                    set.unwrap();
                });
            }
            What::Bash => {
                let ended = BashExecutionMessage {
                    command: format!("command {number}"),
                    exit_code: Some(0),
                    timestamp: 1,
                    ..BashExecutionMessage::default()
                };
                self.session.record_bash_result(ended).unwrap();
                self.commands.push(format!("command {number}"));
            }
            What::ClearQueue => {
                let cleared = Arc::clone(&self.cleared);
                self.with_session(|session| async move {
                    let (steering, follow_ups) = session.clear_queue().await;
                    let texts = steering.into_iter().chain(follow_ups);
                    cleared.lock().unwrap().extend(texts);
                });
            }
        }
    }

    fn with_session<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        act: impl FnOnce(Session) -> F,
    ) {
        self.tasks.spawn(act(self.session.clone()));
    }

    fn prompt(&mut self, text: String, way: Option<Way>) {
        let prompts = Arc::clone(&self.prompts);
        self.with_session(|session| async move {
            let mut prompted = Prompted {
                text: text.clone(),
                way,
                told: Arc::default(),
                deferred: false,
                refused: None,
                failed: None,
            };
            let told = Arc::clone(&prompted.told);
            let preflight = move |now| told.lock().unwrap().push(now);
            let prompt = Prompt {
                when_active: way.map(|way| match way {
                    Way::Steer => WhenActive::Steer,
                    Way::FollowUp => WhenActive::FollowUp,
                }),
                ..Prompt::text(text)
            };
            match session.prompt(prompt, preflight).await {
                Ok(end) => {
                    prompted.deferred = end.deferred;
                    prompted.failed = end.failure.map(|failure| failure.to_string());
                }
                Err(refusal) => prompted.refused = Some(refusal.to_string()),
            }
            prompts.lock().unwrap().push(prompted);
        });
    }

    fn abort(&mut self) {
        let aborts = Arc::clone(&self.aborts);
        let (talk, workshop) = (Arc::clone(&self.talk), Arc::clone(&self.workshop));
        self.with_session(|session| async move {
            session.abort().await;
            aborts.lock().unwrap().push(Aborted {
                idle: session.is_idle(),
                requests_alive: talk.alive.count(),
                tools_alive: workshop.alive.count(),
            });
        });
    }

    /// Lets everything go on, and stops what goes on for ever (invariant 39).
    async fn come_to_rest(&mut self, script: &Script) {
        self.talk.gate.open_for_good();
        self.workshop.gate.open_for_good();
        self.extension.gate.open_for_good();
        for _ in 0..100 {
            let all = async {
                while self.tasks.join_next().await.is_some() {}
                self.session.wait_idle().await;
            };
            let limit = Duration::from_millis(HANDLER_LIMIT_MS * 2);
            if timeout(limit, all).await.is_ok() {
                return;
            }
            self.session.cancel();
        }
        self.stuck("it does not become idle", script)
    }

    fn stuck(&self, how: &str, script: &Script) -> ! {
        let events = self.events.lock().unwrap();
        let words: Vec<String> = events.iter().map(|event| word(event)).collect();
        panic!("{how}\n{script:#?}\n{words:#?}\n{:#?}", self.prompts)
    }

    /// The session is usable, whatever its extension did.
    async fn probe(&mut self, script: &Script) {
        self.talk.replies.lock().unwrap().clear();
        self.extension.calm_down();
        self.extension.load();
        select(&self.session, "fake/m").await;
        let accepted = self.session.prompt(Prompt::text(PROBE), |_| ());
        let end = timeout(Duration::from_secs(5), accepted).await;
        let end = end.unwrap_or_else(|_| self.stuck("the probe never ends", script));
        let end = end.unwrap_or_else(|error| self.stuck(&error.to_string(), script));
        let last = end.last.unwrap();
        let answer = last.as_assistant().unwrap();
        assert_eq!(answer.stop_reason, StopReason::Stop, "{answer:#?}");
        assert!(self.session.is_idle());
    }

    async fn record(mut self, script: &Script) -> Record {
        self.look_at_file();
        self.session.end_subscriptions();
        (&mut self.collector).await.unwrap();
        let messages = self.session.messages();
        let file = self.session.file();
        let closed = timeout(Duration::from_secs(5), self.session.close("quit")).await;
        closed.unwrap_or_else(|_| self.stuck("it does not close", script));
        let requests = std::mem::take(&mut *self.talk.requests.lock().unwrap());
        Record {
            events: std::mem::take(&mut *self.events.lock().unwrap()),
            prompts: std::mem::take(&mut *self.prompts.lock().unwrap()),
            aborts: std::mem::take(&mut *self.aborts.lock().unwrap()),
            triggering: script.acts.iter().filter(|act| act.what.triggers()).count(),
            cleared: std::mem::take(&mut *self.cleared.lock().unwrap()),
            requests,
            called: std::mem::take(&mut *self.extension.called.lock().unwrap()),
            commands: self.commands,
            files: self.files,
            messages,
            file,
            _folder: self.folder,
        }
    }

    fn look_at_file(&mut self) {
        let file = self.session.file();
        self.files
            .extend(file.and_then(|file| std::fs::read(file).ok()));
    }
}

async fn select(session: &Session, model: &str) {
    let wish = ModelWish {
        provider: None,
        model: Some(model.to_owned()),
    };
    let choice = session.find_model(&wish).await.unwrap();
    let how = SelectOptions::default();
    session.set_model(&choice.model, how).await.unwrap();
}

fn settings(setting: &Setting) -> String {
    let mode = |all| if all { "all" } else { "one-at-a-time" };
    json!({
        "retry": {"baseDelayMs": RETRY_DELAY_MS, "maxRetries": setting.max_retries},
        // More than 10,000 tokens are too many, and little is kept.
        "compaction": {"enabled": setting.compacts, "reserveTokens": 118_000, "keepRecentTokens": 10},
        "steeringMode": mode(setting.all_steering),
        "followUpMode": mode(setting.all_follow_ups),
        "extensions": {"handlerTimeoutMs": HANDLER_LIMIT_MS},
        "session": {"sync": "off"},
    })
    .to_string()
}

async fn collect(mut heard: Subscription, events: Arc<Mutex<Vec<Arc<Event>>>>) {
    while let Some(event) = heard.recv().await {
        events.lock().unwrap().push(event);
    }
}

async fn wait(after: After, threads: bool) {
    let steps = match after {
        After::Steps(steps) => steps,
        After::Quiet => QUIET,
        After::Pause => {
            tokio::time::sleep(Duration::from_millis(RETRY_DELAY_MS * 3)).await;
            QUIET
        }
    };
    for _ in 0..steps {
        tokio::task::yield_now().await;
    }
    if threads && steps == QUIET {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
