//! Calls inside calls (`kernel.md` §4.5, `extensions.md` §5.4).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pliant_sdk::hook::{ToolCallAnswer, ToolCallEvent, ToolResultEvent, ToolResultPatch};
use pliant_sdk::message::{Usage, joined_text};
use pliant_sdk::session::CalledTool;
use pliant_sdk::tool::{ExecutionMode, Exposure, ToolResult, ToolSpec};
use pliant_sdk::{Error, Plugin};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::*;

fn text(called: &CalledTool) -> String {
    joined_text(&called.result.content, "")
}

/// `id: text`, with a mark for errors.
fn line(called: &CalledTool) -> String {
    let mark = if called.is_error { "!" } else { "" };
    format!("{}{mark}: {}", called.tool_call.id, text(called))
}

/// Calls what its arguments list, one after another, and answers their lines.
fn outer(spec: ToolSpec) -> impl pliant_sdk::Tool {
    does_as(spec, |input, ctx| async move {
        let mut lines = Vec::new();
        for call in input["calls"].as_array().unwrap() {
            let name = call[0].as_str().unwrap();
            lines.push(line(&ctx.call_tool(name, call[1].clone()).await?));
        }
        Ok(ToolResult::text(lines.join("\n")))
    })
}

fn costing(output: u64) -> ToolResult {
    ToolResult {
        usage: Some(Usage {
            output,
            ..Usage::default()
        }),
        ..ToolResult::text("paid")
    }
}

#[tokio::test]
async fn a_call_inside_a_call_passes_the_same_stations_and_is_recorded_on_the_models_call() {
    // T18, T19, T21, T14, T15, extensions §9.14
    let heard = Heard::default();
    let (gate, after) = (heard.clone(), heard.clone());
    let plugin = Plugin::new()
        .tool(outer(ToolSpec::new("outer", "Calls others.")))
        .tool(echo("echo"))
        .on(move |call: ToolCallEvent, _| {
            gate.say(format!(
                "call {} {:?}",
                call.tool_call_id, call.parent_tool_call_id
            ));
            async move {
                Ok(match call.input.get("text").and_then(Value::as_str) {
                    Some("no") => ToolCallAnswer::block("not that"),
                    _ => ToolCallAnswer::default(),
                })
            }
        })
        .on(move |result: ToolResultEvent, _| {
            let (id, parent) = (&result.tool_call_id, &result.parent_tool_call_id);
            after.say(format!("result {id} {parent:?}"));
            async move {
                let patch = ToolResultPatch {
                    content: Some(ToolResult::text("patched").content),
                    ..ToolResultPatch::default()
                };
                let mine = result.input.get("text") == Some(&json!("patch"));
                Ok(if mine {
                    patch
                } else {
                    ToolResultPatch::default()
                })
            }
        });
    let inner = json!({"calls": [
        ["echo", {"text": 5}], ["nothing", {}], ["echo", {}], ["echo", {"text": "no"}],
        ["echo", {"text": "patch"}], ["echo", 3],
    ]});
    let mut scene = scene(one_call("outer", inner), plugin).await;
    scene.prompt("go").await;
    let result = results(&scene).remove(0);
    let lines = joined_text(&result.content, "");
    let lines: Vec<_> = lines
        .lines()
        .filter(|line| line.starts_with("1/"))
        .collect();
    assert_eq!(lines[0], "1/1: 5");
    assert!(
        lines[1].starts_with("1/2!: There is no tool \"nothing\". The tools are: outer, echo.")
    );
    assert!(lines[2].starts_with("1/3!: Validation failed"));
    assert_eq!(lines[3..5], ["1/4!: not that", "1/5: patched"]);
    assert!(
        lines[5].starts_with("1/6!: Invalid arguments for tool \"echo\""),
        "{}",
        lines[5]
    );
    assert_eq!(
        heard.all(),
        [
            "call 1 None",
            "call 1/1 Some(\"1\")",
            "result 1/1 Some(\"1\")",
            "call 1/4 Some(\"1\")",
            "call 1/5 Some(\"1\")",
            "result 1/5 Some(\"1\")",
            "result 1 None"
        ]
    );
    let events = tool_events(&mut scene);
    assert_eq!(
        events[..3],
        ["start 1", "start 1/1 in 1", "update 1/1 in 1"]
    );
    assert_eq!(events[4], "start 1/2 in 1");
    assert_eq!(events[5], "end 1/2 in 1");
    // Nothing of it is in the transcript.
    assert_eq!(scene.script.requests()[1].len(), 4);
    let mut record = result.nested_calls.unwrap();
    for call in record["calls"].as_array_mut().unwrap() {
        call.as_object_mut().unwrap().remove("durationMs");
        if let Some(error) = call.get_mut("error") {
            *error = json!(error.as_str().unwrap().split(' ').next());
        }
    }
    let of = |id, arguments, status| json!({"id": id, "name": "echo", "arguments": arguments, "status": status});
    let failed = |mut call: Value, error| {
        call["error"] = json!(error);
        call
    };
    let mut unknown = failed(of("1/2", json!({}), "error"), "There");
    unknown["name"] = json!("nothing");
    assert_eq!(
        record,
        json!({"complete": true, "calls": [
            of("1/1", json!({"text": 5}), "ok"),
            unknown,
            failed(of("1/3", json!({}), "error"), "Validation"),
            failed(of("1/4", json!({"text": "no"}), "error"), "not"),
            of("1/5", json!({"text": "patch"}), "ok"),
            failed(of("1/6", json!({}), "error"), "Invalid"),
        ]})
    );
}

#[tokio::test]
async fn calls_nest_to_any_depth_and_the_models_call_pays_for_all_of_them() {
    // T19, T21
    let deep = does("deep", |input, ctx| async move {
        let left = input["left"].as_u64().unwrap();
        if left > 0 {
            ctx.call_tool("deep", json!({"left": left - 1})).await?;
            // Of one caller the numbers go on.
            ctx.call_tool("paid", json!({})).await?;
        }
        Ok(costing(100))
    });
    let paid = does("paid", |_, _| async { Ok(costing(1)) });
    let script = one_call("deep", json!({"left": 2}));
    let scene = scene(script, Plugin::new().tool(deep).tool(paid)).await;
    scene.prompt("go").await;
    let result = results(&scene).remove(0);
    assert_eq!(result.usage.unwrap().output, 302);
    let record = result.nested_calls.unwrap();
    let ids: Vec<_> = record["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["1/1", "1/1/1", "1/1/2", "1/2"]);
}

#[tokio::test]
async fn a_caller_sees_what_the_called_tool_shows() {
    // T18
    let heard = Heard::default();
    let hears = heard.clone();
    let watches = does("watches", move |_, ctx| {
        let hears = hears.clone();
        async move {
            let show = |partial: ToolResult| hears.say(joined_text(&partial.content, ""));
            let arguments = json!({"text": "all of it"});
            let called = ctx.watch_tool("echo", arguments, show).await?;
            hears.say(text(&called));
            Ok(ToolResult::default())
        }
    });
    let plugin = Plugin::new().tool(watches).tool(echo("echo"));
    let mut scene = scene(one_call("watches", json!({})), plugin).await;
    scene.prompt("go").await;
    assert_eq!(heard.all(), ["so far", "all of it"]);
    let events = tool_events(&mut scene);
    assert!(events.contains(&"update 1/1 in 1".to_owned()), "{events:?}");
}

#[tokio::test]
async fn dropping_a_call_aborts_it_and_the_caller_goes_on() {
    // T18
    let (begun, heard) = (Arc::new(Notify::new()), Heard::default());
    let begins = Arc::clone(&begun);
    let endless = does("endless", move |_, _| {
        begins.notify_one();
        std::future::pending()
    });
    let hears = heard.clone();
    let impatient = does("impatient", move |_, ctx| {
        let (begun, hears) = (Arc::clone(&begun), hears.clone());
        async move {
            tokio::select! {
                _ = ctx.call_tool("endless", json!({})) => unreachable!(),
                () = begun.notified() => {}
            }
            let next = ctx.call_tool("echo", json!({"text": "next"})).await?;
            hears.say(line(&next));
            Ok(ToolResult::text("went on"))
        }
    });
    let plugin = Plugin::new()
        .tool(endless)
        .tool(impatient)
        .tool(echo("echo"));
    let mut scene = scene(one_call("impatient", json!({})), plugin).await;
    scene.prompt("go").await;
    assert_eq!(heard.all(), ["1/2: next"]);
    let record = results(&scene).remove(0).nested_calls.unwrap();
    assert_eq!(record["calls"][0]["error"], "Operation aborted");
    assert!(tool_events(&mut scene).contains(&"end 1/1 in 1".to_owned()));
}

#[tokio::test]
async fn a_call_nobody_waits_for_may_end_later_but_not_after_its_run() {
    // T19, T21, invariant 16
    let go = Arc::new(Notify::new());
    let waits = Arc::clone(&go);
    let slow = does("slow", move |_, _| {
        let waits = Arc::clone(&waits);
        async move {
            waits.notified().await;
            Ok(costing(5))
        }
    });
    let starts = does("starts", |_, ctx| async move {
        let first = ctx.start_tool("slow", json!({})).await?;
        let second = ctx.start_tool("slow", json!({})).await?;
        Ok(ToolResult::text(format!("{first} {second}")))
    });
    let lets_go = does("lets_go", move |_, _| {
        go.notify_one();
        async { Ok(ToolResult::text("")) }
    });
    let plugin = Plugin::new().tool(slow).tool(starts).tool(lets_go);
    let script = Script::new([
        calls([("1", "starts", json!({}))]),
        calls([("2", "lets_go", json!({}))]),
        Reply::Text("done"),
    ]);
    let mut scene = scene(script, plugin).await;
    scene.prompt("go").await;
    let result = results(&scene).remove(0);
    assert_eq!(joined_text(&result.content, ""), "1/1 1/2");
    let record = result.nested_calls.unwrap();
    assert_eq!(record["complete"], false);
    assert_eq!(record["calls"][1]["status"], "unfinished");
    let events = tool_events(&mut scene);
    let at = |word: &str| events.iter().position(|event| event == word).unwrap();
    assert!(at("end 1") < at("end 1/1 in 1"), "{events:?}");
    assert!(at("end 1/2 in 1") < at("agent_end"), "{events:?}");
}

#[tokio::test]
async fn sequential_tools_wait_for_each_other_and_not_for_their_caller() {
    // T20, extensions §9.15
    let running = Arc::new(AtomicUsize::new(0));
    let alone = {
        let running = Arc::clone(&running);
        let spec = ToolSpec {
            execution_mode: ExecutionMode::Sequential,
            ..ToolSpec::new("alone", "")
        };
        does_as(spec, move |input, ctx| {
            let running = Arc::clone(&running);
            async move {
                let deeper = input["deeper"].as_u64().unwrap_or(0);
                if deeper > 0 {
                    let inside = json!({"deeper": deeper - 1});
                    let (a, b) = tokio::join!(
                        ctx.call_tool("alone", inside.clone()),
                        ctx.call_tool("alone", inside)
                    );
                    return Ok(ToolResult::text(format!("{}{}", text(&a?), text(&b?))));
                }
                assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0);
                tokio::task::yield_now().await;
                running.fetch_sub(1, Ordering::SeqCst);
                Ok(ToolResult::text("x"))
            }
        })
    };
    let both = does("both", |_, ctx| async move {
        let deeper = json!({"deeper": 1});
        let (a, b) = tokio::join!(
            ctx.call_tool("alone", deeper.clone()),
            ctx.call_tool("alone", deeper)
        );
        Ok(ToolResult::text(format!("{}{}", text(&a?), text(&b?))))
    });
    let script = Script::new([
        calls([("1", "both", json!({}))]),
        calls([("2", "alone", json!({"deeper": 2}))]),
        Reply::Text("done"),
    ]);
    let scene = scene(script, Plugin::new().tool(alone).tool(both)).await;
    scene.prompt("go").await;
    assert_eq!(
        result_texts(&scene.session),
        [("xxxx".into(), false), ("xxxx".into(), false)]
    );
}

#[tokio::test]
async fn a_setting_makes_all_calls_sequential() {
    // T1, T20
    let two = calls([
        ("1", "outer", json!({"calls": [["echo", {"text": "a"}]]})),
        ("2", "echo", json!({"text": "b"})),
    ]);
    let plugin = Plugin::new()
        .tool(outer(ToolSpec::new("outer", "")))
        .tool(echo("echo"));
    let script = Script::new([two, Reply::Text("done")]);
    let mut scene = scene_with(script, plugin, json!({"toolExecution": "sequential"})).await;
    scene.prompt("go").await;
    let events = tool_events(&mut scene);
    let at = |word: &str| events.iter().position(|event| event == word).unwrap();
    assert!(at("end 1/1 in 1") < at("end 1"), "{events:?}");
    assert!(at("end 1") < at("start 2"), "{events:?}");
    assert_eq!(result_texts(&scene.session)[0].0, "1/1: a");
}

#[tokio::test]
async fn who_may_be_called_follows_from_the_exposure() {
    // T22, extensions §4.2
    let exposed = |name: &str, exposure| named(ToolSpec::new(name, "").exposed(exposure));
    let plugin = Plugin::new()
        .tool(outer(
            ToolSpec::new("outer", "").exposed(Exposure::ModelOnly),
        ))
        .tool(exposed("direct", Exposure::Direct))
        .tool(named(ToolSpec::new("off", "").inactive()))
        .tool(exposed("script", Exposure::Codemode))
        .tool(exposed("later", Exposure::Deferred))
        .tool(exposed("gone", Exposure::Hidden));
    let names = ["direct", "off", "script", "later", "gone", "outer"];
    let wanted = names.map(|name| json!([name, {}]));
    let inner = json!({"calls": wanted});
    let asks = Script::new([
        calls([
            ("1", "outer", inner),
            ("2", "script", json!({})),
            ("3", "later", json!({})),
        ]),
        Reply::Text("done"),
    ]);
    let scene = scene(asks, plugin).await;
    scene.prompt("go").await;
    let results = result_texts(&scene.session);
    let lines: Vec<_> = results[0].0.lines().collect();
    let no = |id: &str, name| {
        format!("{id}!: There is no tool \"{name}\". The tools are: direct, script, later.")
    };
    assert_eq!(
        lines,
        [
            "1/1: direct".to_owned(),
            no("1/2", "off"),
            "1/3: script".to_owned(),
            "1/4: later".to_owned(),
            no("1/5", "gone"),
            no("1/6", "outer"),
        ]
    );
    // Nor may the model call what it was not told of.
    assert_eq!(declared(&scene.script)[0], ["outer", "direct"]);
    assert!(results[1].1 && results[2].1, "{results:?}");
}

#[tokio::test]
async fn structured_content_reaches_programs_and_not_the_transcript() {
    // T5, extensions §4.1
    let inner = does("inner", |_, _| async {
        Ok(ToolResult::text("words").with_structured(json!({"n": 1})))
    });
    let reads = does("reads", |_, ctx| async move {
        let called = ctx.call_tool("inner", json!({})).await?;
        let structured = called.result.structured_content.unwrap();
        Ok(ToolResult::text(structured["n"].to_string()).with_structured(structured))
    });
    let scene = scene(
        one_call("reads", json!({})),
        Plugin::new().tool(inner).tool(reads),
    )
    .await;
    scene.prompt("go").await;
    let result = results(&scene).remove(0);
    assert_eq!(joined_text(&result.content, ""), "1");
    let stored = serde_json::to_value(&result).unwrap();
    assert_eq!(stored.get("structuredContent"), None);
}

#[tokio::test]
async fn only_running_tools_call_others() {
    // extensions §5.1
    let heard = Heard::default();
    let hears = heard.clone();
    let plugin = Plugin::new().on_event("turn_end", move |_, ctx| {
        let hears = hears.clone();
        async move {
            let payload = json!({"name": "echo"});
            let called: Result<Value, Error> = ctx.host().call("tools.call", &payload).await;
            hears.say(called.unwrap_err().to_string());
            let payload = payload.to_string().into_bytes();
            let opened = ctx.host().open("tools.call", payload).await;
            hears.say(opened.unwrap_err().to_string());
            Ok(Value::Null)
        }
    });
    let scene = scene(
        Script::new([Reply::Text("hello")]),
        plugin.tool(echo("echo")),
    )
    .await;
    scene.prompt("hi").await;
    let said = heard.all();
    assert_eq!(said.len(), 2);
    assert!(
        said.iter()
            .all(|said| said.contains("in a running tool only")),
        "{said:?}"
    );
}
