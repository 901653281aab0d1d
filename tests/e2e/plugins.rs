//! Native plugins that misbehave while the program runs: their panics end up in the log or in an
//! answer, and a library that changed under the program is refused with a sentence (`plugin-abi.md`
//! §5, §6).

use std::fs;

use pliant_tests::{ModelServer, Pliant, TempHome, fixture_plugin, reply};
use serde_json::json;

/// Runs with the fixture `panics` and expects success; answers what was printed and logged.
#[track_caller]
fn with_panics(home: &TempHome, run: Pliant) -> (String, String) {
    let library = fixture_plugin("panics").display().to_string();
    let log = home.tmp_dir().join("pliant.log").display().to_string();
    let flags = ["--plugin", &library, "--log-file", &log];
    let output = run.args(flags).run().success();
    let log = fs::read_to_string(log).expect("a log was asked for");
    (output.stdout + &output.stderr, log)
}

/// Expects one line of a log that reports the panic of the fixture.
#[track_caller]
fn assert_logged(log: &str, panic: &str) {
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(panic)).collect();
    let [line] = lines.as_slice() else {
        panic!("not one line but {lines:?}");
    };
    for words in ["ERROR", "source=panics", "panicked", "lib.rs"] {
        assert!(line.contains(words), "{words:?} is not in {line}");
    }
}

/// `plugin-abi.md` §6: each drop that runs user code.
#[test]
fn a_panic_at_the_end_of_a_plugin_is_logged_and_the_run_is_a_success() {
    let home = TempHome::new();
    home.settings(json!({"pluginSettings": {"panics": {"drop": true}}}));
    let (printed, log) = with_panics(&home, home.pliant().args(["--list-models"]));
    assert!(!printed.contains("exploded"), "{printed}");
    assert_logged(&log, "the end exploded");
}

/// `plugin-abi.md` §6: the panic hook sends to `log.write`, never to the terminal.
#[test]
fn a_panic_on_a_thread_of_a_plugin_is_logged_and_its_tool_answers() {
    let call = reply::tool_call("explode", json!({"place": "thread"}));
    let server = ModelServer::start([call, reply::text("Done.")]);
    let home = TempHome::with_model(&server);
    let (printed, log) = with_panics(&home, home.prompt("Go."));
    assert_eq!(printed, "Done.\n");
    assert_logged(&log, "a thread exploded");
    let requests = server.finish();
    let answer = requests[1].tool_result("call_1");
    assert_eq!(answer.as_deref(), Some("nothing exploded"));
}

/// `plugin-abi.md` §5: a short file that is mapped ends the process by SIGBUS.
#[test]
fn a_library_that_is_cut_short_before_its_first_use_is_refused_with_its_name() {
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    // The user's own copy replaces the one beside the program.
    let built = fixture_plugin("pliant_openai_completions");
    let whole = fs::read(&built).expect("it was built");
    let name = built.file_name().expect("it has a name").to_string_lossy();
    let library = home.write_agent(&format!("plugins/{name}"), whole);
    let script = format!(
        "on(\"input\", |event, ctx| {{ exec(\"truncate\", [\"-s\", \"100000\", {:?}]); }});",
        library.display()
    );
    let script = home.write_agent("cut.rhai", script).display().to_string();
    let output = home.prompt("Go.").args(["-e", &script]).run();
    output.failure(&["openai-completions", "has changed since it was found"]);
    assert!(server.finish().is_empty());
}
