//! Another session in the place of the current one, and what is told of a session.

use pliant_tests::{ModelServer, Rpc, TempHome, reply};
use serde_json::{Value, json};

use super::spoken;

/// Two questions and their answers.
fn conversation(more: &[&str]) -> (ModelServer, TempHome, Rpc) {
    let answers = ["answer one", "answer two"].iter().chain(more);
    let server = ModelServer::start(answers.map(|text| reply::text(text)));
    server.allow_rewritten_history();
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    rpc.turn("question one");
    rpc.turn("question two");
    (server, home, rpc)
}

fn texts(rpc: &mut Rpc) -> Vec<String> {
    let messages = rpc.ok(json!({"type": "get_messages"}));
    spoken(&messages["messages"])
        .into_iter()
        .map(|(_, text)| text)
        .collect()
}

fn header(state: &Value) -> Value {
    let file = state["sessionFile"].as_str().expect("it is stored");
    let text = std::fs::read_to_string(file).expect("it is there");
    serde_json::from_str(text.lines().next().expect("it has a header")).expect("it is JSON")
}

#[test]
fn a_new_session_takes_the_place_of_one_that_is_stored() {
    let (server, home, mut rpc) = conversation(&["answer three"]);
    let old = rpc.state();
    let parent = json!({"type": "new_session", "parentSession": old["sessionFile"]});
    assert_eq!(rpc.ok(parent), json!({"cancelled": false}));
    let new = rpc.state();
    assert_ne!(new["sessionId"], old["sessionId"]);
    assert_eq!(new["messageCount"], 0);
    assert_eq!(home.session_files().len(), 1);
    rpc.turn("question three");
    assert_eq!(header(&new)["parentSession"], old["sessionFile"]);
    // And back again, with all that it was.
    rpc.ok(json!({"type": "set_session_name", "name": " other "}));
    let switch = json!({"type": "switch_session", "sessionPath": old["sessionFile"]});
    assert_eq!(rpc.ok(switch.clone()), json!({"cancelled": false}));
    assert_eq!(rpc.state(), old);
    // It is open already: nothing changes.
    assert_eq!(rpc.ok(switch), json!({"cancelled": false}));
    assert_eq!(rpc.state(), old);
    let switch = json!({"type": "switch_session", "sessionPath": new["sessionFile"]});
    rpc.ok(switch);
    assert_eq!(rpc.state()["sessionName"], "other");
    rpc.end();
    server.finish();
}

#[test]
fn a_run_ends_with_its_session() {
    for command in ["new_session", "clone"] {
        let server = ModelServer::start([reply::text("one"), reply::text("partial").hold_after(2)]);
        let home = TempHome::with_model(&server);
        let mut rpc = home.rpc();
        rpc.turn("question one");
        rpc.ok(json!({"type": "prompt", "message": "go"}));
        rpc.next("a delta", |record| {
            record["assistantMessageEvent"]["type"] == "text_delta"
        });
        let file = home.session_files().remove(0);
        let id = rpc.send(json!({"type": command}));
        assert_eq!(
            rpc.answer(&id)["data"],
            json!({"cancelled": false}),
            "{command}"
        );
        // All that was said of it came first.
        let records = rpc.records();
        assert_eq!(
            records[records.len() - 2],
            json!({"type": "agent_settled", "aborted": true})
        );
        assert_eq!(rpc.state()["isStreaming"], false);
        rpc.end();
        let text = std::fs::read_to_string(file).expect("it is stored");
        let last: Value = serde_json::from_str(text.lines().last().expect("lines")).expect("JSON");
        assert_eq!(last["message"]["stopReason"], "aborted");
        server.finish();
    }
}

#[test]
fn a_session_that_cannot_be_opened_leaves_the_current_one_open() {
    let (server, home, mut rpc) = conversation(&["still here"]);
    let before = rpc.state();
    let garbage = home.write("garbage.jsonl", "this is\nno session\n");
    for path in [garbage.display().to_string(), "/".to_owned(), String::new()] {
        rpc.error(json!({"type": "switch_session", "sessionPath": path}));
        assert_eq!(rpc.state(), before);
    }
    assert_eq!(home.read("garbage.jsonl"), "this is\nno session\n");
    rpc.turn("still there?");
    rpc.end();
    server.finish();
}

#[test]
fn a_fork_holds_what_came_before_and_gives_the_text_back() {
    let (server, home, mut rpc) = conversation(&["other answer"]);
    let old = rpc.state();
    let stored = std::fs::read(&home.session_files()[0]).expect("it is there");
    let messages = rpc.ok(json!({"type": "get_fork_messages"}))["messages"].take();
    let texts_to_fork: Vec<_> = messages
        .as_array()
        .expect("a list")
        .iter()
        .map(|message| &message["text"])
        .collect();
    assert_eq!(texts_to_fork, ["question one", "question two"]);
    for wrong in [json!("nope"), old["sessionId"].clone()] {
        let error = rpc.error(json!({"type": "fork", "entryId": wrong}));
        assert_eq!(error, "Invalid entry ID for forking");
    }
    // An answer is not where one can fork.
    let entries = rpc.ok(json!({"type": "get_entries"}));
    let error = rpc.error(json!({"type": "fork", "entryId": entries["leafId"]}));
    assert_eq!(error, "Invalid entry ID for forking");
    let fork = json!({"type": "fork", "entryId": messages[1]["entryId"]});
    assert_eq!(
        rpc.ok(fork),
        json!({"text": "question two", "cancelled": false})
    );
    let new = rpc.state();
    assert_ne!(new["sessionId"], old["sessionId"]);
    assert_eq!(texts(&mut rpc), ["question one", "answer one"]);
    rpc.turn("another question two");
    assert_eq!(header(&new)["parentSession"], old["sessionFile"]);
    assert_eq!(
        std::fs::read(old["sessionFile"].as_str().expect("a path")).expect("it is there"),
        stored
    );
    let messages = rpc.ok(json!({"type": "get_fork_messages"}))["messages"].take();
    rpc.ok(json!({"type": "fork", "entryId": messages[0]["entryId"]}));
    assert_eq!(texts(&mut rpc), [""; 0]);
    rpc.end();
    let said = server
        .finish()
        .pop()
        .expect("requests")
        .conversation()
        .len();
    assert_eq!(said, 3);
}

#[test]
fn a_clone_is_the_whole_branch_in_a_new_session() {
    let (server, home, mut rpc) = conversation(&[]);
    let old = rpc.state();
    assert_eq!(
        rpc.ok(json!({"type": "clone"})),
        json!({"cancelled": false})
    );
    let new = rpc.state();
    assert_ne!(new["sessionId"], old["sessionId"]);
    assert_eq!(new["messageCount"], old["messageCount"]);
    assert_eq!(header(&new)["parentSession"], old["sessionFile"]);
    let [one, other] = home.session_files().try_into().expect("two files");
    let entries = |file| {
        std::fs::read_to_string(file)
            .expect("it is there")
            .lines()
            .skip(1)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(entries(&one), entries(&other));
    rpc.end();
    server.finish();
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    rpc.error(json!({"type": "clone"}));
    rpc.end();
}

#[test]
fn a_name_is_trimmed_told_and_kept() {
    let (server, _home, mut rpc) = conversation(&[]);
    assert_eq!(
        rpc.error(json!({"type": "set_session_name", "name": "  "})),
        "Session name cannot be empty"
    );
    assert_eq!(
        rpc.ok(json!({"type": "set_session_name", "name": " Mine \n"})),
        Value::Null
    );
    assert_eq!(
        rpc.event("session_info_changed"),
        json!({"type": "session_info_changed", "name": "Mine"})
    );
    let state = rpc.state();
    assert_eq!(state["sessionName"], "Mine");
    rpc.ok(json!({"type": "new_session"}));
    assert_eq!(rpc.state().get("sessionName"), None);
    rpc.ok(json!({"type": "switch_session", "sessionPath": state["sessionFile"]}));
    assert_eq!(rpc.state(), state);
    rpc.end();
    server.finish();
}

#[test]
fn the_numbers_of_a_session_count_every_branch() {
    let server = ModelServer::start([
        reply::tool_call("bash", json!({"command": "echo 1"})).usage(100, 10),
        reply::text("one").usage(150, 20).cached(50),
        reply::text("two").usage(200, 30),
    ]);
    server.allow_rewritten_history();
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    let empty = rpc.ok(json!({"type": "get_session_stats"}));
    assert_eq!(
        empty["contextUsage"],
        json!({"tokens": 0, "contextWindow": 128_000, "percent": 0.0})
    );
    rpc.turn("first");
    let entry = rpc.ok(json!({"type": "get_fork_messages"}))["messages"][0]["entryId"].take();
    let arrived = rpc.ok(json!({"type": "navigate_tree", "targetId": entry}));
    assert_eq!(arrived, json!({"cancelled": false, "editorText": "first"}));
    rpc.turn("second");
    let stats = rpc.ok(json!({"type": "get_session_stats"}));
    let counts = [
        "userMessages",
        "assistantMessages",
        "toolCalls",
        "toolResults",
    ]
    .map(|name| stats[name].as_u64());
    assert_eq!(counts, [2, 3, 1, 1].map(Some));
    assert_eq!(
        stats["tokens"],
        json!({"input": 400, "output": 60, "cacheRead": 50, "cacheWrite": 0, "total": 510})
    );
    assert_eq!(stats["sessionId"], rpc.state()["sessionId"]);
    assert_eq!(stats["contextUsage"]["tokens"], 230);
    rpc.end();
    server.finish();
}

#[test]
fn a_session_in_memory_has_no_file_and_its_successors_have_none() {
    let server = ModelServer::start([reply::text("one")]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc_with(&["--no-session"]);
    rpc.turn("hi");
    assert_eq!(rpc.state().get("sessionFile"), None);
    assert_eq!(
        rpc.ok(json!({"type": "get_session_stats"}))
            .get("sessionFile"),
        None
    );
    rpc.ok(json!({"type": "new_session"}));
    assert_eq!(rpc.state().get("sessionFile"), None);
    rpc.error(json!({"type": "export_html"}));
    rpc.end();
    assert!(home.session_files().is_empty());
    server.finish();
}

#[test]
fn what_can_be_called_by_a_slash_is_listed_with_where_it_comes_from() {
    let server = ModelServer::start([reply::text("one")]);
    let home = TempHome::with_model(&server);
    let skill = home.write_agent(
        "skills/sk/SKILL.md",
        "---\nname: sk\ndescription: A skill\n---\nbody",
    );
    let prompt = home.write_agent(
        "prompts/tp.md",
        "---\ndescription: A template\n---\nhello $1",
    );
    let script = home.write_agent(
        "extensions/x.rhai",
        "register_command(\"xc\", #{ description: \"cmd\", run: |args, ctx| () });",
    );
    let mut rpc = home.rpc();
    let mut commands = rpc.ok(json!({"type": "get_commands"}))["commands"].take();
    // What ships comes behind the user's own.
    let all = commands.as_array_mut().expect("a list");
    let shipped = all.extract_if(.., |one| one["sourceInfo"]["source"] == "builtin");
    let shipped: Vec<String> = shipped.map(|one| one["name"].to_string()).collect();
    assert!(
        shipped.contains(&"\"skill:write-extension\"".to_owned()),
        "{shipped:?}"
    );
    let info = |file: &std::path::Path| {
        json!({
            "path": file, "source": "auto", "scope": "user", "origin": "top-level", "baseDir": home.agent_dir(),
        })
    };
    assert_eq!(
        commands,
        json!([
            {"name": "xc", "description": "cmd", "source": "extension", "sourceInfo": info(&script)},
            {"name": "tp", "description": "A template", "source": "prompt", "sourceInfo": info(&prompt)},
            {"name": "skill:sk", "description": "A skill", "source": "skill", "sourceInfo": info(&skill)},
        ])
    );
    assert_eq!(
        rpc.ok(json!({"type": "prompt", "message": "/xc"})),
        json!({"disposition": "handled"})
    );
    rpc.turn("/tp world");
    rpc.end();
    assert_eq!(server.finish()[0].conversation()[0].1, "hello world");
}
