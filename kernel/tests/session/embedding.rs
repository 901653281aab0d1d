//! The kernel as a library (`interfaces.md` §15): the builder, several kernels in one process, futures
//! that may move between threads, and what is given up midway.

use std::future::Future;
use std::path::Path;

use futures_util::StreamExt as _;
use pliant_kernel::models::ModelWish;
use pliant_kernel::run::NavigateOptions;
use pliant_kernel::session::{BashOptions, Direction, SelectOptions, Session};
use pliant_kernel::tree::{EntryId, Position};
use pliant_kernel::{BuildError, Builder, OpenOptions, Prompt, Runtime, SessionChoice};
use pliant_sdk::message::ThinkingLevel;
use pliant_sdk::{Event, Model, Plugin};
use serde_json::json;

use crate::support::*;

fn scripted(dir: &Path, script: &Script) -> Builder {
    let fake = Plugin::new()
        .wire(ScriptedWire(script.clone()))
        .provider(ScriptedProvider);
    Builder::new(dir, dir.join("agent"))
        .plugin("fake", fake)
        .model("fake/m")
}

async fn said(session: &Session, text: &str) -> String {
    session.prompt(Prompt::text(text), |_| ()).await.unwrap();
    session.last_assistant_text().unwrap()
}

#[tokio::test]
async fn kernels_of_different_directories_work_beside_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let mut runtimes = Vec::new();
    for (name, retry) in [("one", true), ("two", false)] {
        let home = dir.path().join(name);
        std::fs::create_dir_all(home.join("agent")).unwrap();
        let settings = json!({"retry": {"enabled": retry}});
        std::fs::write(home.join("agent/settings.json"), settings.to_string()).unwrap();
        let script = Script::new([Reply::Text(name), Reply::Text("again")]);
        let runtime = scripted(&home, &script).build();
        runtimes.push((name, retry, home, script, runtime.await.unwrap()));
    }
    let [one, two] = &runtimes[..] else {
        unreachable!("there are two");
    };
    let (one_said, two_said) = (one.4.session(), two.4.session());
    let answers = tokio::join!(said(&one_said, "hello one"), said(&two_said, "hello two"));
    assert_eq!(answers, ("one".to_owned(), "two".to_owned()));
    // Another session in one of them leaves the other where it is.
    one.4.new_session(None).await.unwrap().unwrap();
    assert_eq!(said(&two.4.session(), "more").await, "again");
    for (name, retry, home, script, runtime) in &runtimes {
        let retries = runtime.kernel().settings().is_on("retry.enabled");
        assert_eq!(retries, Some(*retry));
        assert!(script.requests()[0].contains(&format!("user:hello {name}")));
        let file = runtime.session().file().unwrap();
        assert!(file.starts_with(home.join("agent/sessions")));
        runtime.close().await;
    }
}

#[tokio::test]
async fn settings_and_tools_of_the_program_stand_over_those_of_files_and_plugins() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("agent")).unwrap();
    let file = dir.path().join("agent/settings.json");
    std::fs::write(&file, r#"{"steeringMode": "all", "x": 1}"#).unwrap();
    let script = Script::new([
        calls([("1", "echo", json!({"text": "mine"}))]),
        Reply::Text("done"),
    ]);
    let runtime = scripted(dir.path(), &script)
        .session(SessionChoice::InMemory)
        .settings(json!({"retry": {"enabled": false}}))
        .thinking(ThinkingLevel::Off)
        .append_system_prompt("Speak like a clock.")
        .custom_tool(echo("echo"))
        .build()
        .await
        .unwrap();
    let session = runtime.session();
    assert!(runtime.kernel().settings().get("x").is_null());
    session.set_auto_retry(true).await.unwrap();
    let unchanged = std::fs::read_to_string(&file).unwrap();
    assert_eq!(unchanged, r#"{"steeringMode": "all", "x": 1}"#);
    assert_eq!(said(&session, "echo it").await, "done");
    assert_eq!(result_texts(&session), [("mine".to_owned(), false)]);
    assert!(session.system_prompt().contains("Speak like a clock."));
    assert_eq!(session.file(), None);
}

#[tokio::test]
async fn what_cannot_be_built_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let new = || Builder::new(dir.path(), dir.path().join("agent"));
    let nothing = new().build().await.unwrap_err();
    assert!(matches!(nothing, BuildError::Open(_)), "{nothing}");
    let nameless = new().custom_tool(echo("")).build().await.unwrap_err();
    assert!(matches!(nameless, BuildError::Plugin { .. }), "{nameless}");
    let missing = new().library("no/such.so").build().await.unwrap_err();
    assert!(matches!(missing, BuildError::Boot(_)), "{missing}");
    let later = new().model_may_be_missing().build().await.unwrap();
    assert_eq!(later.session().model(), None);
}

#[tokio::test]
async fn a_subscription_is_a_stream_that_ends_with_the_session_that_was_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let script = Script::new([Reply::Text("Answer.")]);
    let runtime = scripted(dir.path(), &script).build().await.unwrap();
    let events = runtime.session().subscribe();
    said(&runtime.session(), "hello").await;
    runtime.new_session(None).await.unwrap().unwrap();
    let words: Vec<String> = events
        .filter_map(async |event| word(&event))
        .collect()
        .await;
    assert_eq!(words.first().unwrap(), "agent_start");
    assert_eq!(words.last().unwrap(), "agent_settled");
}

#[tokio::test]
async fn an_imported_session_goes_on_where_it_was() {
    // interfaces §11
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let script = Script::new(["one", "two", "three"].map(Reply::Text));
    let elsewhere = scripted(there.path(), &script).build().await.unwrap();
    said(&elsewhere.session(), "said elsewhere").await;
    let file = elsewhere.session().file().unwrap();
    elsewhere.close().await;

    let runtime = scripted(here.path(), &script).build().await.unwrap();
    let missing = runtime.import_session(Path::new("none.jsonl")).await;
    assert!(missing.is_err());
    let session = runtime.import_session(&file).await.unwrap().unwrap();
    assert_eq!(session.header().id, elsewhere.session().header().id);
    assert_eq!(session.cwd(), there.path());
    let copy = session.file().unwrap();
    assert!(copy.starts_with(here.path()) && copy != file);
    said(&session, "go on").await;
    assert_eq!(script.requests()[1].len(), 4);
}

#[tokio::test]
async fn a_prompt_that_is_dropped_gives_its_run_up() {
    let script = Script::new([
        Reply::Hang("half"),
        Reply::Text("whole"),
        Reply::Text("more"),
        Reply::Hang("half a summary"),
        Reply::Text("at last"),
    ]);
    let settings = json!({"compaction": {"keepRecentTokens": 1}});
    let mut scene = scene_with(script, Plugin::new(), settings).await;
    let session = scene.session.clone();
    let prompt = session.prompt(Prompt::text("never mind"), |_| ());
    let begun = async {
        while !matches!(
            *scene.events.recv().await.unwrap(),
            Event::MessageUpdate { .. }
        ) {}
    };
    tokio::select! {
        _ = prompt => unreachable!("the model hangs"),
        () = begun => {}
    }
    assert!(session.is_idle() && !session.is_running());
    assert_eq!(said(&session, "now").await, "whole");
    said(&session, "and").await;
    let requests = scene.script.requests();
    assert_eq!(requests[1][1..], ["user:never mind", "user:now"]);

    let compaction = session.compact(None);
    let compacting = async {
        while !matches!(
            *scene.events.recv().await.unwrap(),
            Event::CompactionStart { .. }
        ) {}
        assert!(session.is_compacting());
    };
    tokio::select! {
        _ = compaction => unreachable!("the model hangs"),
        () = compacting => {}
    }
    assert!(session.is_idle() && !session.is_compacting());
}

/// What a program may hand to another thread, as far as the compiler is concerned.
#[test]
fn all_futures_may_move_between_threads() {
    fn sent<F: Future + Send>(future: F) {
        drop(future);
    }
    fn shared<T: Send + Sync + 'static>() {}
    fn all(runtime: &Runtime, session: &Session, model: &Model, id: &EntryId) {
        sent(Builder::new("", "").build());
        sent(runtime.new_session(None));
        sent(runtime.switch_session(Path::new("")));
        sent(runtime.import_session(Path::new("")));
        sent(runtime.fork(id, Position::At));
        sent(runtime.clone_session());
        sent(runtime.close());
        sent(runtime.kernel().open_session(OpenOptions::default()));
        sent(session.prompt(Prompt::text(""), |_| ()));
        sent(session.steer("", Vec::new()));
        sent(session.follow_up("", Vec::new()));
        sent(session.abort());
        sent(session.wait_idle());
        sent(session.clear_queue());
        sent(session.compact(None));
        sent(session.set_model(model, SelectOptions::default()));
        sent(session.cycle_model(Direction::Forward));
        sent(session.find_model(&ModelWish::default()));
        sent(session.set_thinking_level(ThinkingLevel::Off, pliant_kernel::session::Keep::Session));
        sent(session.cycle_thinking_level());
        sent(session.execute_bash("", BashOptions::default()));
        sent(session.navigate_tree(id, NavigateOptions::default()));
        sent(session.set_name(""));
        sent(session.append(String::new(), None));
        sent(session.stats());
        sent(session.context_usage());
        sent(session.close(""));
    }
    let _ = all;
    shared::<Runtime>();
    shared::<Session>();
    shared::<pliant_kernel::Kernel>();
}
