//! A plugin in a process of its own: what it does to its process it does to nobody else, and for the
//! model, the user and other plugins it is like any other (`plugin-abi.md` §7).

use std::fs;
use std::time::{Duration, Instant};

use pliant_tests::{ModelServer, TempHome, fixture_plugin, reply};
use serde_json::{Value, json};

/// The model calls `crash` in each of these ways, one after the other.
fn crashing(hows: &[&str]) -> (TempHome, ModelServer) {
    let calls = hows
        .iter()
        .map(|how| reply::tool_call("crash", json!({"how": how})));
    let done = (!hows.is_empty()).then(|| reply::text("Done."));
    let server = ModelServer::start(calls.chain(done));
    let home = TempHome::with_model(&server);
    (home, server)
}

fn isolated(home: &TempHome, limits: Value) {
    home.settings(json!({"plugins": {
        "isolation": {"crashes": "process"}, "limits": {"crashes": limits}}}));
}

fn crashes() -> String {
    fixture_plugin("crashes").display().to_string()
}

/// The texts of the results of tools, in their order.
fn results(home: &TempHome) -> Vec<String> {
    let messages = home.stored_messages().into_iter();
    let results = messages.filter(|message| message["role"] == "toolResult");
    results
        .map(|result| {
            result["content"][0]["text"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
}

#[test]
fn each_way_to_crash_is_an_error_that_names_the_plugin_and_the_next_call_gets_a_fresh_process() {
    // plugin-abi §6, §7, §13: "child killed mid-call"
    let hows = [
        "none", "segfault", "none", "abort", "none", "exit", "none", "overflow", "none",
    ];
    let (home, server) = crashing(&hows);
    isolated(&home, json!({}));
    let run = home.prompt("Go.").args(["--plugin", &crashes()]).run();
    assert_eq!(run.success().stdout, "Done.\n");
    let results = results(&home);
    let said = |at: usize, words: &[&str]| {
        for word in words {
            assert!(
                results[at].contains(word),
                "{word:?} is not in {:?}",
                results[at]
            );
        }
    };
    said(1, &["\"crashes\" crashed", "SIGSEGV", "about to segfault"]);
    said(3, &["\"crashes\" crashed", "SIGABRT"]);
    said(5, &["\"crashes\" crashed", "status 3"]);
    said(7, &["\"crashes\" crashed", "overflow"]);
    let mut processes: Vec<&String> = results.iter().step_by(2).collect();
    assert!(
        processes.iter().all(|text| text.starts_with("process ")),
        "{results:?}"
    );
    processes.dedup();
    assert_eq!(processes.len(), 5, "a fresh one each time");
    server.finish();
}

#[test]
fn a_process_that_may_use_so_much_memory_and_time_ends_there() {
    let (home, server) = crashing(&["memory", "none", "spin", "none"]);
    isolated(&home, json!({"memoryMb": 2000, "cpuSeconds": 1}));
    let run = home.prompt("Go.").args(["--plugin", &crashes()]).run();
    assert_eq!(run.success().stdout, "Done.\n");
    let results = results(&home);
    assert!(results[0].contains("\"crashes\" crashed"), "{results:?}");
    assert!(
        results[2].contains("SIGXCPU") || results[2].contains("SIGKILL"),
        "{results:?}"
    );
    assert!(results[3].starts_with("process "), "{results:?}");
    server.finish();
}

#[test]
fn a_call_that_is_given_up_and_goes_on_is_ended_with_its_process() {
    for how in ["spin", "sleep"] {
        let (home, server) = crashing(&[how, "none"]);
        isolated(&home, json!({}));
        let mut rpc = home.rpc_with(&["--plugin", &crashes()]);
        rpc.ok(json!({"type": "prompt", "message": "go"}));
        rpc.event("tool_execution_start");
        rpc.ok(json!({"type": "abort"}));
        let begun = Instant::now();
        rpc.turn("again");
        // It is ended a second after that, and the next call waits for no more.
        assert!(begun.elapsed() < Duration::from_secs(15));
        rpc.end();
        drop(server);
    }
}

#[test]
fn what_crashes_time_after_time_is_not_started_again_at_once() {
    let hows = ["abort"; 6];
    let (home, server) = crashing(&hows);
    isolated(&home, json!({}));
    let run = home.prompt("Go.").args(["--plugin", &crashes()]).run();
    assert_eq!(run.success().stdout, "Done.\n");
    let results = results(&home);
    assert!(results[5].contains("is started again in"), "{results:?}");
    server.finish();
}

/// Numbers of the processes that an agent has started and that are there still, dead ones too.
fn children(of: u32) -> Vec<u32> {
    let path = format!("/proc/{of}/task/{of}/children");
    let mut all: Vec<u32> = Vec::new();
    for task in fs::read_dir(format!("/proc/{of}/task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let listed = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        all.extend(
            listed
                .split_whitespace()
                .filter_map(|id| id.parse::<u32>().ok()),
        );
    }
    assert!(fs::metadata(path).is_ok(), "it runs");
    all
}

#[test]
fn the_process_ends_with_the_agent_and_a_replaced_one_leaves_nothing_behind() {
    let (home, server) = crashing(&[]);
    isolated(&home, json!({}));
    let mut rpc = home.rpc_with(&["--plugin", &crashes()]);
    rpc.state();
    let before = children(rpc.id());
    assert_eq!(before.len(), 1);
    rpc.ok(json!({"type": "reload"}));
    let until_one = |gone: u32| {
        let begun = Instant::now();
        loop {
            let now = children(rpc.id());
            if now.len() == 1 && now[0] != gone {
                return now[0];
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "{now:?}");
            std::thread::yield_now();
        }
    };
    let child = until_one(before[0]);
    rpc.signal(9);
    let _ = rpc.wait();
    let begun = Instant::now();
    while fs::read_to_string(format!("/proc/{child}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "it outlives the agent"
        );
        std::thread::yield_now();
    }
    drop(server);
}

#[test]
fn a_plugin_that_ends_its_process_at_the_start_is_refused_before_it_is_loaded_here() {
    // plugin-abi §5.3, E08
    for (how, words) in [
        ("segfault", "SIGSEGV"),
        ("abort", "SIGABRT"),
        ("exit", "status 3"),
        ("overflow", "overflow"),
        ("panic", "as asked"),
        ("memory", "SIGABRT"),
    ] {
        let (home, server) = crashing(&[]);
        home.settings(json!({"pluginSettings": {"crashes": {"start": how}}}));
        let run = home.prompt("Go.").args(["--plugin", &crashes()]).run();
        run.failure(&["The plugin \"crashes\"", "failed to start", words]);
        drop(server);
    }
}

#[test]
fn a_plugin_with_tool_and_hook_is_the_same_in_a_process_of_its_own() {
    // plugin-abi §9
    let call = |name: &str| reply::tool_call("greet", json!({"name": name}));
    let server = ModelServer::start([call("you"), call("nobody"), reply::text("Done.")]);
    let home = TempHome::with_model(&server);
    let hello = fixture_plugin("hello").display().to_string();
    let run = home
        .prompt("Go.")
        .args(["--plugin", &hello, "--isolate"])
        .run();
    assert_eq!(run.success().stdout, "Done.\n");
    let results = results(&home);
    assert_eq!(results[0], "Hello, you!");
    assert!(
        results[1].contains("Nobody is not to be greeted."),
        "{results:?}"
    );
    server.finish();
}

#[test]
fn the_wire_and_the_tools_that_ship_work_in_processes_of_their_own() {
    // plugin-abi §7: provider streams, processes, files
    let server = ModelServer::start([
        reply::tool_call("bash", json!({"command": "echo from a process > made"})),
        reply::tool_call("read", json!({"path": "made"})),
        reply::text("A longer answer, which comes in pieces and is put together again."),
    ]);
    let home = TempHome::with_model(&server);
    home.settings(json!({"plugins": {"isolation": {
        "openai-completions": "process", "files": "process", "shell": "process"}}}));
    let run = home.prompt("Go.").run().success();
    assert_eq!(
        run.stdout,
        "A longer answer, which comes in pieces and is put together again.\n"
    );
    assert!(
        results(&home)[1].contains("from a process"),
        "{:?}",
        results(&home)
    );
    server.finish();
}
