//! How the mode ends (`interfaces.md` §8.4): orderly, whatever runs and whoever leaves.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use pliant_tests::{ModelServer, Reply, TempHome, reply};
use serde_json::json;

/// A command that begins, tells so, and does not end by itself.
fn endless() -> Reply {
    let command = "sleep 600 & echo $$ $! > begun.tmp; mv begun.tmp begun; wait";
    reply::text("Let me wait.").and_call("bash", json!({ "command": command }))
}

fn begun(home: &TempHome) -> Vec<String> {
    let file = home.project_dir().join("begun");
    let pids = super::super::signals::until("the command", || fs::read_to_string(&file).ok());
    pids.split_whitespace().map(str::to_owned).collect()
}

/// `pliant session doctor` has nothing to say of any stored session.
fn are_sound(home: &TempHome) {
    for file in home.session_files() {
        let file = file.display().to_string();
        home.pliant()
            .args(["session", "doctor", &file])
            .run()
            .success();
    }
}

#[test]
fn the_end_of_the_input_ends_the_run_with_its_children_and_stores_it() {
    let server = ModelServer::start([endless()]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    rpc.ok(json!({"type": "prompt", "message": "Wait."}));
    let pids = begun(&home);
    // What was read before the end is answered.
    rpc.send(json!({"type": "bash", "command": "sleep 600", "id": "b"}));
    rpc.send(json!({"type": "get_state", "id": "s"}));
    let ended = rpc.end();
    for id in ["b", "s"] {
        assert!(
            ended.records.iter().any(|record| record["id"] == id),
            "{ended:#?}"
        );
    }
    let last = ended
        .records
        .iter()
        .rfind(|record| record["type"] == "agent_settled");
    assert_eq!(last.expect("it is told")["aborted"], true);
    super::super::signals::are_gone(&pids);
    let roles: Vec<_> = home
        .stored_messages()
        .into_iter()
        .map(|message| message["role"].clone())
        .collect();
    assert_eq!(roles[1..4], ["user", "assistant", "toolResult"]);
    assert_eq!(roles.last(), Some(&json!("bashExecution")));
    are_sound(&home);
    server.finish();
}

#[test]
fn signals_end_whatever_is_under_way_with_their_status() {
    for (signal, status) in [
        (libc::SIGTERM, 143),
        (libc::SIGHUP, 129),
        (libc::SIGINT, 130),
    ] {
        let server = ModelServer::start([reply::text("partial words").hold_after(4)]);
        let home = TempHome::with_model(&server);
        let mut rpc = home.rpc();
        rpc.ok(json!({"type": "prompt", "message": "Go."}));
        rpc.next("all the words", |record| {
            record["assistantMessageEvent"]["delta"] == "rds"
        });
        rpc.send(json!({"type": "bash", "command": "sleep 600"}));
        rpc.signal(signal);
        assert_eq!(rpc.wait().status.code(), Some(status));
        let mut stored = home.stored_messages().into_iter();
        let last = stored.rfind(|message| message["role"] == "assistant");
        let last = last.expect("it is stored");
        assert_eq!(
            (&last["stopReason"], &last["content"][0]["text"]),
            (&json!("aborted"), &json!("partial words"))
        );
        are_sound(&home);
        server.finish();
    }
}

#[test]
fn an_idle_session_is_gone_sooner_than_clients_of_pi_kill() {
    // §8.4: one second after SIGTERM
    let server = ModelServer::start([reply::text("One.")]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    rpc.turn("Go.");
    let asked = Instant::now();
    rpc.signal(libc::SIGTERM);
    assert_eq!(rpc.wait().status.code(), Some(143));
    assert!(
        asked.elapsed() < Duration::from_secs(1),
        "{:?}",
        asked.elapsed()
    );
    server.finish();
}

#[test]
fn a_reader_that_leaves_ends_the_mode_and_what_was_said_is_stored() {
    let gate = pliant_tests::Gate::new();
    let server = ModelServer::start([
        reply::text("One."),
        reply::text("two").gated_after(0, &gate),
    ]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    rpc.turn("Go.");
    rpc.ok(json!({"type": "prompt", "message": "On."}));
    server.wait_for(2);
    rpc.close_output();
    gate.open();
    // It notices when it has something to say.
    super::super::signals::until("the end", || {
        rpc.send(json!({"type": "get_state"}));
        rpc.has_ended().then_some(())
    });
    let ended = rpc.wait();
    assert_eq!(ended.status.code(), Some(1), "{ended:#?}");
    let roles: Vec<_> = home
        .stored_messages()
        .into_iter()
        .map(|message| message["role"].clone())
        .collect();
    assert_eq!(roles[1..4], ["user", "assistant", "user"]);
    are_sound(&home);
}

#[test]
fn both_ends_may_close_at_once() {
    for _ in 0..5 {
        // The question may or may not be asked.
        let server = ModelServer::answering(|_| reply::text("One."));
        let home = TempHome::with_model(&server);
        let mut rpc = home.rpc();
        rpc.ok(json!({"type": "prompt", "message": "Go."}));
        rpc.close_output();
        rpc.close_input();
        let ended = rpc.wait();
        assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:#?}");
        are_sound(&home);
    }
}

#[test]
fn input_that_cannot_be_read_has_ended_and_output_that_cannot_be_written_is_a_failure() {
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let run = |redirected: &str| {
        let script =
            format!("exec \"$0\" --mode rpc --provider mock --model mock-model {redirected}");
        home.shell(&script).run()
    };
    let output = run("< /");
    assert!(
        output.status.code().is_some_and(|status| status < 2),
        "{output:#?}"
    );
    assert!(!output.stderr.contains("panicked"), "{output:#?}");
    let output = run("< /dev/null");
    assert_eq!(output.status.code(), Some(0), "{output:#?}");
    let output = home
        .shell("echo '{\"type\":\"get_state\"}' | exec \"$0\" --mode rpc --provider mock --model mock-model > /dev/full")
        .run();
    assert_eq!(output.status.code(), Some(1), "{output:#?}");
    assert!(output.stderr.contains("cannot be written"), "{output:#?}");
}

#[test]
fn a_session_file_that_is_taken_away_costs_no_answer() {
    type Harm = fn(&std::path::Path);
    let harms: [Harm; 3] = [
        |file| fs::remove_file(file).expect("it is there"),
        |file| fs::set_permissions(file, fs::Permissions::from_mode(0o400)).expect("it is ours"),
        |file| {
            let folder = file.parent().expect("a folder");
            fs::rename(folder, folder.with_extension("away")).expect("it is ours");
        },
    ];
    for harm in harms {
        let server = ModelServer::start([reply::text("One."), reply::text("Two.")]);
        let home = TempHome::with_model(&server);
        let mut rpc = home.rpc();
        rpc.turn("first");
        harm(&home.session_files()[0]);
        rpc.turn("second");
        assert_eq!(
            rpc.ok(json!({"type": "get_last_assistant_text"}))["text"],
            "Two."
        );
        let entries = rpc.ok(json!({"type": "get_entries"}))["entries"].take();
        assert!(entries.as_array().is_some_and(|entries| entries.len() >= 5));
        rpc.end();
        server.finish();
    }
}

#[test]
fn two_processes_do_not_share_a_session() {
    let server = ModelServer::start([reply::text("One.")]);
    let home = TempHome::with_model(&server);
    let mut first = home.rpc();
    first.turn("first");
    let file = first.state()["sessionFile"].take();
    let mut second = home.rpc();
    let before = second.state();
    let error = second.error(json!({"type": "switch_session", "sessionPath": file}));
    assert!(
        error.contains(&format!("process {}", first.id())),
        "{error}"
    );
    assert_eq!(second.state(), before);
    first.end();
    second.ok(json!({"type": "switch_session", "sessionPath": file}));
    assert_eq!(second.state()["sessionFile"], file);
    second.end();
    are_sound(&home);
    server.finish();
}

#[test]
fn the_mode_refuses_files_and_a_session_that_is_not_there() {
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    home.write("a.txt", "x");
    for args in [
        &["--mode", "rpc", "@a.txt"][..],
        &["--mode", "rpc", "--session", "feedfacefeed"],
    ] {
        let output = home.pliant_with_model().args(args).run();
        assert_eq!(output.failure(&[]).stdout, "");
    }
}
