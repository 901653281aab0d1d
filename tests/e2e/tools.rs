//! Tool calls against the real tools: what they do to files, what the next request holds, and that
//! a call which cannot work is an answer to the model and no end of the run.

use pliant_tests::{ModelServer, Reply, TempHome, fixture_plugin, reply};
use serde_json::{Value, json};

/// Runs a prompt whose first reply calls tools, and answers the tool messages of the last request.
#[track_caller]
fn results(replies: Vec<Reply>, flags: &[&str]) -> Vec<String> {
    let last = replies.len();
    let server = ModelServer::start(replies.into_iter().chain([reply::text("Done.")]));
    let home = TempHome::with_model(&server);
    home.write("a.txt", "alpha\n");
    let output = home.prompt("Go.").args(flags).run().success();
    assert_eq!(output.stdout, "Done.\n");
    let requests = server.finish();
    let conversation = requests[last].conversation().into_iter();
    conversation
        .filter(|(role, _)| *role == "tool")
        .map(|(_, text)| text)
        .collect()
}

#[test]
fn the_model_reads_a_file_edits_it_and_runs_a_command() {
    let edit = json!({"path": "notes.txt", "edits": [{"oldText": "tea", "newText": "coffee"}]});
    let server = ModelServer::start([
        reply::tool_call("read", json!({"path": "notes.txt"})),
        reply::tool_call("edit", edit),
        reply::tool_call(
            "bash",
            json!({"command": "cat notes.txt; echo to stderr >&2; exit 3"}),
        ),
        reply::text("The notes say coffee."),
    ]);
    let home = TempHome::with_model(&server);
    home.write("notes.txt", "milk\ntea\n");
    let output = home.json_prompt("Change my notes.").run().success();

    assert_eq!(home.read("notes.txt"), "milk\ncoffee\n");
    let requests = server.finish();
    let read = requests[1]
        .tool_result("call_1")
        .expect("the file was read");
    assert!(read.contains("milk\ntea"), "{read}");
    let edited = requests[2]
        .tool_result("call_2")
        .expect("the file was edited");
    assert!(edited.contains("notes.txt"), "{edited}");
    let ran = requests[3].tool_result("call_3").expect("the command ran");
    for words in ["milk\ncoffee", "to stderr", "3"] {
        assert!(ran.contains(words), "{ran}");
    }
    let ends = output.events_of("tool_execution_end");
    let failed: Vec<_> = ends.iter().map(|end| &end["isError"]).collect();
    assert_eq!(failed, [&json!(false), &json!(false), &json!(true)]);
}

#[test]
fn several_calls_run_together_and_are_answered_in_their_order() {
    // The first cannot end before the second has begun.
    let waits =
        "for i in $(seq 100); do [ -e begun ] && echo first && exit; sleep 0.05; done; exit 9";
    let server = ModelServer::start([
        reply::tool_calls([
            ("bash", json!({"command": waits})),
            ("bash", json!({"command": "touch begun; echo second"})),
        ]),
        reply::text("Done."),
    ]);
    let home = TempHome::with_model(&server);
    let output = home.json_prompt("Go.").run().success();
    let requests = server.finish();
    let results: Vec<_> = requests[1]
        .conversation()
        .into_iter()
        .filter(|(role, _)| *role == "tool")
        .collect();
    assert!(results[0].1.contains("first"), "{results:?}");
    assert!(results[1].1.contains("second"), "{results:?}");
    let ids = |kind: &str| -> Vec<Value> {
        let events = output.events_of(kind).into_iter();
        events.map(|mut event| event["toolCallId"].take()).collect()
    };
    assert_eq!(ids("tool_execution_start"), ["call_1", "call_2"]);
    // Which ends first is up to the system: both processes end within a moment.
    let mut ended = ids("tool_execution_end");
    ended.sort_by_key(ToString::to_string);
    assert_eq!(ended, ["call_1", "call_2"]);
}

#[test]
fn a_call_that_does_not_fit_the_tool_is_answered_with_what_is_wrong() {
    let replies = vec![
        reply::tool_call("read", json!({"file": "a.txt"})),
        reply::tool_call_text("read", "{\"path\": \"a.t"),
        reply::tool_call("raed", json!({"path": "a.txt"})),
        reply::tool_call("read", json!({"path": "missing.txt"})),
        reply::tool_call("read", json!({"path": "a.txt"})),
    ];
    let results = results(replies, &[]);
    assert_eq!(results.len(), 5);
    let words = [
        ["read", "path"],
        ["read", "a.t"],
        ["raed", ""],
        ["missing.txt", ""],
        ["alpha", ""],
    ];
    for (result, words) in results.iter().zip(words) {
        for word in words {
            assert!(result.contains(word), "{word:?} is not in {result:?}");
        }
    }
}

#[test]
fn a_panicking_tool_or_handler_is_an_error_of_that_call_alone() {
    let library = fixture_plugin("panics").display().to_string();
    let place = |place: &str| json!({"place": place});
    let replies = vec![
        reply::tool_calls([
            ("explode", place("execute")),
            ("read", json!({"path": "a.txt"})),
            ("explode", place("hook")),
        ]),
        reply::tool_call("explode_in_drop", json!({})),
        reply::tool_call("explode", place("nowhere")),
    ];
    let results = results(replies, &["--plugin", &library]);
    assert_eq!(results.len(), 5);
    assert!(results[0].contains("explode was called"), "{results:?}");
    assert!(results[1].contains("alpha"), "{results:?}");
    // A gate that fails is a gate that is closed.
    assert!(results[2].contains("a hook exploded"), "{results:?}");
    assert!(results[3].contains("a drop exploded"), "{results:?}");
    assert!(results[4].contains("nothing exploded"), "{results:?}");
}

#[test]
fn a_plugin_given_by_path_brings_its_tool_and_its_handler() {
    let library = fixture_plugin("hello").display().to_string();
    let replies = vec![reply::tool_calls([
        ("greet", json!({"name": "Ada"})),
        ("greet", json!({"name": "nobody"})),
    ])];
    let results = results(replies, &["--plugin", &library]);
    assert_eq!(results, ["Hello, Ada!", "Nobody is not to be greeted."]);
}

#[test]
fn a_tool_of_a_library_calls_tools_of_others() {
    // T18, T19; dropping the future of a call crosses the border too
    let library = fixture_plugin("calls").display().to_string();
    let call = |how: &str, command: &str| {
        let arguments = json!({"command": command});
        (
            "call",
            json!({"how": how, "name": "bash", "arguments": arguments}),
        )
    };
    let replies = vec![
        reply::tool_calls([
            call("wait", "echo one"),
            call("watch", "echo two; sleep 0.3"),
        ]),
        reply::tool_calls([
            call("drop", "sleep 60; echo never"),
            call("start", "sleep 60"),
        ]),
        reply::tool_call(
            "call",
            json!({"how": "wait", "name": "nothing", "arguments": {}}),
        ),
    ];
    let results = results(replies, &["--plugin", &library]);
    assert_eq!(results.len(), 5);
    assert!(results[0].ends_with("/1: one"), "{results:?}");
    assert!(results[1].ends_with("/1: two after some"), "{results:?}");
    assert_eq!(results[2], "gave up: true");
    assert!(results[3].ends_with("/1"), "{results:?}");
    assert!(
        results[4].contains("There is no tool \"nothing\""),
        "{results:?}"
    );
}

#[test]
fn a_plugin_of_the_first_abi_works_in_this_build() {
    let library = pliant_tests::abi_fixture("first").display().to_string();
    let replies = vec![reply::tool_call("first", json!({}))];
    let results = results(replies, &["--plugin", &library]);
    assert_eq!(results, ["the first ABI still answers"]);
}

#[cfg(target_os = "linux")]
#[test]
fn wire_and_tools_come_from_libraries() {
    let libraries = "grep -o '[^ ]*\\.so' /proc/$PPID/maps | sort -u";
    let results = results(
        vec![reply::tool_call("bash", json!({"command": libraries}))],
        &[],
    );
    for plugin in ["pliant_shell", "pliant_openai_completions"] {
        assert!(
            results[0].contains(plugin),
            "{plugin} is not in {}",
            results[0]
        );
    }
}
