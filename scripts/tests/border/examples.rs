//! Every script in `examples/` runs, and does what its first comment says.

use std::path::Path;

use pliant_kernel::registry::{HookPoint, Kind};
use pliant_scripts::reference;
use pliant_sdk::view::View;
use serde_json::{Value, json};

use crate::kit::{Bench, Fake, load, load_with, request, user};

pub(crate) fn example(name: &str) -> String {
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
/// What a renderer shows, in plain text; `-` for nothing.
async fn shown(bench: &Bench, kind: Kind, name: &str, payload: Value) -> String {
    let view = bench.invoke(kind, name, "render", payload).await.unwrap();
    let view: Option<View> = serde_json::from_value(view).unwrap();
    view.map_or_else(|| "-".to_owned(), |view| view.to_plain())
}

#[tokio::test]
async fn card_is_sent_as_a_text_and_shown_as_a_box() {
    let fake = Fake::default().on("session.send_message", |_| Ok(Value::Null));
    let bench = load_with(&example("card.rhai"), fake).await;
    let run = bench.invoke(Kind::Command, "card", "run", json!("21 Rome"));
    run.await.unwrap();
    let sent = bench.fake.asked("session.send_message")[0]["message"].clone();
    assert_eq!(sent["content"], "It is 21 degrees in Rome.");
    let payload = json!({"message": sent, "options": {"expanded": true, "width": 40}});
    let view = shown(&bench, Kind::MessageRenderer, "card", payload).await;
    assert_eq!(
        view,
        "Rome\n  21 °C\n  Measured by looking out of the window."
    );
}

#[tokio::test]
async fn shopping_list_shows_what_it_keeps() {
    let fake = Fake::default().on("session.append", Ok);
    let bench = load_with(&example("shopping-list.rhai"), fake).await;
    let run = bench.invoke(Kind::Command, "buy", "run", json!("milk "));
    run.await.unwrap();
    let payload = json!({"entry": bench.fake.asked("session.append")[0]});
    let view = shown(&bench, Kind::EntryRenderer, "shopping", payload).await;
    assert_eq!(view, "☐ milk");
}

#[tokio::test]
async fn short_bash_shows_calls_of_bash_and_no_others() {
    let fake = Fake::default().on("view.next", |_| Ok(json!("what pliant knows of it")));
    let bench = load_with(&example("short-bash.rhai"), fake).await;
    let view = async |payload: Value| shown(&bench, Kind::ToolRenderer, "tools", payload).await;
    let input = json!({"command": "ls\n-l"});
    let call = json!({"part": "call", "toolName": "bash", "input": input});
    assert_eq!(view(call).await, "$ ls");
    let result = json!({"content": [], "isError": true});
    let result = json!({"part": "result", "toolName": "bash", "input": input, "result": result});
    assert_eq!(view(result).await, "failed\nwhat pliant knows of it");
    let other = json!({"part": "call", "toolName": "read", "input": {}});
    assert_eq!(view(other).await, "-");
}

#[tokio::test]
async fn link_issues_links_issues_and_nothing_else() {
    let bench = load(&example("link-issues.rhai")).await;
    let text = async |surface: &str, markdown: &str| {
        let payload = json!({"markdown": markdown, "surface": surface});
        let kind = Kind::MarkdownTransformer;
        let said = bench.invoke(kind, "markdown", "transform", payload).await;
        said.unwrap().as_str().unwrap().to_owned()
    };
    let linked = "see [#12](https://tracker.example/issues/12) and\n# no #x #";
    assert_eq!(text("assistant", "see #12 and\n# no #x #").await, linked);
    assert_eq!(text("user", "see #12").await, "see #12");
}

#[tokio::test]
async fn branch_names_offers_the_branches_that_fit() {
    let fake = Fake::default().stream("exec.stream", |_| {
        let exit = json!({"code": 0, "timedOut": false});
        let names = b"omain\nmaybe\nother\n";
        Ok(vec![names.to_vec(), format!("x{exit}").into_bytes()])
    });
    let bench = load_with(&example("branch-names.rhai"), fake).await;
    let typed = json!({"line": "merge @@ma", "column": 10, "word": "@@ma"});
    let found = bench
        .invoke(Kind::Autocomplete, "@@", "suggest", typed)
        .await;
    let found = found.unwrap();
    let names: Vec<&Value> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["value"])
        .collect();
    assert_eq!(names, ["main", "maybe"]);
}

#[tokio::test]
async fn undo_key_goes_back_to_before_the_last_prompt() {
    let fake = Fake::default()
        .on("session.read", |_| {
            let prompt =
                |id: &str| json!({"type": "message", "id": id, "message": {"role": "user"}});
            let answer = json!({"type": "message", "id": "a", "message": {"role": "assistant"}});
            Ok(json!([prompt("first"), answer, prompt("last"), answer]))
        })
        .on("session.navigate", |_| Ok(json!({})));
    let bench = load_with(&example("undo-key.rhai"), fake).await;
    let pressed = bench.invoke(Kind::Shortcut, "ctrl+alt+z", "press", Value::Null);
    pressed.await.unwrap();
    let asked = bench.fake.asked("session.navigate");
    assert_eq!(asked[0]["targetId"], "last", "{asked:?}");
}

#[tokio::test]
async fn docs_server_is_taken_from_another_port() {
    let fake = Fake::default()
        .on("registry.look_again", |_| Ok(Value::Null))
        .on("mcp.claim", |_| Ok(Value::Null))
        .on("mcp.servers", |_| Ok(json!([1])))
        .on("ui.notify", |_| Ok(Value::Null));
    let bench = load_with(&example("docs-server.rhai"), fake).await;
    let url = || bench.contribution(Kind::McpServer, "docs").spec["config"]["url"].clone();
    assert_eq!(url(), "http://localhost:8123/mcp");
    let run = bench.invoke(Kind::Command, "local-docs", "run", json!("9000"));
    run.await.unwrap();
    assert_eq!(url(), "http://localhost:9000/mcp");
    let change = bench.hook("mcp_servers_change", json!({"servers": [1, 2]}));
    change.await.unwrap();
    let logged = &bench.fake.asked("log.write")[0]["message"];
    assert_eq!(logged, "t.rhai: 2 servers now");
}

#[tokio::test]
async fn own_words_are_tools_at_once_and_in_the_next_session() {
    let fake = Fake::default()
        .on("registry.look_again", |_| Ok(Value::Null))
        .on("state.put", |_| Ok(Value::Null))
        .on("state.get", |_| Ok(json!({"kept": "as before"})));
    let bench = load_with(&example("own-words.rhai"), fake).await;
    let teach = bench.invoke(Kind::Command, "teach", "run", json!("greet Hello there! "));
    teach.await.unwrap();
    assert_eq!(bench.tool_text("greet", json!({})).await, "Hello there!");
    let kept = bench.fake.asked("state.put")[0]["value"].clone();
    assert_eq!(kept, json!({"greet": "Hello there!", "kept": "as before"}));
    bench.hook("session_start", json!({})).await.unwrap();
    assert_eq!(bench.tool_text("kept", json!({})).await, "as before");
}

#[tokio::test]
async fn team_skills_names_the_folders_of_the_team() {
    let bench = load(&example("team-skills.rhai")).await;
    let answer = bench.hook(
        "resources_discover",
        json!({"cwd": "/work", "reason": "startup"}),
    );
    assert_eq!(
        answer.await.unwrap(),
        json!({"skillPaths": ["/work/../shared/skills"], "promptPaths": ["/work/../shared/prompts"]})
    );
}

#[tokio::test]
async fn waiting_bell_says_what_is_waited_for() {
    let bench = load(&example("waiting-bell.rhai")).await;
    let event = json!({"reason": "ui_prompt", "kind": "confirm", "title": "Sure?"});
    bench.hook("ui_prompt_start", event.clone()).await.unwrap();
    bench.hook("ui_prompt_end", event).await.unwrap();
    let logged = bench.fake.asked("log.write");
    assert_eq!(
        logged[0]["message"],
        "t.rhai: waiting for the user: confirm \"Sure?\""
    );
    assert_eq!(logged[1]["message"], "t.rhai: waited 0 s");
}

#[test]
fn every_event_has_an_example() {
    let examples = all_examples();
    let shown = |point: &&HookPoint| examples.contains(&format!("\non(\"{}\"", point.name()));
    let lacking = HookPoint::ALL.iter().filter(|point| !shown(point));
    let lacking: Vec<&str> = lacking.map(|point| point.name()).collect();
    assert_eq!(lacking, [""; 0]);
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
    let tests = [
        include_str!("examples.rs"),
        include_str!("event_examples.rs"),
    ]
    .concat();
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            tests.contains(&format!("example(\"{name}\")")),
            "{name} has no test"
        );
    }
}
