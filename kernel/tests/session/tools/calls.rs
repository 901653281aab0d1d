//! The stations of a call of the model (`kernel.md` §4.1–4.4).

use std::sync::Arc;

use pliant_kernel::pipeline::{Prompt, WhenActive};
use pliant_sdk::hook::{ToolCallAnswer, ToolCallEvent, ToolResultEvent, ToolResultPatch};
use pliant_sdk::message::{Usage, joined_text};
use pliant_sdk::tool::{ExecutionMode, ToolResult, ToolSpec};
use pliant_sdk::{Error, Plugin};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::*;

#[tokio::test]
async fn handlers_see_what_a_call_and_its_result_are_and_a_patch_replaces_whole_fields() {
    // T4, T5, T14, T15, extensions §3.4
    let heard = Heard::default();
    let mut plugin = Plugin::new().tool(does("pays", |_, _| async {
        Ok(ToolResult {
            usage: Some(Usage {
                output: 3,
                ..Usage::default()
            }),
            ..ToolResult::text("a")
                .with_details(json!({"d": 1}))
                .with_structured(json!({"s": 1}))
        })
    }));
    for event in ["tool_call", "tool_result"] {
        let hears = heard.clone();
        plugin = plugin.on_event(event, move |event, _| {
            hears.say(event.to_string());
            async { Ok(Value::Null) }
        });
    }
    let patches = json!([
        {"details": {"e": 2}, "usage": {"output": 9}, "isError": true},
        {"content": "b"},
        {"content": 5, "details": {"never": 1}},
    ]);
    for patch in patches.as_array().unwrap().clone() {
        plugin = plugin.on_event("tool_result", move |_, _| {
            let patch = patch.clone();
            async { Ok(patch) }
        });
    }
    let hears = heard.clone();
    plugin = plugin.on(move |result: ToolResultEvent, _| {
        let text = joined_text(&result.content, "");
        hears.say(format!("last: {text} {:?}", result.structured_content));
        async { Ok(ToolResultPatch::default()) }
    });
    let mut scene = scene(one_call("pays", json!({"x": 1})), plugin).await;
    scene.prompt("go").await;
    let heard = heard.all();
    let of = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    assert_eq!(
        of(&heard[0]),
        json!({"type": "tool_call", "toolCallId": "1", "toolName": "pays", "input": {"x": 1}})
    );
    let mut result = of(&heard[1]);
    assert_eq!(result["usage"].take()["output"], 3);
    assert_eq!(
        result,
        json!({"type": "tool_result", "toolCallId": "1", "toolName": "pays", "input": {"x": 1},
            "content": [{"type": "text", "text": "a"}], "details": {"d": 1},
            "structuredContent": {"s": 1}, "isError": false, "usage": null})
    );
    assert_eq!(heard[2], "last: b None");
    let stored = results(&scene).remove(0);
    assert_eq!(joined_text(&stored.content, ""), "b");
    assert_eq!(stored.details, Some(json!({"e": 2})));
    assert_eq!(stored.usage.unwrap().output, 9);
    assert!(stored.is_error && stored.duration_ms.is_some());
    assert!(
        scene
            .events()
            .contains(&"extension_error tool_result".to_owned())
    );
}

#[tokio::test]
async fn a_call_that_is_not_run_meets_no_later_station_but_its_end() {
    // T2, T14, T17, extensions §9.4
    let heard = Heard::default();
    let (gate, after) = (heard.clone(), heard.clone());
    let plugin = Plugin::new()
        .tool(echo("echo"))
        .on(move |call: ToolCallEvent, _| {
            gate.say(format!("call {}", call.tool_call_id));
            async { Ok(ToolCallAnswer::block("no")) }
        })
        .on(move |result: ToolResultEvent, _| {
            after.say(format!("result {}", result.tool_call_id));
            async { Ok(ToolResultPatch::default()) }
        });
    let three = calls([
        ("1", "nothing", json!({})),
        ("2", "echo", json!({})),
        ("3", "echo", json!({"text": "x"})),
    ]);
    let script = Script::new([three, Reply::Text("done")]);
    let mut scene = scene(script, plugin).await;
    scene.prompt("go").await;
    assert_eq!(heard.all(), ["call 3"]);
    assert_eq!(
        tool_events(&mut scene),
        [
            "start 1",
            "end 1",
            "start 2",
            "end 2",
            "start 3",
            "end 3",
            "agent_end"
        ]
    );
    let all = results(&scene);
    assert!(
        all.iter()
            .all(|result| result.is_error && result.duration_ms.is_none())
    );
}

/// A tool that wants the run to end there if told so.
fn last(name: &str) -> impl pliant_sdk::Tool {
    does(name, |input, _| async move {
        Ok(ToolResult {
            terminate: input["end"] == true,
            ..ToolResult::text("ok")
        })
    })
}

#[tokio::test]
async fn a_batch_ends_the_run_when_every_result_says_so() {
    // T7
    let both = |first: bool| {
        calls([
            ("1", "last", json!({"end": first})),
            ("2", "last", json!({"end": true})),
        ])
    };
    let script = Script::new([both(false), both(true), Reply::Text("never said")]);
    let scene = scene(script, Plugin::new().tool(last("last"))).await;
    scene.prompt("go").await;
    assert_eq!(scene.script.requests().len(), 2);
    let stored = serde_json::to_value(&results(&scene)[3]).unwrap();
    assert_eq!(stored.get("terminate"), None);
}

#[tokio::test]
async fn a_blocked_call_counts_with_what_its_block_says_and_steering_goes_on_after_the_end() {
    // T7, T14
    let (entered, steered) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let gate = (Arc::clone(&entered), Arc::clone(&steered));
    let plugin = Plugin::new()
        .tool(last("last"))
        .on(move |call: ToolCallEvent, _| {
            let (entered, steered) = gate.clone();
            async move {
                if call.tool_call_id != "2" {
                    // Of a call that runs nothing is heard but whether it may.
                    return Ok(ToolCallAnswer {
                        terminate: true,
                        ..ToolCallAnswer::default()
                    });
                }
                entered.notify_one();
                steered.notified().await;
                Ok(ToolCallAnswer {
                    terminate: true,
                    ..ToolCallAnswer::block("enough")
                })
            }
        });
    let script = Script::new([
        calls([
            ("1", "last", json!({"end": true})),
            ("2", "last", json!({})),
        ]),
        Reply::Text("after the steering"),
        calls([("3", "last", json!({}))]),
        Reply::Text("went on"),
    ]);
    let scene = scene(script, plugin).await;
    let session = &scene.session;
    let prompt = |text: &str| {
        let mut prompt = Prompt::text(text);
        prompt.when_active = Some(WhenActive::Steer);
        prompt
    };
    let (run, ()) = tokio::join!(session.prompt(prompt("go"), |_| ()), async {
        entered.notified().await;
        session.prompt(prompt("more"), |_| ()).await.unwrap();
        steered.notify_one();
    });
    run.unwrap();
    let requests = scene.script.requests();
    assert_eq!(requests.len(), 2, "{requests:?}");
    assert_eq!(requests[1].last().unwrap(), "user:more");
    scene.prompt("again").await;
    assert_eq!(scene.script.requests().len(), 4);
}

#[tokio::test]
async fn calls_of_a_cut_off_answer_are_answered_and_not_run() {
    // L15
    let ran = echo("echo");
    let count = Arc::clone(&ran.ran);
    let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "echo", "arguments": {"text": "x"}});
    let cut = json!({"stopReason": "length", "content": [call("1"), call("2")]});
    let script = Script::new([Reply::Answer(cut), Reply::Text("done")]);
    let mut scene = scene(script, Plugin::new().tool(ran)).await;
    scene.prompt("go").await;
    assert_eq!(count.load(std::sync::atomic::Ordering::SeqCst), 0);
    let words: Vec<_> = scene
        .events()
        .into_iter()
        .filter(|word| word.contains("tool"))
        .collect();
    let one = |id: &str| {
        [
            format!("tool_execution_start {id}"),
            format!("tool_execution_end {id}"),
            "message_start toolResult".to_owned(),
            "message_end toolResult".to_owned(),
        ]
    };
    assert_eq!(words, [one("1"), one("2")].concat());
    let results = result_texts(&scene.session);
    assert!(
        results
            .iter()
            .all(|(text, failed)| *failed && text.contains("output limit"))
    );
    assert_eq!(scene.script.requests().len(), 2);
}

#[tokio::test]
async fn what_a_tool_shows_is_told_before_its_end_and_the_end_of_a_quick_one_comes_first() {
    // T6, §4.2
    let go = Arc::new(Notify::new());
    let waits = Arc::clone(&go);
    let slow = does("slow", move |_, ctx| {
        let waits = Arc::clone(&waits);
        async move {
            waits.notified().await;
            ctx.update(&ToolResult::text("nearly"));
            Ok(ToolResult::text("slow"))
        }
    });
    let quick = does("quick", move |_, _| {
        go.notify_one();
        async { Ok(ToolResult::text("quick")) }
    });
    let two = calls([("1", "slow", json!({})), ("2", "quick", json!({}))]);
    let script = Script::new([two, Reply::Text("done")]);
    let mut scene = scene(script, Plugin::new().tool(slow).tool(quick)).await;
    scene.prompt("go").await;
    assert_eq!(
        tool_events(&mut scene),
        [
            "start 1",
            "start 2",
            "end 2",
            "update 1",
            "end 1",
            "agent_end"
        ]
    );
    assert_eq!(result_texts(&scene.session)[0].0, "slow");
}

#[tokio::test]
async fn a_result_may_be_a_text_or_nothing_and_old_arguments_are_brought_into_shape_first() {
    // T2, T5, M8
    struct Old;
    impl pliant_sdk::Tool for Old {
        type Input = EchoInput;

        fn spec(&self) -> ToolSpec {
            ToolSpec::new("old", "").prepares()
        }

        fn prepare(&self, arguments: Value) -> Value {
            json!({"text": arguments["message"]})
        }

        async fn execute(
            &self,
            input: EchoInput,
            _: pliant_sdk::ToolCtx,
        ) -> Result<ToolResult, Error> {
            Ok(serde_json::from_value(json!({"content": input.text}))?)
        }
    }
    let empty = does("empty", |_, _| async {
        Ok(serde_json::from_value(json!({"content": null}))?)
    });
    let two = calls([
        ("1", "old", json!({"message": 7})),
        ("2", "empty", json!({})),
    ]);
    let script = Script::new([two, Reply::Text("done")]);
    let scene = scene(script, Plugin::new().tool(Old).tool(empty)).await;
    scene.prompt("go").await;
    assert_eq!(
        result_texts(&scene.session),
        [("7".into(), false), (String::new(), false)]
    );
    assert_eq!(results(&scene)[1].content, []);
}

#[tokio::test]
async fn a_sequential_batch_ends_each_call_before_the_next_begins() {
    // T1, §4.2
    let alone = named(ToolSpec {
        execution_mode: ExecutionMode::Sequential,
        ..ToolSpec::new("alone", "")
    });
    let three = calls([
        ("1", "echo", json!({"text": "a"})),
        ("2", "nothing", json!({})),
        ("3", "alone", json!({})),
    ]);
    let script = Script::new([three, Reply::Text("done")]);
    let mut scene = scene(script, Plugin::new().tool(alone).tool(echo("echo"))).await;
    scene.prompt("go").await;
    let words: Vec<_> = scene
        .events()
        .into_iter()
        .filter(|word| word.starts_with("tool") || word == "message_end toolResult")
        .filter(|word| !word.contains("update"))
        .collect();
    let one = |id: &str| {
        [
            format!("tool_execution_start {id}"),
            format!("tool_execution_end {id}"),
            "message_end toolResult".to_owned(),
        ]
    };
    assert_eq!(words, [one("1"), one("2"), one("3")].concat());
}

#[tokio::test]
async fn changed_arguments_reach_later_handlers_and_the_tool_but_nothing_that_is_told() {
    // T9, extensions §9.3
    let heard = Heard::default();
    let mut plugin = Plugin::new().tool(does("says", |input, _| async move {
        Ok(ToolResult::text(input.to_string()))
    }));
    for n in [1, 2] {
        let hears = heard.clone();
        plugin = plugin.on(move |call: ToolCallEvent, _| {
            hears.say(json!(call.input).to_string());
            let input = json!({"changed": n});
            async move {
                Ok(ToolCallAnswer::with_input(
                    input.as_object().cloned().unwrap(),
                ))
            }
        });
    }
    let mut scene = scene(one_call("says", json!({"x": 1})), plugin).await;
    scene.prompt("go").await;
    assert_eq!(heard.all(), [r#"{"x":1}"#, r#"{"changed":1}"#]);
    assert_eq!(result_texts(&scene.session)[0].0, r#"{"changed":2}"#);
    while let Ok(event) = scene.events.try_recv() {
        if let Event::ToolExecutionStart { args, .. } = &*event {
            assert_eq!(args, &json!({"x": 1}));
        }
    }
    let stored = scene.session.messages();
    let call = stored
        .iter()
        .find_map(|message| message.as_assistant()?.tool_calls().next().cloned());
    assert_eq!(json!(call.unwrap().arguments), json!({"x": 1}));
}

#[tokio::test]
async fn who_saw_a_call_begin_to_run_sees_how_it_ended_also_after_an_abort() {
    // L28, extensions §2.5
    let (begun, heard) = (Arc::new(Notify::new()), Heard::default());
    let (begins, hears) = (Arc::clone(&begun), heard.clone());
    let endless = does("endless", move |_, ctx| {
        ctx.update(&ToolResult::text("so far"));
        begins.notify_one();
        std::future::pending()
    });
    let plugin = Plugin::new()
        .tool(endless)
        .on(move |result: ToolResultEvent, _| {
            let text = joined_text(&result.content, ", ");
            hears.say(format!(
                "{} {text} {}",
                result.tool_call_id, result.is_error
            ));
            async { Ok(ToolResultPatch::default()) }
        });
    let scene = scene(one_call("endless", json!({})), plugin).await;
    let session = &scene.session;
    let (run, ()) = tokio::join!(session.prompt(Prompt::text("go"), |_| ()), async {
        begun.notified().await;
        session.abort().await;
    });
    run.unwrap();
    assert_eq!(heard.all(), ["1 so far, Operation aborted true"]);
}

#[tokio::test]
async fn a_call_that_is_aborted_while_its_gate_decides_was_not_blocked() {
    // T2, L28
    let asked = Arc::new(Notify::new());
    let asks = Arc::clone(&asked);
    let plugin = Plugin::new()
        .tool(echo("echo"))
        .on(move |_: ToolCallEvent, _| {
            asks.notify_one();
            std::future::pending::<Result<ToolCallAnswer, Error>>()
        });
    let scene = scene(one_call("echo", json!({"text": "x"})), plugin).await;
    let session = &scene.session;
    let (run, ()) = tokio::join!(session.prompt(Prompt::text("go"), |_| ()), async {
        asked.notified().await;
        session.abort().await;
    });
    run.unwrap();
    let expected = ("Operation aborted".to_owned(), true);
    assert_eq!(result_texts(session), [expected]);
}
