//! Loading, reloading and withdrawing sources while a session is open (`plugin-abi.md` §5, `resources.md`
//! §12.4): the order of things, what a turn that runs keeps, what a failure leaves, what old code may
//! still do. The sources are in process; which version of one is on the disk, the test says.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pliant_kernel::Prompt;
use pliant_kernel::digest::Digest;
use pliant_kernel::registry::{Generation, InProcess, Rank, Source};
use pliant_kernel::reload::{Broken, Candidate, Findings, Loader, Report};
use pliant_kernel::watch::Place;
use pliant_sdk::error::code;
use pliant_sdk::event::SourceOutcome;
use pliant_sdk::host::BoxFuture;
use pliant_sdk::plugin::CallCtx;
use pliant_sdk::state::Handed;
use pliant_sdk::{Error, Event, Host, Plugin, ToolCtx, ToolResult, ToolSpec};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::*;

type Make = Arc<dyn Fn() -> Result<Plugin, String> + Send + Sync>;

/// A file of a source: its content, and what becomes of loading that.
#[derive(Clone)]
struct File {
    name: &'static str,
    content: String,
    make: Make,
    is_broken: bool,
}

/// A disk that a test writes to.
#[derive(Clone, Default)]
struct Disk(Arc<Mutex<Vec<File>>>);

fn path(name: &str) -> PathBuf {
    PathBuf::from(format!("/disk/{name}"))
}

impl Disk {
    /// Writes a version of a source.
    fn write(
        &self,
        name: &'static str,
        content: &str,
        make: impl Fn() -> Result<Plugin, String> + Send + Sync + 'static,
    ) {
        self.put(File {
            name,
            content: content.to_owned(),
            make: Arc::new(make),
            is_broken: false,
        });
    }

    /// Writes half of a file.
    fn spoil(&self, name: &'static str, content: &str) {
        self.put(File {
            name,
            content: content.to_owned(),
            make: Arc::new(|| Err("never asked".to_owned())),
            is_broken: true,
        });
    }

    fn put(&self, file: File) {
        let mut files = self.0.lock().unwrap();
        match files.iter_mut().find(|old| old.name == file.name) {
            Some(old) => *old = file,
            None => files.push(file),
        }
    }

    fn remove(&self, name: &str) {
        self.0.lock().unwrap().retain(|file| file.name != name);
    }

    fn source(file: &File) -> Source {
        Source {
            name: file.name.to_owned(),
            path: Some(path(file.name)),
            rank: Rank::User,
        }
    }
}

impl Loader for Disk {
    fn find(&self) -> Findings {
        let mut findings = Findings::default();
        for file in &*self.0.lock().unwrap() {
            if file.is_broken {
                findings.broken.push(Broken {
                    path: path(file.name),
                    message: format!("{} is half.", file.name),
                });
            } else {
                findings.candidates.push(Candidate {
                    source: Self::source(file),
                    digest: Some(Digest::of(file.content.as_bytes())),
                });
            }
        }
        findings
    }

    fn places(&self) -> Vec<Place> {
        Vec::new()
    }

    fn load(
        &self,
        candidate: &Candidate,
    ) -> BoxFuture<'static, Result<Arc<dyn Generation>, String>> {
        let files = self.0.lock().unwrap();
        let file = files
            .iter()
            .find(|file| file.name == candidate.source.name)
            .cloned();
        let source = candidate.source.clone();
        Box::pin(async move {
            let file = file.ok_or("it is gone")?;
            let plugin = (file.make)()?;
            let generation = InProcess::new(source, plugin).map_err(|error| error.to_string())?;
            let generation: Arc<dyn Generation> = Arc::new(generation);
            Ok(generation)
        })
    }
}

/// What handlers have heard, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// A plugin that notes when it hears of sessions, under this name.
    fn plugin(&self, name: &str) -> Plugin {
        let listen = |event: &'static str| {
            let (log, name) = (self.clone(), name.to_owned());
            move |payload: Value, _: CallCtx| {
                let reason = payload["reason"].as_str().unwrap_or_default();
                log.add(format!("{name} {event} {reason}"));
                async { Ok(Value::Null) }
            }
        };
        Plugin::new()
            .on_event("session_start", listen("start"))
            .on_event("session_shutdown", listen("end"))
    }
}

/// A tool that answers a text, and waits for its gate first.
struct Gated {
    answer: &'static str,
    entered: Arc<Notify>,
    gate: Arc<Notify>,
}

impl pliant_sdk::Tool for Gated {
    type Input = EchoInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("gated", format!("Answers {}.", self.answer))
    }

    async fn execute(&self, _: EchoInput, _: ToolCtx) -> Result<ToolResult, Error> {
        self.entered.notify_one();
        self.gate.notified().await;
        Ok(ToolResult::text(self.answer))
    }
}

fn gated(answer: &'static str) -> (Gated, Arc<Notify>, Arc<Notify>) {
    let (entered, gate) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let tool = Gated {
        answer,
        entered: Arc::clone(&entered),
        gate: Arc::clone(&gate),
    };
    (tool, entered, gate)
}

async fn load(scene: &Scene, disk: &Disk) -> Vec<String> {
    let (failures, warnings) = scene.kernel.reloader().load(Arc::new(disk.clone())).await;
    assert_eq!(warnings, [""; 0]);
    failures
        .into_iter()
        .map(|failure| failure.message)
        .collect()
}

async fn changed(scene: &Scene, name: &str) -> Report {
    scene.kernel.reloader().changed(vec![path(name)]).await
}

fn outcomes(report: &Report) -> Vec<(&str, SourceOutcome)> {
    let changes = report.changes.iter();
    changes
        .map(|change| (change.source.as_str(), change.outcome))
        .collect()
}

/// Waits, for as long as a test may.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(20);
    tokio::time::timeout(limit, what).await.expect("in time")
}

#[tokio::test]
async fn only_what_changed_is_replaced_and_only_its_handlers_are_told_in_order() {
    // resources §12.4, R53, E07
    let scene = scene(Script::new([]), Plugin::new()).await;
    let (disk, log) = (Disk::default(), Log::default());
    for (name, label) in [("a", "a1"), ("b", "b1")] {
        let log = log.clone();
        disk.write(name, label, move || Ok(log.plugin(label)));
    }
    assert_eq!(load(&scene, &disk).await, [""; 0]);
    let mut events = scene.session.subscribe();
    let second = log.clone();
    disk.write("a", "a2", move || Ok(second.plugin("a2")));
    let report = changed(&scene, "a").await;
    assert_eq!(log.take(), ["a1 end reload", "a2 start reload"]);
    let change = &report.changes[0];
    assert_eq!(
        (change.from.clone(), change.to.clone(), change.generation),
        (
            Some(Digest::of(b"a1").short()),
            Some(Digest::of(b"a2").short()),
            Some(2)
        )
    );
    let Event::ResourcesChanged { changes } = (*events.recv().await.unwrap()).clone() else {
        panic!("another event")
    };
    assert_eq!(changes, report.changes);
    // The same content is silent, and so is what nobody changed.
    assert_eq!(changed(&scene, "a").await, Report::default());
    assert_eq!(changed(&scene, "c").await, Report::default());
    assert_eq!(log.take(), [""; 0]);
    // The user's own wish starts everything anew.
    let report = scene.session.reload().await.unwrap();
    let restarted = [
        ("a", SourceOutcome::Restarted),
        ("b", SourceOutcome::Restarted),
    ];
    assert_eq!(outcomes(&report), restarted);
    let told = [
        "a2 end reload",
        "b1 end reload",
        "a2 start reload",
        "b1 start reload",
    ];
    assert_eq!(log.take(), told);
}

#[tokio::test]
async fn a_change_during_a_turn_serves_from_the_next_request_on_and_a_running_call_ends_on_old_code()
 {
    // plugin-abi §5.7, resources §12.4, L33, E07
    let replies = [
        calls([("1", "gated", json!({"text": ""}))]),
        calls([("2", "gated", json!({"text": ""}))]),
        Reply::Text("done"),
    ];
    let scene = scene(Script::new(replies), Plugin::new()).await;
    let (disk, log) = (Disk::default(), Log::default());
    let (first, entered, gate) = gated("one");
    let first = Mutex::new(Some(log.plugin("1").tool(first)));
    disk.write("t", "1", move || Ok(first.lock().unwrap().take().unwrap()));
    load(&scene, &disk).await;
    let session = scene.session.clone();
    let run = tokio::spawn(async move { session.prompt(Prompt::text("go"), |_| ()).await });
    soon(entered.notified()).await;
    let (second, entered, second_gate) = gated("two");
    let second = Mutex::new(Some(log.plugin("2").tool(second)));
    let loaded = Arc::new(Notify::new());
    let is_loaded = Arc::clone(&loaded);
    disk.write("t", "2", move || {
        is_loaded.notify_one();
        Ok(second.lock().unwrap().take().unwrap())
    });
    let reloader = Arc::clone(scene.kernel.reloader());
    let reload = tokio::spawn(async move { reloader.changed(vec![path("t")]).await });
    // On this one thread it stands where it waits for the end of the turn, when this goes on.
    soon(loaded.notified()).await;
    // Who asks how things stand does not wait for the end of the turn.
    let standing = scene.kernel.reloader().standing();
    let of_t = standing.iter().find(|one| one.name == "t").unwrap();
    assert_eq!((of_t.generation, of_t.retired), (Some(1), 0));
    let refused = scene.session.reload().await.unwrap_err();
    assert!(refused.is(code::UNAVAILABLE), "{refused}");
    assert_eq!(log.take(), [""; 0], "not within a turn");
    gate.notify_one();
    soon(entered.notified()).await;
    assert_eq!(log.take(), ["1 end reload", "2 start reload"]);
    second_gate.notify_one();
    soon(run).await.unwrap().unwrap();
    let report = soon(reload).await.unwrap();
    assert_eq!(outcomes(&report), [("t", SourceOutcome::Reloaded)]);
    let results = result_texts(&scene.session);
    let texts: Vec<&str> = results.iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(texts, ["one", "two"]);
}

#[tokio::test]
async fn a_failed_reload_keeps_what_served_says_why_once_and_the_mended_file_serves_without_restart()
 {
    // E05, E06, plugin-abi §5.9
    let scene = scene(Script::new([]), Plugin::new()).await;
    let (disk, log) = (Disk::default(), Log::default());
    let plugin = log.clone();
    disk.write("a", "1", move || Ok(plugin.plugin("1").tool(echo("of_a"))));
    load(&scene, &disk).await;
    let has_tool = || scene.registry.snapshot().tool("of_a").is_some();
    disk.write("a", "2", || Err("a:3:1: no.".to_owned()));
    let report = changed(&scene, "a").await;
    assert_eq!(report.failures().collect::<Vec<_>>(), ["a:3:1: no."]);
    assert!(has_tool());
    assert_eq!(changed(&scene, "a").await, Report::default(), "said once");
    disk.spoil("a", "half");
    // Of a file that cannot be read the content is not known, so it is said again.
    let report = changed(&scene, "a").await;
    assert_eq!(report.failures().collect::<Vec<_>>(), ["a is half."]);
    assert!(has_tool());
    let report = scene.session.reload().await.unwrap();
    assert_eq!(report.failures().collect::<Vec<_>>(), ["a is half."]);
    assert!(has_tool());
    assert_eq!(log.take(), [""; 0]);
    let mended = log.clone();
    disk.write("a", "3", move || Ok(mended.plugin("3")));
    assert_eq!(
        outcomes(&changed(&scene, "a").await),
        [("a", SourceOutcome::Reloaded)]
    );
    assert_eq!(log.take(), ["1 end reload", "3 start reload"]);
    assert!(!has_tool());
    disk.remove("a");
    assert_eq!(
        outcomes(&changed(&scene, "a").await),
        [("a", SourceOutcome::Removed)]
    );
    assert_eq!(log.take(), ["3 end reload"]);
    let back = log.clone();
    disk.write("a", "3", move || Ok(back.plugin("3")));
    assert_eq!(
        outcomes(&changed(&scene, "a").await),
        [("a", SourceOutcome::Added)]
    );
}

#[tokio::test]
async fn what_could_not_be_loaded_at_the_start_is_loaded_when_it_is_mended() {
    let scene = scene(Script::new([]), Plugin::new()).await;
    let disk = Disk::default();
    disk.write("a", "1", || Err("no.".to_owned()));
    assert_eq!(load(&scene, &disk).await, ["no."]);
    disk.write("a", "2", || Ok(Plugin::new().tool(echo("of_a"))));
    assert_eq!(
        outcomes(&changed(&scene, "a").await),
        [("a", SourceOutcome::Added)]
    );
    assert!(scene.registry.snapshot().tool("of_a").is_some());
}

/// A plugin with a number that it hands over, and how it takes one.
fn counter(
    version: u32,
    own: i64,
    takes: impl Fn(Handed) -> Result<i64, Error> + Send + Sync + 'static,
) -> (Plugin, Arc<Mutex<i64>>) {
    let number = Arc::new(Mutex::new(own));
    let (kept, taken) = (Arc::clone(&number), Arc::clone(&number));
    let plugin = Plugin::new().state(
        version,
        move || *kept.lock().unwrap(),
        move |handed| {
            *taken.lock().unwrap() = takes(handed)?;
            Ok(())
        },
    );
    (plugin, number)
}

#[tokio::test]
async fn state_is_handed_over_or_refused_with_the_reason_and_a_failure_keeps_the_old() {
    // plugin-abi §5 "State hand-over"
    let scene = scene(Script::new([]), Plugin::new()).await;
    let disk = Disk::default();
    let numbers: Arc<Mutex<Vec<Arc<Mutex<i64>>>>> = Arc::default();
    let write = |content: &str, version: u32, own: i64| {
        let numbers = Arc::clone(&numbers);
        disk.write("c", content, move || {
            let takes = move |handed: Handed| handed.of_version(version);
            let (plugin, number) = counter(version, own, takes);
            numbers.lock().unwrap().push(number);
            Ok(plugin)
        });
    };
    let latest = || *numbers.lock().unwrap().last().unwrap().lock().unwrap();
    write("1", 1, 7);
    load(&scene, &disk).await;
    write("2", 1, 0);
    changed(&scene, "c").await;
    assert_eq!(latest(), 7);
    write("3", 2, 1);
    let report = changed(&scene, "c").await;
    assert_eq!(latest(), 1);
    let said = report.changes[0].message.clone().unwrap();
    assert!(said.contains("the state has version 1"), "{said}");
    assert_eq!(report.changes[0].outcome, SourceOutcome::Reloaded);
    // One that panics while it takes the state is not published.
    disk.write("c", "4", || {
        Ok(Plugin::new()
            .tool(echo("of_4"))
            .state(2, || 0, |_| panic!("no way")))
    });
    let report = changed(&scene, "c").await;
    let said = report.failures().collect::<String>();
    assert!(
        said.contains("no way") && said.contains("goes on"),
        "{said}"
    );
    assert!(scene.registry.snapshot().tool("of_4").is_none());
    // More than a megabyte is not handed over.
    disk.write("c", "5", || {
        let large = "x".repeat(2 << 20);
        Ok(Plugin::new().state(2, move || large.clone(), |_| Ok(())))
    });
    changed(&scene, "c").await;
    write("6", 2, 3);
    let report = changed(&scene, "c").await;
    let said = report.failures().collect::<String>();
    assert!(said.contains("1024 KB may be handed over"), "{said}");
}

#[tokio::test]
async fn what_a_generation_was_lent_is_stale_once_it_is_replaced() {
    // E04, extensions §6.1, G2
    let scene = scene(Script::new([]), Plugin::new()).await;
    let disk = Disk::default();
    let kept: Arc<Mutex<Option<Host>>> = Arc::default();
    let keep = Arc::clone(&kept);
    disk.write("a", "1", move || {
        let keep = Arc::clone(&keep);
        Ok(Plugin::new().on_event("session_start", move |_, ctx| {
            *keep.lock().unwrap() = Some(ctx.host().clone());
            async { Ok(Value::Null) }
        }))
    });
    load(&scene, &disk).await;
    scene.session.reload().await.unwrap();
    let old = kept.lock().unwrap().clone().unwrap();
    assert!(old.session().info().await.is_ok());
    disk.write("a", "2", || Ok(Plugin::new()));
    changed(&scene, "a").await;
    let stale = old.session().info().await.unwrap_err();
    assert!(stale.is(code::STALE), "{stale}");
}

#[tokio::test]
async fn a_command_may_reload_everything_and_what_it_was_lent_is_stale_then() {
    // P14, extensions §5 `reload`
    let scene = scene(Script::new([]), Plugin::new()).await;
    let (disk, log) = (Disk::default(), Log::default());
    let told = log.clone();
    disk.write("a", "1", move || {
        let (plugin, told) = (told.plugin("a"), told.clone());
        Ok(plugin.command(Reloads(told)))
    });
    load(&scene, &disk).await;
    soon(scene.prompt("/again")).await;
    let told = log.take();
    assert_eq!(
        told,
        [
            "a end reload",
            "a start reload",
            "1 restarted",
            "then stale"
        ]
    );
}

struct Reloads(Log);

impl pliant_sdk::command::Command for Reloads {
    fn spec(&self) -> pliant_sdk::command::CommandSpec {
        pliant_sdk::command::CommandSpec::new("again", "Reloads.")
    }

    async fn run(&self, _: String, ctx: pliant_sdk::command::CommandCtx) -> Result<(), Error> {
        let changes = ctx.host().session().reload().await?;
        let restarted =
            |change: &&pliant_sdk::event::SourceChange| change.outcome == SourceOutcome::Restarted;
        let count = changes.iter().filter(restarted).count();
        self.0.add(format!("{count} restarted"));
        let then = ctx.host().session().info().await;
        self.0.add(format!(
            "then {}",
            then.map_or_else(|error| error.code, |_| "fine".to_owned())
        ));
        Ok(())
    }
}

#[tokio::test]
async fn a_file_that_changes_all_the_time_is_left_alone_until_the_user_reloads() {
    // resources §12.4
    let scene = scene(Script::new([]), Plugin::new()).await;
    let disk = Disk::default();
    disk.write("a", "0", || Ok(Plugin::new()));
    load(&scene, &disk).await;
    for number in 1..=5 {
        disk.write("a", &number.to_string(), || Ok(Plugin::new()));
        assert_eq!(
            outcomes(&changed(&scene, "a").await),
            [("a", SourceOutcome::Reloaded)]
        );
    }
    disk.write("a", "6", || Ok(Plugin::new()));
    let report = changed(&scene, "a").await;
    let said = report.failures().collect::<String>();
    assert!(said.contains("/reload"), "{said}");
    let report = scene.session.reload().await.unwrap();
    assert_eq!(outcomes(&report), [("a", SourceOutcome::Reloaded)]);
}

#[tokio::test]
async fn prompts_that_come_while_handlers_are_told_of_a_reload_wait_for_its_end() {
    // resources §12.4: "never inside a dispatch"
    let scene = scene(Script::new([Reply::Text("hello")]), Plugin::new()).await;
    let (disk, log) = (Disk::default(), Log::default());
    let (told, entered, gate) = (
        log.clone(),
        Arc::new(Notify::new()),
        Arc::new(Notify::new()),
    );
    disk.write("a", "1", || Ok(Plugin::new()));
    load(&scene, &disk).await;
    let (enters, opens) = (Arc::clone(&entered), Arc::clone(&gate));
    disk.write("a", "2", move || {
        let (told, enters, opens) = (told.clone(), Arc::clone(&enters), Arc::clone(&opens));
        let heard = told.clone();
        let plugin = Plugin::new().on_event("session_start", move |_, _| {
            let (told, enters, opens) = (told.clone(), Arc::clone(&enters), Arc::clone(&opens));
            async move {
                enters.notify_one();
                opens.notified().await;
                told.add("started");
                Ok(Value::Null)
            }
        });
        Ok(plugin.on_event("before_agent_start", move |_, _| {
            heard.add("prompted");
            async { Ok(Value::Null) }
        }))
    });
    let reloader = Arc::clone(scene.kernel.reloader());
    let reload = tokio::spawn(async move { reloader.changed(vec![path("a")]).await });
    soon(entered.notified()).await;
    let session = scene.session.clone();
    let prompt = tokio::spawn(async move { session.prompt(Prompt::text("go"), |_| ()).await });
    tokio::task::yield_now().await;
    gate.notify_one();
    soon(prompt).await.unwrap().unwrap();
    soon(reload).await.unwrap();
    assert_eq!(log.take(), ["started", "prompted"]);
}
