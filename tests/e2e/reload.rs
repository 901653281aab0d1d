//! Plugins and scripts that change while the agent works, seen from outside over RPC: what the user
//! saved serves, in the same conversation, and nothing that cannot be loaded takes anything away
//! (`plugin-abi.md` §5, `resources.md` §12).

use std::fs;
use std::path::Path;

use pliant_tests::{ModelServer, TempHome, fixture_plugin, reply};
use serde_json::{Value, json};

fn tool(answer: &str) -> String {
    format!(
        "register_tool(#{{name: \"word\", description: \"Says a word.\", \
         parameters: #{{type: \"object\", properties: #{{}}}}, execute: |args, ctx| \"{answer}\"}});"
    )
}

/// The changes that a reload answers, as `source outcome`.
fn outcomes(answer: &Value) -> Vec<String> {
    let changes = answer["changes"].as_array().expect("changes");
    changes
        .iter()
        .map(|change| {
            let source = change["source"].as_str().expect("a source");
            let name = Path::new(source).file_name().expect("a name");
            let outcome = change["outcome"].as_str().expect("an outcome");
            format!("{} {outcome}", name.display())
        })
        .collect()
}

fn has(answer: &Value, line: &str) -> bool {
    outcomes(answer).iter().any(|outcome| outcome == line)
}

#[test]
fn a_script_that_was_edited_serves_after_a_reload_in_the_same_conversation() {
    // R53, E06, E07
    let server = ModelServer::start([
        reply::tool_call("word", json!({})),
        reply::text("one"),
        reply::tool_call("word", json!({})),
        reply::text("two"),
        reply::tool_call("word", json!({})),
        reply::text("three"),
    ]);
    let home = TempHome::with_model(&server);
    let file = home.write_agent("extensions/word.rhai", tool("first"));
    let mut rpc = home.rpc();
    rpc.state();
    rpc.turn("go");
    fs::write(&file, tool("second")).expect("written");
    let answer = rpc.ok(json!({"type": "reload"}));
    assert!(has(&answer, "word.rhai reloaded"), "{answer}");
    assert!(has(&answer, "guide.rhai restarted"), "{answer}");
    let changed = rpc.event("resources_changed");
    assert_eq!(changed["changes"], answer["changes"]);
    rpc.turn("go on");
    // A broken edit keeps what served, and says where.
    fs::write(&file, "register_tool(#{\nname: }").expect("written");
    let answer = rpc.ok(json!({"type": "reload"}));
    assert!(has(&answer, "word.rhai failed"), "{answer}");
    assert!(answer.to_string().contains("word.rhai:2:"), "{answer}");
    rpc.turn("and on");
    rpc.end();
    let requests = server.finish();
    let result = |request: usize| {
        let messages = requests[request].messages();
        let last = messages.last().expect("a message");
        last["content"].to_string()
    };
    assert!(result(1).contains("first"), "{}", result(1));
    assert!(result(3).contains("second"), "{}", result(3));
    assert!(result(5).contains("second"), "{}", result(5));
}

#[test]
fn a_library_that_was_built_anew_serves_after_a_reload() {
    // plugin-abi §5, §13: "same path replaced"
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    home.settings(json!({"plugins": {"hotReload": false}}));
    let hello = fixture_plugin("hello");
    let name = hello.file_name().expect("a name").to_string_lossy();
    let path = format!("plugins/{}", name.replace("hello", "pliant_x"));
    let library = home.write_agent(&path, fs::read(&hello).expect("built"));
    let mut rpc = home.rpc();
    rpc.state();
    let commands = |answer: Value| answer["commands"].to_string();
    let answer = rpc.ok(json!({"type": "get_commands"}));
    assert!(!commands(answer).contains("\"calls\""));
    // As cargo does: the old file goes, another one takes its name.
    fs::remove_file(&library).expect("removed");
    fs::copy(fixture_plugin("calls"), &library).expect("copied");
    let answer = rpc.ok(json!({"type": "reload"}));
    assert!(has(&answer, "calls reloaded"), "{answer}");
    // Half of a file keeps what serves.
    let whole = fs::read(&library).expect("read");
    fs::write(&library, &whole[..whole.len() / 2]).expect("written");
    let answer = rpc.ok(json!({"type": "reload"}));
    assert!(has(&answer, "calls failed"), "{answer}");
    assert!(answer.to_string().contains("Build it again"), "{answer}");
    fs::write(&library, whole).expect("written");
    let answer = rpc.ok(json!({"type": "reload"}));
    assert!(has(&answer, "calls restarted"), "{answer}");
    fs::remove_file(&library).expect("removed");
    let answer = rpc.ok(json!({"type": "reload"}));
    assert!(has(&answer, "calls removed"), "{answer}");
    rpc.end();
    drop(server);
}

#[test]
fn nothing_is_reloaded_while_a_run_is_active() {
    // R53, extensions §9.10
    let server = ModelServer::start([reply::tool_call(
        "bash",
        json!({"command": "read x < gate"}),
    )]);
    let home = TempHome::with_model(&server);
    home.shell("mkfifo gate").run().success();
    let mut rpc = home.rpc();
    rpc.state();
    rpc.ok(json!({"type": "prompt", "message": "go"}));
    rpc.event("tool_execution_start");
    let error = rpc.error(json!({"type": "reload"}));
    assert!(error.contains("while a run is active"), "{error}");
    rpc.ok(json!({"type": "abort"}));
    rpc.end();
    drop(server);
}

#[test]
fn a_script_that_is_saved_is_live_without_anybody_asking() {
    // plugin-abi §10, resources §12.2
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    rpc.state();
    let changed = |rpc: &mut pliant_tests::rpc::Rpc| {
        let event = rpc.event("resources_changed");
        outcomes(&event)
    };
    // The folder comes with the file.
    let file = home.write_agent("extensions/word.rhai", tool("first"));
    assert_eq!(changed(&mut rpc), ["word.rhai added"]);
    fs::write(&file, "register_tool(").expect("written");
    assert_eq!(changed(&mut rpc), ["word.rhai failed"]);
    fs::write(&file, tool("second")).expect("written");
    assert_eq!(changed(&mut rpc), ["word.rhai reloaded"]);
    fs::remove_file(&file).expect("removed");
    assert_eq!(changed(&mut rpc), ["word.rhai removed"]);
    rpc.end();
    drop(server);
}

#[test]
fn a_library_that_is_built_is_live_without_anybody_asking_and_a_user_may_want_none_of_it() {
    // plugin-abi §10
    for is_wanted in [true, false] {
        let server = ModelServer::start([]);
        let home = TempHome::with_model(&server);
        home.settings(json!({"plugins": {"hotReload": is_wanted}}));
        let hello = fixture_plugin("hello");
        let name = hello.file_name().expect("a name").to_string_lossy();
        let path = format!("plugins/{}", name.replace("hello", "pliant_x"));
        let library = home.write_agent(&path, fs::read(&hello).expect("built"));
        let mut rpc = home.rpc();
        rpc.state();
        fs::remove_file(&library).expect("removed");
        fs::copy(fixture_plugin("calls"), &library).expect("copied");
        if is_wanted {
            assert_eq!(
                outcomes(&rpc.event("resources_changed")),
                ["calls reloaded"]
            );
        } else {
            let answer = rpc.ok(json!({"type": "reload"}));
            assert!(has(&answer, "calls reloaded"), "{answer}");
        }
        rpc.end();
        drop(server);
    }
}
