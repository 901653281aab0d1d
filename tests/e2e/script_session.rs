//! What a script asks of a real session: every function of the naming table that needs one
//! (`extensions.md` §5, §7.3), and another session in the place of the one a command began in.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use pliant_tests::{ModelServer, TempHome, reply};
use serde_json::{Value, json};

/// Notes what each expression comes to.
const ASKS: &str = r#"
fn note(name, value) { append_entry("said", #{ name: name, value: value }); }

register_command("ask", #{ run: |args, ctx| {
    note("cwd", ctx.cwd == ctx.session.cwd());
    note("mode", ctx.mode);
    note("idle", ctx.is_idle());
    note("pending", ctx.has_pending());
    note("trusted", ctx.is_project_trusted());
    note("model", ctx.model.id);
    note("level", ctx.thinking_level);
    note("usage", ctx.usage().contextWindow > 0);
    note("prompt", ctx.system_prompt().contains("pliant"));
    note("options", ctx.system_prompt_options().selectedTools);
    note("active", active_tools());
    set_active_tools(["read"]);
    note("fewer", active_tools());
    note("all", all_tools().some(|tool| tool.name == "bash" && !tool.active));
    note("commands", commands().some(|command| command.name == "ask"));
    note("settings", settings("thinkingBudgets.low"));
    note("models", models().len() > 0);
    set_session_name("named");
    note("name", ctx.session.name());
    let first = ctx.session.branch()[0].id;
    set_label(first, "start");
    note("label", ctx.session.label(first));
    note("entry", ctx.session.entry(first).id == first);
    note("leaf", ctx.session.leaf_entry().id == ctx.session.leaf_id());
    note("entries", ctx.session.entries().len() >= ctx.session.branch().len());
    note("header", ctx.session.header().id == ctx.session.id());
    note("file", ctx.session.file().starts_with(ctx.session.dir()));
    note("tree", ctx.session.tree().nodes.len() > 0);
    note("context", ctx.session.context_entries().len() > 0);
    note("projection", ctx.session.projection().messages.len() > 0);
    state_put("kept", #{ n: 1 });
    note("state", state_get("kept").n);
    bus_emit("news", "heard");
    send_message(#{ customType: "extra", content: "by the way", display: true }, #{ triggerTurn: false });
    set_thinking_level("off");
    note("set model", set_model(ctx.model.provider + "/" + ctx.model.id));
} });

bus_on("news", |data| note("bus", data));

register_tool(#{ name: "outer", description: "Calls another.", parameters: #{ "type": "object", properties: #{} },
    execute: |args, ctx| {
        let inner = ctx.call_tool("bash", #{ command: "echo inner" });
        let wrong = ctx.call_tool("nothing");
        `${ctx.call_id != ""} ${inner.isError} ${inner.text.trimmed()} ${wrong.isError}`
    } });

on("tool_call", |event, ctx| {
    if event.toolName == "read" { ctx.new_session(); }
});
"#;

#[test]
fn every_function_is_answered_by_a_real_session() {
    let server = ModelServer::start([
        reply::text("hello"),
        reply::tool_call("outer", json!({})),
        reply::text("done"),
        reply::tool_call("read", json!({"path": "x"})),
        reply::text("blocked"),
    ]);
    let home = TempHome::with_model(&server);
    home.settings(json!({"thinkingBudgets": {"low": 7}}));
    home.write_agent("extensions/asks.rhai", ASKS);
    let mut rpc = home.rpc();
    rpc.state();
    rpc.turn("hi");
    rpc.turn("call it");
    rpc.ok(json!({"type": "prompt", "message": "/ask"}));
    rpc.turn("and a handler that may not");
    rpc.end();
    let entries = home.session();
    let said = entries.iter().filter(|entry| entry["customType"] == "said");
    let said: Vec<(&str, &Value)> = said
        .map(|entry| {
            (
                entry["data"]["name"].as_str().expect("a name"),
                &entry["data"]["value"],
            )
        })
        .collect();
    let of = |name: &str| {
        let found = said.iter().find(|(said, _)| *said == name);
        found
            .unwrap_or_else(|| panic!("{name} is missing in {said:?}"))
            .1
            .clone()
    };
    for (name, expected) in [
        ("mode", json!("rpc")),
        ("pending", json!(false)),
        ("trusted", json!(true)),
        ("fewer", json!(["read"])),
        ("settings", json!(7)),
        ("name", json!("named")),
        ("label", json!("start")),
        ("state", json!(1)),
        ("bus", json!("heard")),
    ] {
        assert_eq!(of(name), expected, "{name}");
    }
    for name in [
        "cwd",
        "idle",
        "usage",
        "prompt",
        "all",
        "commands",
        "models",
        "entry",
        "leaf",
        "entries",
        "header",
        "file",
        "tree",
        "context",
        "projection",
        "set model",
    ] {
        assert_eq!(of(name), json!(true), "{name}");
    }
    assert!(entries.iter().any(|entry| entry["customType"] == "extra"));
    let requests = server.finish();
    let result =
        |request: usize| requests[request].messages().last().expect("one")["content"].to_string();
    assert!(result(2).contains("true false inner true"), "{}", result(2));
    // A handler may not put another session in the place of the one that waits for it.
    assert!(
        result(4).contains("can be used in a command only"),
        "{}",
        result(4)
    );
}

const MOVES: &str = r#"
register_command("fresh", #{ run: |args, ctx| {
    let before = ctx.session.id();
    let got = ctx.new_session(#{ then: |ctx| { append_entry("then", #{ other: ctx.session.id() != before }); } });
    ctx.ui.notify(`${got.cancelled} ${ctx.session.id() != before}`);
} });
register_command("fork", #{ run: |args, ctx| {
    let users = ctx.session.branch().filter(|entry| entry["type"] == "message" && entry.message.role == "user");
    let got = ctx.fork_at(users[users.len() - 1].id);
    ctx.ui.notify(`${got.cancelled} ${got.editorText}`);
} });
register_command("back", #{ run: |args, ctx| {
    let got = ctx.switch_session(args.trimmed());
    ctx.ui.notify(`${got.cancelled} ${ctx.session.file() == args.trimmed()}`);
} });
on("session_before_switch", |event, ctx| if event.reason == "resume" && flag("stay") == true { #{ cancel: true } });
register_flag("stay", #{ kind: "boolean", default_value: false });
"#;

#[test]
fn a_command_goes_on_in_the_session_that_takes_the_place() {
    let server = ModelServer::start([reply::text("one"), reply::text("two")]);
    let home = TempHome::with_model(&server);
    home.write_agent("extensions/moves.rhai", MOVES);
    let mut rpc = home.rpc();
    let first = rpc.state()["sessionFile"]
        .as_str()
        .expect("a file")
        .to_owned();
    rpc.turn("hi");
    let id = rpc.state()["sessionId"].clone();
    rpc.ok(json!({"type": "prompt", "message": "/fresh"}));
    assert_eq!(rpc.notice(), "false true");
    assert_ne!(rpc.state()["sessionId"], id);
    rpc.turn("in the new one");
    rpc.ok(json!({"type": "prompt", "message": "/fork"}));
    assert_eq!(rpc.notice(), "false in the new one");
    rpc.ok(json!({"type": "prompt", "message": format!("/back {first}")}));
    assert_eq!(rpc.notice(), "false true");
    assert_eq!(rpc.state()["sessionId"], id);
    rpc.end();
    let then = home.session_files().iter().any(|file| {
        let text = std::fs::read_to_string(file).expect("a session can be read");
        text.contains(r#""customType":"then""#) && text.contains(r#""other":true"#)
    });
    assert!(then, "what stands in `then` is done in the new session");
    drop(server);
}

#[test]
fn in_a_mode_without_other_sessions_a_command_is_told_so() {
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let moves = home.write_agent("moves.rhai", MOVES).display().to_string();
    let told = home.prompt("/fresh").args(["-e", &moves]).run();
    let said = format!("{}{}", told.stdout, told.stderr);
    assert!(
        said.contains("In this mode a session cannot be replaced"),
        "{said}"
    );
    drop(server);
}

/// What a script registers in its handlers, tools and commands counts from the next request on.
const REGISTERS: &str = r#"
on("session_start", |event, ctx| {
    register_tool(#{ name: "early", description: "From the start of the session.", execute: || "early bird" });
});

register_tool(#{ name: "maker", description: "Makes another tool.", execute: |args, ctx| {
    register_tool(#{ name: "made", description: "Made by a tool.", execute: || "made to order" });
    "it is there"
} });

register_command("listen", #{ run: |args, ctx| {
    on("input", |event, ctx| if event.text == "old" { #{ action: "transform", text: "new" } });
    register_command("late", #{ run: |args, ctx| append_entry("late", args) });
} });
"#;

#[test]
fn what_a_script_registers_while_it_serves_counts_at_once() {
    // extensions §4.1, §5.1
    let server = ModelServer::start([
        reply::tool_call("early", json!({})),
        reply::tool_call("maker", json!({})),
        reply::tool_call("made", json!({})),
        reply::text("done"),
        reply::text("heard"),
    ]);
    let home = TempHome::with_model(&server);
    home.write_agent("extensions/registers.rhai", REGISTERS);
    let mut rpc = home.rpc();
    rpc.state();
    rpc.turn("go");
    rpc.ok(json!({"type": "prompt", "message": "/listen"}));
    rpc.turn("old");
    rpc.ok(json!({"type": "prompt", "message": "/late word"}));
    rpc.end();
    let entries = home.session();
    let results: Vec<&str> = entries
        .iter()
        .filter(|entry| entry["message"]["role"] == "toolResult")
        .filter_map(|entry| entry["message"]["content"][0]["text"].as_str())
        .collect();
    assert_eq!(results, ["early bird", "it is there", "made to order"]);
    let said = entries
        .iter()
        .filter(|entry| entry["message"]["role"] == "user");
    let said: Vec<&Value> = said
        .map(|entry| &entry["message"]["content"][0]["text"])
        .collect();
    assert_eq!(said, ["go", "new"]);
    let late = entries.iter().find(|entry| entry["customType"] == "late");
    assert_eq!(late.expect("an entry")["data"], "word");
}

/// The example of a provider whose wire is a script, with a server.
fn own_wire(server: &ModelServer) -> TempHome {
    let home = TempHome::with_model(server);
    let text = include_str!("../../scripts/examples/own-wire.rhai");
    home.write_agent("extensions/own-wire.rhai", text);
    home.settings(json!({
        "ownWire": {"baseUrl": server.url(), "model": "m"},
        "defaultProvider": "own",
        "defaultModel": "m",
        "retry": {"baseDelayMs": 1},
    }));
    home
}

#[test]
fn a_wire_that_is_a_script_streams_thinks_calls_tools_and_is_paid_for() {
    // extensions §4.7
    let server = ModelServer::start([
        reply::thinking("Let me see.")
            .and_text("I look.")
            .and_call("bash", json!({"command": "echo seen"})),
        reply::error(429, "slow down"),
        reply::text("Half of it").cut_after(2),
        reply::text("It was seen.").usage(30, 12),
    ]);
    let home = own_wire(&server);
    let mut rpc = home.pliant().args(["--mode", "rpc"]).rpc();
    rpc.state();
    rpc.turn("look");
    rpc.end();
    let entries = home.session();
    let answers = entries
        .iter()
        .filter(|entry| entry["message"]["role"] == "assistant");
    let answers: Vec<&Value> = answers.map(|entry| &entry["message"]).collect();
    let first = &answers[0]["content"];
    assert_eq!(
        (&first[0]["thinking"], &first[1]["text"]),
        (&json!("Let me see."), &json!("I look."))
    );
    assert_eq!(first[2]["arguments"], json!({"command": "echo seen"}));
    let failed: Vec<String> = answers[1..3]
        .iter()
        .map(|answer| answer["errorMessage"].to_string())
        .collect();
    assert!(
        failed[0].contains("HTTP 429") && failed[0].contains("slow down"),
        "{failed:?}"
    );
    assert!(failed[1].contains("Connection lost"), "{failed:?}");
    let last = answers[3];
    assert_eq!(last["content"][0]["text"], "It was seen.");
    assert_eq!(
        (&last["usage"]["input"], &last["usage"]["output"]),
        (&json!(30), &json!(12))
    );
    let request = server.requests().pop().expect("a request");
    let said: Vec<&Value> = request.body["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|one| &one["role"])
        .collect();
    assert_eq!(said, ["system", "user", "assistant", "tool"]);
}

#[test]
fn a_wire_that_is_a_script_closes_its_connection_when_the_user_stops_it() {
    let model = ModelServer::start([]);
    let home = own_wire(&model);
    // A server that says one word and then listens.
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = server.local_addr().expect("an address");
    let own_wire = json!({"baseUrl": format!("http://{address}"), "model": "m"});
    home.settings(json!({"ownWire": own_wire, "defaultProvider": "own", "defaultModel": "m"}));
    let serving = std::thread::spawn(move || {
        let (mut connection, _) = server.accept().expect("a connection");
        let limit = Some(Duration::from_secs(20));
        connection.set_read_timeout(limit).expect("a limit");
        let mut bytes = [0; 1 << 16];
        let _ = connection.read(&mut bytes).expect("a request");
        let piece = json!({"choices": [{"delta": {"content": "word"}}]});
        let answer =
            format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {piece}\n\n");
        connection.write_all(answer.as_bytes()).expect("it listens");
        // What is left of the request, and then the end.
        while connection.read(&mut bytes).expect("it is closed in time") > 0 {}
    });
    let mut rpc = home.pliant().args(["--mode", "rpc"]).rpc();
    rpc.state();
    rpc.ok(json!({"type": "prompt", "message": "talk"}));
    rpc.next("a word", |record| {
        record["assistantMessageEvent"]["delta"] == "word"
    });
    rpc.ok(json!({"type": "abort"}));
    serving.join().expect("the connection was closed");
    rpc.end();
}

#[test]
fn checkpoint_brings_back_files_and_conversation() {
    // The issue's Build 5: without git, and what the shell did included.
    let shell = "echo changed > kept.txt; rm gone.txt; mkdir made; echo new > made/file.txt";
    let server = ModelServer::start([
        reply::text("first answer"),
        reply::tool_call("bash", json!({ "command": shell })),
        reply::text("second answer"),
        reply::text("third answer"),
    ]);
    server.allow_rewritten_history();
    let home = TempHome::with_model(&server);
    home.settings(json!({"extensions": ["+builtin:checkpoint"]}));
    let file = |name: &str| home.project_dir().join(name);
    let read = |name: &str| std::fs::read_to_string(file(name)).unwrap_or_else(|_| "-".to_owned());
    std::fs::write(file("kept.txt"), "as it was").expect("the project is there");
    std::fs::write(file("gone.txt"), "still here").expect("the project is there");
    let mut rpc = home.rpc();
    rpc.state();
    rpc.turn("say something");
    rpc.turn("spoil everything");
    assert_eq!(
        (read("kept.txt").as_str(), read("gone.txt").as_str()),
        ("changed\n", "-")
    );
    rpc.send(json!({"type": "prompt", "message": "/checkpoint"}));
    let prompts = rpc.dialog();
    assert_eq!(
        prompts["options"],
        json!(["1. spoil everything", "2. say something"])
    );
    rpc.tell(&prompts, json!({"value": "1. spoil everything"}));
    let ways = rpc.dialog();
    let preview = ways["title"].as_str().expect("a title");
    assert_eq!(
        preview,
        "bring back gone.txt\nput back kept.txt\nremove made/file.txt"
    );
    rpc.tell(&ways, json!({"value": "Files and conversation"}));
    assert_eq!(
        rpc.notice(),
        "Back to before the prompt: 2 written, 1 removed."
    );
    assert_eq!(
        (read("kept.txt").as_str(), read("gone.txt").as_str()),
        ("as it was", "still here")
    );
    assert!(!file("made").exists());
    // The model knows nothing of it.
    rpc.turn("go on");
    let last = server.requests().pop().expect("a request");
    let said: Vec<String> = last
        .conversation()
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    assert_eq!(said, ["say something", "first answer", "go on"]);
    rpc.ok(json!({"type": "prompt", "message": "/checkpoint undo"}));
    assert_eq!(rpc.notice(), "Taken back: 2 written, 1 removed.");
    rpc.end();
}
