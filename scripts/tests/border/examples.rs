//! Every script in `examples/` runs, and does what its first comment says.

use std::path::Path;

use pliant_kernel::registry::{HookPoint, Kind};
use pliant_scripts::reference;
use serde_json::{Value, json};

use crate::kit::{Fake, load, load_with, request, user};

fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn all_examples() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect()
}

#[tokio::test]
async fn block_rm_stops_forced_recursive_deletion_and_nothing_else() {
    let bench = load(&example("block-rm.rhai")).await;
    let blocked = async |tool: &str, command: &str| {
        let event = json!({"toolName": tool, "input": {"command": command}});
        let answer = bench.hook("tool_call", event).await.unwrap();
        assert!(
            answer == Value::Null || answer["reason"].is_string(),
            "{answer}"
        );
        answer["block"] == json!(true)
    };
    assert!(blocked("bash", "rm -rf build").await);
    assert!(blocked("bash", "cd x && rm -fr .").await);
    assert!(!blocked("bash", "rm old.txt").await);
    assert!(!blocked("bash", "ls -rf").await);
    assert!(!blocked("write", "rm -rf build").await);
}

#[tokio::test]
async fn word_count_counts() {
    let fake = Fake::default().stream("fs.read", |request| {
        Ok(vec![match request["path"].as_str() {
            Some("a.txt") => b"one two\nthree\n".to_vec(),
            _ => b"\0\0".to_vec(),
        }])
    });
    let bench = load_with(&example("word-count.rhai"), fake).await;
    let text = async |path: &str| bench.tool_text("word_count", json!({"path": path})).await;
    assert_eq!(text("a.txt").await, "a.txt: 2 lines, 3 words");
    assert_eq!(text("b.bin").await, "b.bin is not a text file");
}

#[tokio::test]
async fn two_models_share_the_work() {
    let fake = Fake::default().on("session.scoped_models", |_| {
        let model = |id: &str| json!({"model": {"provider": "p", "id": id, "api": "x"}});
        Ok(json!([model("thinker"), model("worker")]))
    });
    let bench = load_with(&example("two-models.rhai"), fake).await;
    for (reason, model) in [
        ("user", "p/thinker"),
        ("continuation", "p/worker"),
        ("retry", "p/thinker"),
    ] {
        let asked = json!({ "reason": reason });
        let said = bench
            .invoke(Kind::VirtualModel, "duo/auto", "route", asked)
            .await;
        assert_eq!(said.unwrap(), json!({ "model": model }));
    }
    let bench = load(&example("two-models.rhai")).await;
    let asked = bench.invoke(
        Kind::VirtualModel,
        "duo/auto",
        "route",
        json!({"reason": "user"}),
    );
    let error = asked.await.unwrap_err();
    assert!(error.message.contains("enabledModels"), "{error}");
}

#[tokio::test]
async fn bookmark_names_the_place_and_takes_the_name_away() {
    let fake = Fake::default()
        .on("session.read", |_| Ok(json!("e7")))
        .on("session.set_label", |_| Ok(Value::Null))
        .on("ui.show", |_| Ok(Value::Null));
    let bench = load_with(&example("bookmark.rhai"), fake).await;
    for args in [" before it ", ""] {
        let run = bench.invoke(Kind::Command, "bookmark", "run", json!(args));
        run.await.unwrap();
    }
    assert_eq!(
        bench.fake.asked("session.set_label"),
        [
            json!({"entryId": "e7", "label": "before it"}),
            json!({"entryId": "e7", "label": null})
        ]
    );
    let offered = bench.invoke(Kind::Command, "bookmark", "complete", json!("a"));
    assert_eq!(
        offered.await.unwrap(),
        json!([{"value": "after", "label": "after"}])
    );
}

#[tokio::test]
async fn look_only_blocks_what_is_no_reading_when_the_flag_is_given() {
    for (given, tool, blocked) in [
        (true, "write", true),
        (true, "read", false),
        (false, "write", false),
    ] {
        let fake = Fake::default().stream("flag.get", move |request| {
            assert_eq!(request["name"], "look-only");
            Ok(vec![given.to_string().into_bytes()])
        });
        let bench = load_with(&example("look-only.rhai"), fake).await;
        let event = json!({"toolName": tool, "input": {}});
        let answer = bench.hook("tool_call", event).await.unwrap();
        assert_eq!(answer["block"] == json!(true), blocked, "{given} {tool}");
    }
}

#[tokio::test]
async fn parrot_says_what_was_said() {
    let bench = load(&example("parrot.rhai")).await;
    let asked = request(&[user("hello  you")]);
    let said = bench.invoke(Kind::Provider, "parrot", "stream", asked);
    let said = said.await.unwrap();
    assert_eq!(
        (&said["content"][0]["text"], &said["stopReason"]),
        (&json!("hello you "), &json!("stop"))
    );
}

#[tokio::test]
async fn town_crier_tells_and_hears() {
    let fake = Fake::default().on("bus.emit", |_| Ok(Value::Null));
    let bench = load_with(&example("town-crier.rhai"), fake).await;
    let cry = bench.invoke(Kind::Command, "cry", "run", json!(" dinner "));
    cry.await.unwrap();
    let told = bench.fake.asked("bus.emit");
    assert_eq!(
        told,
        [json!({"channel": "town:news", "data": {"what": "dinner"}})]
    );
    let news = told[0]["data"].clone();
    let hear = bench.invoke(Kind::Hook, "bus:town:news", "bus", news);
    hear.await.unwrap();
    let logged = &bench.fake.asked("log.write")[0]["message"];
    assert_eq!(logged, "t.rhai: heard: dinner");
}

#[tokio::test]
async fn quick_question_changes_only_what_begins_with_a_question_mark() {
    let bench = load(&example("quick-question.rhai")).await;
    let typed = async |text: &str| bench.hook("input", json!({"text": text})).await.unwrap();
    assert_eq!(
        typed("? why").await,
        json!({"action": "transform", "text": "why\n\nAnswer in one sentence."})
    );
    assert_eq!(typed("why?").await, Value::Null);
    assert_eq!(typed("").await, Value::Null);
}

#[tokio::test]
async fn hide_keys_hides_keys_and_leaves_the_rest() {
    let bench = load(&example("hide-keys.rhai")).await;
    let image = json!({"type": "image", "data": "sk-", "mimeType": "image/png"});
    let text = json!({"type": "text", "text": "the key is sk-123 here"});
    let answer = bench.hook("tool_result", json!({"content": [image, text]}));
    assert_eq!(
        answer.await.unwrap(),
        json!({"content": [image, {"type": "text", "text": "the key is [key] here"}]})
    );
}

/// Events that no example shows yet. What gets an example leaves the list; a new event comes with one.
const WITHOUT_EXAMPLE: &[&str] = &[
    "before_agent_start",
    "agent_start",
    "agent_end",
    "agent_before_settle",
    "agent_settled",
    "turn_start",
    "turn_end",
    "context",
    "context_with_system",
    "before_provider_headers",
    "before_provider_request",
    "after_provider_response",
    "provider_stream_event",
    "message_start",
    "message_update",
    "message_end",
    "tool_execution_start",
    "tool_execution_update",
    "tool_execution_end",
    "session_start",
    "session_info_changed",
    "session_before_switch",
    "session_before_fork",
    "session_before_compact",
    "session_compact",
    "session_compact_failed",
    "session_before_tree",
    "session_tree",
    "session_shutdown",
    "model_select",
    "thinking_level_select",
    "user_bash",
    "project_trust",
];

#[test]
fn every_event_has_an_example_or_is_known_to_lack_one() {
    let examples = all_examples();
    let shown = |point: &&HookPoint| examples.contains(&format!("\non(\"{}\"", point.name()));
    let lacking = HookPoint::ALL.iter().filter(|point| !shown(point));
    let lacking: Vec<&str> = lacking.map(|point| point.name()).collect();
    assert_eq!(lacking, WITHOUT_EXAMPLE);
}

/// What is registered by a function has an example that shows it.
#[test]
fn every_way_to_register_has_an_example() {
    let examples = all_examples();
    let reference = reference(None);
    let group = reference.split("## ").nth(1).unwrap();
    let ways: Vec<&str> = group
        .lines()
        .filter_map(|line| line.strip_prefix("- `")?.split('(').next())
        .collect();
    assert!(ways.contains(&"register_tool"), "{ways:?}");
    for way in ways {
        let called = format!("\n{way}(");
        assert!(examples.contains(&called), "{way} has no example");
    }
}

#[test]
fn every_example_has_a_test_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let tests = include_str!("examples.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            tests.contains(&format!("example(\"{name}\")")),
            "{name} has no test"
        );
    }
}
