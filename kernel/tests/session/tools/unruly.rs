//! Tools that do what no tool should.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pliant_sdk::message::joined_text;
use pliant_sdk::tool::{ToolCtx, ToolResult, ToolSpec};
use pliant_sdk::{Error, Plugin};
use serde_json::json;
use tokio::sync::Notify;

use super::*;

#[tokio::test]
async fn a_tool_that_calls_itself_without_end_is_told_so() {
    // T19
    let again = does("again", |_, ctx| async move {
        let called = ctx.call_tool("again", json!({})).await?;
        Ok(called.result)
    });
    let scene = scene(one_call("again", json!({})), Plugin::new().tool(again)).await;
    scene.prompt("go").await;
    let result = results(&scene).remove(0);
    let said = joined_text(&result.content, "");
    assert!(
        said.contains("inside 32 calls that are made inside each other"),
        "{said}"
    );
    let record = result.nested_calls.unwrap();
    assert_eq!(record["calls"].as_array().unwrap().len(), 33);
}

#[tokio::test]
async fn a_tool_that_starts_calls_without_end_is_told_so() {
    let greedy = does("greedy", |_, ctx| async move {
        for _ in 0..4096 {
            ctx.start_tool("endless", json!({})).await?;
        }
        Ok(ctx.call_tool("endless", json!({})).await?.result)
    });
    let endless = does("endless", |_, _| std::future::pending());
    let mut scene = scene(
        one_call("greedy", json!({})),
        Plugin::new().tool(greedy).tool(endless),
    )
    .await;
    let mut events = std::mem::replace(&mut scene.events, scene.session.subscribe());
    events.close();
    let reads = tokio::spawn({
        let mut events = std::mem::replace(&mut scene.events, events);
        async move {
            let mut starts = 0;
            let mut ends = 0;
            while let Some(event) = events.recv().await {
                match &*event {
                    Event::ToolExecutionStart { .. } => starts += 1,
                    Event::ToolExecutionEnd { .. } => ends += 1,
                    Event::AgentSettled { .. } => break,
                    _ => {}
                }
            }
            (starts, ends)
        }
    });
    scene.prompt("go").await;
    let result = results(&scene).remove(0);
    let said = joined_text(&result.content, "");
    assert!(said.contains("4096 calls are under way already"), "{said}");
    assert_eq!(
        result.nested_calls.unwrap()["calls"]
            .as_array()
            .unwrap()
            .len(),
        256
    );
    // Each of them has an end (invariant 16).
    assert_eq!(reads.await.unwrap(), (4098, 4098));
}

#[tokio::test]
async fn an_abort_ends_calls_inside_calls_however_deep() {
    // L27, L28, invariant 27
    let begun = Arc::new(Notify::new());
    let begins = Arc::clone(&begun);
    let endless = does("endless", move |_, _| {
        begins.notify_one();
        std::future::pending()
    });
    let waits = does("waits", |input, ctx| async move {
        let inner = input["inner"].as_str().unwrap_or("endless").to_owned();
        Ok(ctx.call_tool(&inner, json!({})).await?.result)
    });
    let script = one_call("waits", json!({"inner": "waits"}));
    script
        .replies
        .lock()
        .unwrap()
        .push_back(Reply::Text("later"));
    let mut scene = scene(script, Plugin::new().tool(endless).tool(waits)).await;
    let (session, mut ended) = (scene.session.clone(), false);
    tokio::join!(
        async {
            scene
                .session
                .prompt(pliant_kernel::pipeline::Prompt::text("go"), |_| ())
                .await
                .unwrap();
            ended = true;
        },
        async {
            begun.notified().await;
            session.abort().await;
        }
    );
    assert!(ended && scene.session.is_idle());
    let result = results(&scene).remove(0);
    assert!(result.is_error);
    let events = tool_events(&mut scene);
    for id in ["1", "1/1 in 1", "1/1/1 in 1/1"] {
        assert!(events.contains(&format!("end {id}")), "{events:?}");
    }
}

#[tokio::test]
async fn a_tool_that_has_ended_calls_no_other_and_shows_nothing() {
    // T6
    let kept: Arc<Mutex<Option<ToolCtx>>> = Arc::default();
    let keeps = Arc::clone(&kept);
    let keeper = does("keeper", move |_, ctx| {
        *keeps.lock().unwrap() = Some(ctx);
        async { Ok(ToolResult::text("kept")) }
    });
    let heard = Heard::default();
    let hears = heard.clone();
    let later = does("later", move |_, _| {
        let (ctx, hears) = (kept.lock().unwrap().clone().unwrap(), hears.clone());
        async move {
            ctx.update(&ToolResult::text("too late"));
            let called = ctx.call_tool("keeper", json!({})).await;
            hears.say(called.unwrap_err().to_string());
            Ok(ToolResult::default())
        }
    });
    let script = Script::new([
        calls([("1", "keeper", json!({}))]),
        calls([("2", "later", json!({}))]),
        Reply::Text("done"),
    ]);
    let mut scene = scene(script, Plugin::new().tool(keeper).tool(later)).await;
    scene.prompt("go").await;
    assert_eq!(
        heard.all(),
        ["The tool call 1 has ended; a tool can call others only while it runs."]
    );
    let events = tool_events(&mut scene);
    assert_eq!(
        events,
        ["start 1", "end 1", "start 2", "end 2", "agent_end"]
    );
}

#[tokio::test]
async fn a_panic_and_a_wrong_answer_are_results_of_the_call_that_made_them() {
    // T3, invariant 39
    let panics = does("panics", |_, _| async { panic!("on purpose") });
    let fails = does("fails", |_, _| async { Err(Error::failed("it broke")) });
    let calls_them = does("calls", |_, ctx| async move {
        let mut all = Vec::new();
        for name in ["panics", "fails"] {
            let called = ctx.call_tool(name, json!({})).await?;
            assert!(called.is_error);
            all.push(joined_text(&called.result.content, ""));
        }
        Ok(ToolResult::text(all.join("; ")))
    });
    let script = Script::new([
        calls([("1", "calls", json!({})), ("2", "panics", json!({}))]),
        Reply::Text("done"),
    ]);
    let plugin = Plugin::new().tool(panics).tool(fails).tool(calls_them);
    let scene = scene(script, plugin).await;
    scene.prompt("go").await;
    let results = result_texts(&scene.session);
    assert!(
        results[0].0.contains("panicked: on purpose") && results[0].0.contains("it broke"),
        "{results:?}"
    );
    assert!(
        results[1].1 && results[1].0.contains("panicked: on purpose"),
        "{results:?}"
    );
}

#[tokio::test]
async fn hundreds_of_calls_at_once_pass_a_reader_that_is_slow() {
    // Every sender of events has to go on while others wait, or all would wait.
    let many = does("many", |_, ctx| async move {
        let ctx = &ctx;
        let one = |n: usize| ctx.call_tool("echo", json!({"text": n.to_string()}));
        let all = futures_util::future::join_all((0..700).map(one)).await;
        let fine = all
            .iter()
            .filter(|called| called.as_ref().is_ok_and(|called| !called.is_error));
        Ok(ToolResult::text(fine.count().to_string()))
    });
    let mut scene = scene(
        one_call("many", json!({})),
        Plugin::new().tool(many).tool(echo("echo")),
    )
    .await;
    let unread = scene.session.subscribe();
    let mut events = std::mem::replace(&mut scene.events, unread);
    scene.events.close();
    let reads = tokio::spawn(async move {
        let mut seen = 0;
        while let Some(event) = events.recv().await {
            seen += 1;
            if seen % 64 == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            if matches!(*event, Event::AgentSettled { .. }) {
                break;
            }
        }
    });
    scene.prompt("go").await;
    assert_eq!(result_texts(&scene.session)[0].0, "700");
    reads.await.unwrap();
}

#[tokio::test]
async fn a_tool_that_answers_something_else_fails_with_its_sources_name() {
    let wrong = named(ToolSpec::new("fine", ""));
    let scene = scene(one_call("odd", json!({})), Plugin::new().tool(wrong)).await;
    scene.registry.publish(Arc::new(odd::Odd::default()));
    scene.prompt("go").await;
    let results = result_texts(&scene.session);
    assert!(
        results[0].1
            && results[0]
                .0
                .contains("\"odd\" answered \"execute\" with something else"),
        "{results:?}"
    );
}

mod odd {
    use std::sync::Arc;

    use pliant_kernel::registry::{Contribution, Generation, Kind, Rank, Source};
    use pliant_sdk::Error;
    use pliant_sdk::host::BoxFuture;
    use pliant_sdk::plugin::Invocation;
    use serde_json::json;

    /// A source whose tool answers a number.
    pub struct Odd {
        source: Source,
        contributions: Arc<[Contribution]>,
    }

    impl Default for Odd {
        fn default() -> Self {
            Self {
                source: Source::inline("odd", Rank::User),
                contributions: Arc::new([Contribution {
                    id: 0,
                    kind: Kind::Tool,
                    name: "odd".into(),
                    spec: json!({"name": "odd", "description": "", "parameters": {"type": "object"}}),
                }]),
            }
        }
    }

    impl Generation for Odd {
        fn source(&self) -> &Source {
            &self.source
        }

        fn contributions(&self) -> Arc<[Contribution]> {
            Arc::clone(&self.contributions)
        }

        fn invoke(&self, _: u32, _: Invocation) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
            Box::pin(std::future::ready(Ok(b"7".to_vec())))
        }

        fn control(&self, _: &str, _: &[u8]) -> Result<Vec<u8>, Error> {
            Ok(Vec::new())
        }
    }
}
