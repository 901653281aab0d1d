//! A conversation that grows too long for its model: it goes on from a summary, in the same process and
//! in the next (`kernel.md` §6.5, §6.6).

use pliant_tests::{ModelServer, Reply, Request, TempHome, reply};
use serde_json::json;

/// What a test keeps of the conversation is less than one answer.
fn home(server: &ModelServer) -> TempHome {
    let home = TempHome::with_model(server);
    home.settings(json!({
        "retry": {"enabled": false}, "compaction": {"keepRecentTokens": 8},
    }));
    home
}

/// An answer after which the window of 128,000 tokens is nearly full.
fn filling() -> Reply {
    reply::text("It says alpha, and nothing else of interest.").usage(120_000, 10)
}

fn first_run() -> [Reply; 3] {
    [
        reply::tool_call("read", json!({"path": "a.txt"})),
        filling(),
        reply::text("## Goal\nTo know what is in a.txt."),
    ]
}

/// What a request says, without its prompt.
fn spoken(request: &Request) -> Vec<(String, String)> {
    let conversation = request.conversation().into_iter();
    conversation
        .map(|(role, text)| (role.to_owned(), text))
        .collect()
}

#[test]
fn a_resumed_session_sends_the_summary_and_what_was_kept() {
    // R24, R32, R36
    let server = ModelServer::start(first_run().into_iter().chain([reply::text("I am.")]));
    let home = home(&server);
    home.write("a.txt", "alpha\n");
    let output = home.json_prompt("What is in a.txt?").run().success();
    let [end] = &output.events_of("compaction_end")[..] else {
        panic!("one compaction ends")
    };
    assert_eq!(end["reason"], "threshold");
    assert_eq!(end["result"]["tokensBefore"], 120_010);
    assert_eq!(end["result"]["details"]["readFiles"], json!(["a.txt"]));
    assert_eq!(output.events_of("compaction_start").len(), 1);

    let output = home
        .prompt("Are you sure?")
        .args(["--continue"])
        .run()
        .success();
    assert_eq!(output.stdout, "I am.\n");
    let requests = server.finish();
    let [_, _, summary, resumed] = &requests[..] else {
        panic!("two for the first run, one for the summary, one for the second run")
    };
    let [(role, asked)] = &spoken(summary)[..] else {
        panic!("a request for a summary is one message")
    };
    assert_eq!(role, "user");
    assert!(
        asked.contains("[User]: What is in a.txt?\n\n[Assistant tool calls]: read(path=\"a.txt\")")
            && asked.contains("[Tool result]: "),
        "{asked}"
    );
    assert!(summary.tools().is_empty());
    let spoken = spoken(resumed);
    let [(_, told), kept, new] = &spoken[..] else {
        panic!("summary, answer, prompt: {spoken:?}")
    };
    assert!(
        told.contains("To know what is in a.txt.")
            && told.contains("<read-files>\na.txt\n</read-files>"),
        "{told}"
    );
    assert_eq!(kept.0, "assistant");
    assert_eq!(*new, ("user".to_owned(), "Are you sure?".to_owned()));
    assert_eq!(resumed.tools(), requests[0].tools());
    assert_eq!(resumed.system_prompt(), requests[0].system_prompt());
}

#[test]
fn a_request_that_is_too_large_costs_one_compaction_and_a_second_one_the_run() {
    // R22, reports K06
    let too_large = || reply::error(400, "This model's maximum context length is 8192 tokens.");
    let replies = [
        reply::text("An answer that is longer than what is kept."),
        too_large(),
        reply::text("The summary."),
        too_large(),
    ];
    let server = ModelServer::start(replies);
    let home = home(&server);
    home.prompt("One.").run().success();
    let output = home
        .json_prompt("Two.")
        .args(["--continue"])
        .run()
        .success();
    let ends = output.events_of("compaction_end");
    let seen: Vec<_> = ends
        .iter()
        .map(|end| {
            (
                &end["reason"],
                &end["willRetry"],
                end["errorMessage"].is_string(),
            )
        })
        .collect();
    let overflow = json!("overflow");
    assert_eq!(
        seen,
        [
            (&overflow, &json!(true), false),
            (&overflow, &json!(false), true)
        ]
    );
    assert_eq!(server.finish().len(), 4);
}

/// Writes the summary itself.
const SUMMARISER: &str = r#"
    on("session_before_compact", |event, ctx| {
        let prepared = event.preparation;
        let told = prepared.messagesToSummarize.len() + prepared.turnPrefixMessages.len();
        #{ compaction: #{
            summary: `${told} messages because of the ${event.reason}`,
            firstKeptEntryId: prepared.firstKeptEntryId,
            details: #{ by: "a script" },
        } }
    });
"#;

#[test]
fn a_script_writes_the_summary_and_no_model_is_asked() {
    // R26, extensions §3.1
    let server = ModelServer::start([
        reply::tool_call("read", json!({"path": "a.txt"})),
        filling(),
    ]);
    let home = home(&server);
    home.write("a.txt", "alpha\n");
    let script = home
        .write("summariser.rhai", SUMMARISER)
        .display()
        .to_string();
    let run = home.json_prompt("What is in a.txt?").args(["-e", &script]);
    let output = run.run().success();
    let [end] = &output.events_of("compaction_end")[..] else {
        panic!("one compaction ends")
    };
    assert_eq!(
        end["result"]["summary"],
        "3 messages because of the threshold"
    );
    assert_eq!(end["result"]["details"], json!({"by": "a script"}));
    assert_eq!(server.finish().len(), 2);
}
