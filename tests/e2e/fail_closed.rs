//! Extensions that are there and cannot be loaded: what they keep watch of stays shut, and what they put
//! in the place of something weaker is not given back, until they are mended or removed. Where a person
//! looks, that is; elsewhere pliant does not start without them (`interfaces.md` §1.5).

use std::fs;
use std::path::Path;

use pliant_tests::{MODEL, ModelServer, PROVIDER, TempHome, fixture_plugin, reply};
use serde_json::json;

use super::line::Talk;

const BASH: &str = "echo it ran";

/// The model calls `bash`, the file is changed, all is reloaded, and it calls `bash` again. The results.
fn before_and_after(home: &TempHome, change: impl FnOnce()) -> [String; 2] {
    let bash = || reply::tool_call("bash", json!({"command": BASH}));
    let server = ModelServer::start([
        bash(),
        reply::text("First."),
        bash(),
        reply::text("Second."),
    ]);
    serve(home, &server);
    let mut talk = Talk::start(home, &["Go."]);
    talk.shows_in_the_end("Warning: ", "First.\n> ");
    change();
    talk.keys("/reload\n");
    talk.keys("Again.\n");
    talk.shows_in_the_end("Warning: ", "Second.\n> ");
    talk.keys("/quit\n");
    talk.ends(0);
    let requests = server.finish();
    [1, 3].map(|at| {
        let messages = requests[at].messages();
        messages.last().expect("a result")["content"].to_string()
    })
}

/// Lets the scripted model of this server answer.
fn serve(home: &TempHome, server: &ModelServer) {
    let provider = json!({
        "baseUrl": server.url(), "api": "openai-completions", "apiKey": "test-key",
        "models": [{"id": MODEL}],
    });
    home.models(json!({PROVIDER: provider}));
}

fn home() -> TempHome {
    let home = TempHome::new();
    home.settings(json!({"plugins": {"hotReload": false}}));
    home
}

#[track_caller]
fn assert_shut(result: &str, source: &str) {
    for words in ["blocked", source, "mended, removed or disabled"] {
        assert!(result.contains(words), "{words}: {result}");
    }
    assert!(!result.contains("it ran"), "{result}");
}

#[test]
fn a_gate_that_never_loaded_is_shut_until_it_is_mended() {
    // issue "Rust plugins", Build 8; G5
    let home = home();
    let gate = |body: &str| format!("on(\"tool_call\", |event, ctx| {{ {body} }});");
    let file = home.write_agent("extensions/guard.rhai", gate("if { }"));
    let [before, after] = before_and_after(&home, || {
        fs::write(&file, gate("()")).expect("written");
    });
    assert_shut(&before, "guard.rhai");
    assert!(after.contains("it ran"), "{after}");
}

#[test]
fn a_gate_that_comes_while_a_session_is_open_and_cannot_load_is_shut_too() {
    // issue "Rust plugins", Build 8; G5
    let home = home();
    home.write_agent("extensions/odd.rhai", "let");
    let gate = "on(\"tool_call\", |event, ctx| { if { } });";
    let [before, after] = before_and_after(&home, || {
        home.write_agent("extensions/guard.rhai", gate);
    });
    assert!(before.contains("it ran"), "{before}");
    assert_shut(&after, "guard.rhai");
}

#[test]
fn what_loaded_once_keeps_its_places_when_its_file_says_nothing_and_gives_them_back_when_it_is_gone()
 {
    // issue "Rust plugins", Build 8; E06
    let home = home();
    let script = r#"
        let event = "tool" + "_call";
        on(event, |event, ctx| ());
        register_tool(#{ name: "bash", description: "Mine.",
            parameters: #{ type: "object", properties: #{} }, execute: |args, ctx| "mine" });
    "#;
    let file = home.write_agent("extensions/own.rhai", script);
    let server = ModelServer::start([reply::tool_call("bash", json!({})), reply::text("Well.")]);
    serve(&home, &server);
    home.prompt("Go.").run().success();
    let requests = server.finish();
    let messages = requests[1].messages();
    assert!(
        messages
            .last()
            .expect("a result")
            .to_string()
            .contains("mine")
    );
    fs::write(&file, "let").expect("written");
    let [before, after] = before_and_after(&home, || {
        fs::remove_file(&file).expect("it was there");
    });
    assert_shut(&before, "own.rhai");
    assert!(after.contains("it ran"), "{after}");
}

/// A library of the user, after a run in which it was loaded.
fn installed(home: &TempHome, library: &Path) -> std::path::PathBuf {
    let content = fs::read(library).expect("it was built");
    let file = home.write_agent("plugins/libpliant_own.so", content);
    let server = ModelServer::start([reply::text("Well.")]);
    serve(home, &server);
    home.prompt("Go.").run().success();
    server.finish();
    file
}

#[test]
fn a_library_that_is_cut_short_stays_in_its_places() {
    // issue "Rust plugins", Build 8; E06, E08
    let home = home();
    let file = installed(&home, &fixture_plugin("hello"));
    let whole = fs::read(&file).expect("it is there");
    fs::write(&file, &whole[..whole.len() / 2]).expect("written");
    let [before, after] = before_and_after(&home, || {
        fs::write(&file, &whole).expect("written");
    });
    assert_shut(&before, "hello");
    assert!(after.contains("it ran"), "{after}");
}

#[test]
fn a_library_that_fails_to_start_stays_in_the_places_of_its_manifest() {
    // issue "Rust plugins", Build 8
    let home = TempHome::new();
    home.settings(json!({
        "plugins": {"hotReload": false}, "pluginSettings": {"panics": {"create": true}},
    }));
    let content = fs::read(fixture_plugin("panics")).expect("it was built");
    let file = home.write_agent("plugins/libpliant_panics.so", content);
    let [before, after] = before_and_after(&home, || {
        fs::remove_file(&file).expect("it was there");
    });
    assert_shut(&before, "panics");
    assert!(after.contains("it ran"), "{after}");
}
