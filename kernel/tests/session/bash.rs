//! Commands the user runs himself, beside runs and between them.

use std::sync::Arc;
use std::time::Duration;

use pliant_kernel::session::BashOptions;
use pliant_sdk::hook::{UserBashAnswer, UserBashEvent, UserBashResult};
use pliant_sdk::message::{BashExecutionMessage, Message};
use pliant_sdk::{Error, Event, Plugin};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::*;

fn roles(scene: &Scene) -> Vec<&'static str> {
    let messages = scene.session.messages();
    messages
        .iter()
        .map(|message| match &**message {
            Message::BashExecution(_) => "bash",
            Message::Assistant(_) => "assistant",
            Message::ToolResult(_) => "result",
            Message::User(_) => "user",
            _ => "other",
        })
        .filter(|role| *role != "other")
        .collect()
}

fn deltas(scene: &mut Scene) -> Vec<(Option<Value>, String)> {
    let mut deltas = Vec::new();
    while let Ok(event) = scene.events.try_recv() {
        if let Event::BashExecutionUpdate { id, delta } = &*event {
            deltas.push((id.clone(), delta.clone()));
        }
    }
    deltas
}

fn result(command: &str) -> BashExecutionMessage {
    BashExecutionMessage {
        command: command.into(),
        output: "out".into(),
        exit_code: Some(0),
        ..BashExecutionMessage::default()
    }
}

#[tokio::test]
async fn a_command_is_shown_while_it_runs_cleaned_and_stored_without_the_prefix() {
    // R44, R45, interfaces §8.2
    let settings = json!({"shellCommandPrefix": "greeting=hello"});
    let script = Script::new([Reply::Text("fine")]);
    let mut scene = scene_with(script, Plugin::new(), settings).await;
    let command =
        "printf \"\\033[1m$greeting\\033[0m\\r\\n\"; echo ${PLIANT_SESSION_ID:-none} >&2; exit 3";
    let options = BashOptions {
        id: Some(json!("q")),
        ..BashOptions::default()
    };
    let said = scene.session.execute_bash(command, options).await.unwrap();
    assert_eq!(
        (said.command.as_str(), said.output.as_str()),
        (command, "hello\nnone\n")
    );
    assert_eq!(
        (said.exit_code, said.cancelled, said.truncated),
        (Some(3), false, false)
    );
    let shown = deltas(&mut scene);
    assert!(shown.iter().all(|(id, _)| *id == Some(json!("q"))));
    assert_eq!(
        shown
            .into_iter()
            .map(|(_, delta)| delta)
            .collect::<String>(),
        said.output
    );
    // Such a command alone is no conversation (S11).
    assert!(scene.session.file().is_none_or(|file| !file.exists()));
    scene.prompt("well?").await;
    let request = scene.script.requests()[0].clone();
    assert!(
        request[0].starts_with("user:Ran `printf") && request[0].ends_with("code 3"),
        "{request:?}"
    );
    assert_eq!(request[1..], ["system", "user:well?"]);
}

#[tokio::test]
async fn a_command_that_is_excluded_is_stored_and_not_sent() {
    // R46
    let scene = scene(Script::new([Reply::Text("fine")]), Plugin::new()).await;
    let options = BashOptions {
        exclude_from_context: true,
        ..BashOptions::default()
    };
    scene
        .session
        .execute_bash("echo secret", options)
        .await
        .unwrap();
    scene.prompt("hi").await;
    assert_eq!(roles(&scene), ["bash", "user", "assistant"]);
    assert_eq!(scene.script.requests()[0], ["system", "user:hi"]);
}

#[tokio::test]
async fn long_output_is_cut_to_its_end_and_the_whole_is_in_a_file() {
    // R44
    let mut scene = scene(Script::default(), Plugin::new()).await;
    let session = scene.session.clone();
    let run = session.execute_bash("seq 1 5000", BashOptions::default());
    let said = run.await.unwrap();
    assert!(said.truncated && said.output.starts_with("3001\n") && said.output.ends_with("5000"));
    let path = said.full_output_path.unwrap();
    let whole: String = deltas(&mut scene)
        .into_iter()
        .map(|(_, delta)| delta)
        .collect();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), whole);
    assert!(whole.starts_with("1\n2\n") && whole.ends_with("5000\n"));
    std::fs::remove_file(path).unwrap();
}

#[tokio::test]
async fn stopping_commands_keeps_what_they_printed_and_stops_no_run() {
    // R44, R51, interfaces §8.2: abort and abort_bash
    let let_go = Arc::new(Notify::new());
    let script = Script::new([Reply::When(Arc::clone(&let_go), "done")]);
    let mut scene = scene(script, Plugin::new()).await;
    let session = scene.session.clone();
    let mut printed = session.subscribe();
    let (_, said, ()) = tokio::join!(
        scene.prompt("go"),
        session.execute_bash("echo begun; sleep 600", BashOptions::default()),
        async {
            while !matches!(
                &*printed.recv().await.unwrap(),
                Event::BashExecutionUpdate { .. }
            ) {}
            session.abort_bash();
            assert!(session.is_running());
            let_go.notify_one();
        }
    );
    let said = said.unwrap();
    assert!(said.cancelled && said.exit_code.is_none());
    assert_eq!(said.output, "begun\n");
    // The next one runs.
    let next = session
        .execute_bash("echo next", BashOptions::default())
        .await;
    assert_eq!(next.unwrap().output, "next\n");
    assert_eq!(roles(&scene), ["user", "assistant", "bash", "bash"]);
    scene.events();
}

#[tokio::test]
async fn a_command_that_cannot_be_started_is_an_error_and_leaves_nothing() {
    let settings = json!({"shellPath": "/no/such/shell"});
    let scene = scene_with(Script::default(), Plugin::new(), settings).await;
    let run = scene
        .session
        .execute_bash("ls", BashOptions::default())
        .await;
    assert!(run.unwrap_err().message.contains("/no/such/shell"));
    assert_eq!(roles(&scene).len(), 0);
}

#[tokio::test]
async fn results_that_come_during_a_run_stand_behind_it_in_their_order() {
    // R45, invariants 11 and 37
    let tool = echo("echo");
    let running = Arc::clone(&tool.running);
    let replies = [
        calls([("a", "echo", json!({"text": "A", "wait": 20}))]),
        Reply::Text("done"),
        Reply::Text("next"),
    ];
    let scene = scene(Script::new(replies), Plugin::new().tool(tool)).await;
    let session = scene.session.clone();
    session.record_bash_result(result("before")).unwrap();
    tokio::join!(scene.prompt("go"), async {
        running.notified().await;
        session.record_bash_result(result("first")).unwrap();
        session.record_bash_result(result("second")).unwrap();
        assert_eq!(roles(&scene), ["bash", "user", "assistant"]);
    });
    assert_eq!(
        roles(&scene),
        [
            "bash",
            "user",
            "assistant",
            "result",
            "assistant",
            "bash",
            "bash"
        ]
    );
    scene.prompt("more").await;
    let last = scene.script.requests().pop().unwrap();
    let ran: Vec<_> = last
        .iter()
        .filter(|line| line.starts_with("user:Ran"))
        .collect();
    assert!(
        ran[1].contains("`first`") && ran[2].contains("`second`"),
        "{ran:?}"
    );
}

#[tokio::test]
async fn results_that_come_while_a_run_is_prepared_stand_before_its_messages() {
    // R45, P8
    let let_go = Arc::new(Notify::new());
    let long = "A long answer, which is summarised before the next prompt.";
    let replies = [
        Reply::Answer(json!({"content": [{"type": "text", "text": long}],
            "usage": {"input": 10_000, "output": 5, "totalTokens": 10_005}})),
        Reply::Fail("401: not now"),
        Reply::When(Arc::clone(&let_go), "SUMMARY"),
        Reply::Text("next"),
    ];
    let settings = json!({"compaction": {"reserveTokens": 118_000, "keepRecentTokens": 10}});
    let scene = scene_with(Script::new(replies), Plugin::new(), settings).await;
    scene.prompt("first").await;
    let session = scene.session.clone();
    tokio::join!(scene.prompt("second"), async {
        while scene.script.requests().len() < 3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        session.record_bash_result(result("meanwhile")).unwrap();
        let_go.notify_one();
    });
    let last = scene.script.requests().pop().unwrap();
    let [ran, asked] = &last[last.len() - 2..] else {
        panic!()
    };
    assert!(
        ran.contains("`meanwhile`") && asked == "user:second",
        "{last:?}"
    );
}

#[tokio::test]
async fn a_handler_may_answer_in_place_of_the_shell_and_one_that_fails_stops_the_command() {
    // extensions §1.3, §3.5, §9.17, G5
    let plugin = Plugin::new()
        .on(|event: UserBashEvent, _| async move {
            assert!(!event.cwd.is_empty());
            if event.command == "broken" {
                return Err(Error::failed("no"));
            }
            let here = event.command == "remote" && event.exclude_from_context;
            let result = UserBashResult {
                output: "there".into(),
                ..UserBashResult::default()
            };
            Ok(here.then_some(UserBashAnswer { result }))
        })
        .on_event("user_bash", |event: Value, _| async move {
            // The first answer was decisive.
            assert_ne!(event["command"], "remote");
            let odd = event["command"] == "odd";
            let answer = json!({"result": {"output": "no code"}});
            Ok(if odd { answer } else { Value::Null })
        });
    let mut scene = scene(Script::default(), plugin).await;
    let session = scene.session.clone();
    let options = BashOptions {
        exclude_from_context: true,
        ..BashOptions::default()
    };
    let said = session.execute_bash("remote", options).await.unwrap();
    assert_eq!((said.output.as_str(), said.exit_code), ("there", None));
    assert_eq!(said.exclude_from_context, Some(true));
    let mark = scene.dir.path().join("mark");
    for command in ["broken", "odd"] {
        let run = session.execute_bash(command, BashOptions::default()).await;
        assert!(run.unwrap_err().message.contains("was not run"));
    }
    assert!(!mark.exists());
    let touch = format!("touch {}", mark.display());
    session
        .execute_bash(&touch, BashOptions::default())
        .await
        .unwrap();
    assert!(mark.exists());
    assert_eq!(roles(&scene), ["bash", "bash"]);
    let events = scene.events();
    let told = events
        .iter()
        .filter(|event| *event == "extension_error user_bash")
        .count();
    assert_eq!(told, 2, "{events:?}");
}
