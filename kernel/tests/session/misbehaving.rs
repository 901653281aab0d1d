//! Handlers, tools and users that misbehave, at every hook point and in every way: what happens is
//! defined, the session stays usable, and idle is reached (`kernel.md` §9, invariants 27, 38 to 40).

use std::collections::BTreeSet;
use std::future::pending;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pliant_kernel::pipeline::{Prompt, WhenActive};
use pliant_kernel::registry::HookPoint;
use pliant_kernel::run::NavigateOptions;
use pliant_kernel::session::{Disposition, Session};
use pliant_sdk::host::BoxFuture;
use pliant_sdk::message::StopReason;
use pliant_sdk::plugin::CallCtx;
use pliant_sdk::tool::{ToolCtx, ToolResult, ToolSpec};
use pliant_sdk::{Error, Event, Plugin, Tool};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::support::*;

/// What a handler does, time after time.
type Manner = fn(CallCtx) -> BoxFuture<'static, Result<Value, Error>>;

const FAILS: Manner = |_| Box::pin(async { Err(Error::failed("it fails")) });
// A panic that says nothing on the terminal of the tests.
const PANICS: Manner = |_| Box::pin(async { resume_unwind(Box::new("it panics")) });
const HANGS: Manner = |_| Box::pin(pending());

/// Answers that hardly any point knows what to do with.
const NONSENSE: [&str; 14] = [
    r#"7"#,
    r#""text""#,
    r#"[]"#,
    r#"[{"role": "user"}]"#,
    r#"{"message": 7}"#,
    r#"{"message": {"role": 7, "content": {}}}"#,
    r#"{"messages": {"0": null}}"#,
    r#"{"action": []}"#,
    r#"{"action": "transform", "text": {}, "images": "none"}"#,
    r#"{"entries": [7, {"type": "compaction"}], "continue": "yes"}"#,
    r#"{"block": [], "reason": 7}"#,
    r#"{"cancel": {}, "compaction": 7, "summary": []}"#,
    r#"{"content": 7, "details": 7, "isError": "no", "usage": [], "terminate": 7}"#,
    r#"{"event": 7, "systemPrompt": [], "result": 7, "operations": {}}"#,
];

/// Much happens to the session, and all of it ends.
async fn live(scene: &Scene) {
    let all = async {
        let session = &scene.session;
        // Some handlers refuse or take what is asked; here it matters that there is an answer.
        let _ = session.prompt(Prompt::text("first"), |_| ()).await;
        let _ = session.prompt(Prompt::text("second"), |_| ()).await;
        let _ = session.compact(None).await;
        let _ = session.set_name("a name").await;
        let first = session.entries()[0].id().clone();
        let options = NavigateOptions::default();
        let _ = session.navigate_tree(&first, options).await;
        session.wait_idle().await;
    };
    timeout(Duration::from_secs(10), all).await.expect("ends");
}

fn day() -> Script {
    let call = || calls([("1", "echo", json!({"text": "x"}))]);
    let long = || Reply::Text("An answer of some length, so that there is something to summarise.");
    Script::new(
        [call(), long(), call(), long()]
            .into_iter()
            .chain(std::iter::repeat_with(|| Reply::Text("Enough.")).take(6)),
    )
}

async fn scene_of(plugin: Plugin) -> Scene {
    let settings = json!({
        "retry": {"baseDelayMs": 1},
        "compaction": {"keepRecentTokens": 10},
        "extensions": {"handlerTimeoutMs": 15},
    });
    scene_with(day(), plugin.tool(echo("echo")), settings).await
}

/// The extension is gone, and a prompt is answered as ever.
async fn is_usable(scene: &Scene, after: &str) {
    assert!(scene.session.is_idle(), "{after}");
    scene.publish("extension", Plugin::new());
    let reason = answered(scene).await;
    assert_eq!(reason, StopReason::Stop, "{after}");
}

async fn answered(scene: &Scene) -> StopReason {
    *scene.script.replies.lock().unwrap() = [Reply::Text("Still here.")].into();
    let end = scene.prompt("still there?").await;
    end.last.unwrap().as_assistant().unwrap().stop_reason
}

/// At which points errors were told.
fn told(scene: &mut Scene) -> BTreeSet<String> {
    let told = scene.events().into_iter();
    let told = told.filter_map(|event| Some(event.strip_prefix("extension_error ")?.to_owned()));
    told.collect()
}

/// A handler of each point in its own session; answers at which points it was called.
async fn at_every_point(
    manner: impl Fn(CallCtx) -> BoxFuture<'static, Result<Value, Error>> + Send + Sync + Clone + 'static,
    check: impl Fn(&'static str, &mut Scene),
) -> BTreeSet<&'static str> {
    let mut reached = BTreeSet::new();
    for point in HookPoint::ALL {
        let point = point.name();
        let called = Arc::new(Mutex::new(0));
        let (count, manner) = (Arc::clone(&called), manner.clone());
        let plugin = Plugin::new().on_event(point, move |_, ctx| {
            *count.lock().unwrap() += 1;
            manner(ctx)
        });
        let mut scene = scene_of(plugin).await;
        live(&scene).await;
        if *called.lock().unwrap() > 0 {
            reached.insert(point);
            check(point, &mut scene);
        }
        is_usable(&scene, point).await;
    }
    reached
}

/// Results of the tool are as ever, except behind a gate that fails.
fn failure_is_told(point: &'static str, scene: &mut Scene) {
    let results = result_texts(&scene.session);
    let closed = point == "tool_call";
    for (text, is_error) in results {
        assert_eq!(is_error, closed, "{point}: {text}");
    }
    let told = told(scene);
    assert!(told.contains(point), "{point}: {told:?}");
}

#[tokio::test]
async fn a_handler_that_fails_or_panics_is_told_and_ends_nothing_at_any_point() {
    // G5, T2, invariant 39
    let failed = at_every_point(FAILS, failure_is_told).await;
    let panicked = at_every_point(PANICS, failure_is_told).await;
    assert_eq!(failed, panicked);
    assert!(failed.len() >= 20, "{failed:?}");
}

#[tokio::test]
async fn a_handler_that_hangs_is_ended_at_every_point() {
    // G5, extensions §6, invariant 39
    let hung = at_every_point(HANGS, failure_is_told).await;
    assert!(hung.len() >= 20, "{hung:?}");
}

#[tokio::test]
async fn an_answer_of_the_wrong_type_ends_nothing_at_any_point() {
    // G5, G6, invariant 39
    for answer in NONSENSE {
        let answer: Value = serde_json::from_str(answer).unwrap();
        let plugin = HookPoint::ALL.iter().fold(Plugin::new(), |plugin, point| {
            let answer = answer.clone();
            plugin.on_event(point.name(), move |_, _| {
                let answer = answer.clone();
                async move { Ok(answer) }
            })
        });
        let scene = scene_of(plugin).await;
        live(&scene).await;
        is_usable(&scene, &answer.to_string()).await;
    }
}

#[tokio::test]
async fn an_abort_from_every_point_ends_in_a_session_that_is_idle() {
    // R51, L27, L29, invariants 27 and 39
    let aborts = |ctx: CallCtx| -> BoxFuture<'static, Result<Value, Error>> {
        Box::pin(async move {
            ctx.host().session().abort().await?;
            Ok(Value::Null)
        })
    };
    at_every_point(aborts, |_, _| ()).await;
}

#[tokio::test]
async fn whatever_a_handler_asks_of_its_session_it_gets_an_answer() {
    // Invariant 39: no handler waits for what waits for it.
    let asks = |ctx: CallCtx| -> BoxFuture<'static, Result<Value, Error>> {
        Box::pin(async move {
            let names: Vec<String> = ctx.host().call("host.services", &Value::Null).await?;
            let of_session = names.iter().filter(|name| name.starts_with("session."));
            // These two end what runs, also the prompt that the test ends with (R25).
            let ends_runs = |name: &str| ["session.abort", "session.compact"].contains(&name);
            for name in of_session.filter(|name| !ends_runs(name)) {
                for payload in [Value::Null, json!({}), json!(7)] {
                    let asked = ctx.host().call::<Value>(name, &payload);
                    // The answer is a refusal as a rule.
                    let _ = timeout(Duration::from_secs(5), asked).await.expect(name);
                }
            }
            Ok(Value::Null)
        })
    };
    for point in HookPoint::ALL {
        let asked = Arc::new(Mutex::new(false));
        let plugin = Plugin::new().on_event(point.name(), move |_, ctx| {
            // Once: some of what is asked makes the session do more.
            let first = !std::mem::replace(&mut *asked.lock().unwrap(), true);
            async move {
                match first {
                    true => asks(ctx).await,
                    false => Ok(Value::Null),
                }
            }
        });
        let settings = json!({"compaction": {"keepRecentTokens": 10}});
        let scene = scene_with(day(), plugin.tool(echo("echo")), settings).await;
        live(&scene).await;
        let idle = timeout(Duration::from_secs(5), scene.session.wait_idle()).await;
        assert!(idle.is_ok(), "{point:?}");
        scene.publish("extension", Plugin::new());
        // A compaction that was asked for stops what runs when its time comes.
        let mut usable = false;
        for _ in 0..10 {
            usable |= answered(&scene).await == StopReason::Stop;
        }
        assert!(usable, "{point:?}");
    }
}

/// Says that it runs, and never ends.
struct Endless(Arc<Notify>);

impl Tool for Endless {
    type Input = Value;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("endless", "Never ends.")
    }

    async fn execute(&self, _: Value, ctx: ToolCtx) -> Result<ToolResult, Error> {
        ctx.update(&ToolResult::text("begun"));
        self.0.notify_one();
        pending().await
    }
}

#[tokio::test]
async fn tools_that_never_end_are_ended_by_an_abort_and_told_to_the_model() {
    // T3, T8, L28, invariants 27 and 39
    let runs = Arc::new(Notify::new());
    let plugin = Plugin::new()
        .tool(Endless(Arc::clone(&runs)))
        .tool(echo("echo"));
    let three = calls([
        ("1", "endless", json!({})),
        ("2", "echo", json!({"text": "x"})),
        ("3", "endless", json!({})),
    ]);
    let script = Script::new([three, Reply::Text("Sorry.")]);
    let scene = scene(script, plugin).await;
    tokio::join!(scene.prompt("go"), async {
        runs.notified().await;
        scene.session.abort().await;
        assert!(scene.session.is_idle());
    });
    let results = result_texts(&scene.session);
    let errors: Vec<bool> = results.iter().map(|(_, is_error)| *is_error).collect();
    assert_eq!(errors, [true, false, true], "{results:?}");
    assert!(results[0].0.starts_with("begun"), "{results:?}");
    scene.prompt("again").await;
    assert_eq!(scene.script.requests()[1].last().unwrap(), "user:again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn prompts_from_many_threads_at_once_start_one_run_each_time() {
    // P2, P6, invariants 29 and 40
    let replies = std::iter::repeat_with(|| Reply::Text("ok")).take(400);
    let mut scene = scene(Script::new(replies), Plugin::new()).await;
    for round in 0..25 {
        let said = Said::default();
        let prompt = |number: usize| {
            let (session, listener) = (scene.session.clone(), said.listener());
            tokio::spawn(async move { ask(&session, round, number, listener).await })
        };
        let asked: Vec<_> = (0..6).map(prompt).collect();
        let mut refused = 0;
        for asked in asked {
            refused += usize::from(asked.await.unwrap());
        }
        scene.session.wait_idle().await;
        let said = said.take();
        let count = |wanted: Disposition| said.iter().filter(|said| **said == wanted).count();
        assert_eq!(said.len(), 6, "{said:?}");
        assert_eq!(count(Disposition::Rejected), refused, "{said:?}");
        let settled = settled(&mut scene);
        assert_eq!(count(Disposition::Started), settled, "{said:?}");
        assert!(settled > 0);
    }
    let (steering, follow_ups) = scene.session.queued();
    assert!(steering.is_empty() && follow_ups.is_empty());
}

/// Whether it was refused.
async fn ask(
    session: &Session,
    round: usize,
    number: usize,
    listener: impl FnOnce(Disposition) + Send + 'static,
) -> bool {
    let ways = [None, Some(WhenActive::Steer), Some(WhenActive::FollowUp)];
    let prompt = Prompt {
        when_active: ways[number % 3],
        ..Prompt::text(format!("{round} {number}"))
    };
    session.prompt(prompt, listener).await.is_err()
}

fn settled(scene: &mut Scene) -> usize {
    let mut settled = 0;
    while let Ok(event) = scene.events.try_recv() {
        settled += usize::from(matches!(*event, Event::AgentSettled { .. }));
    }
    settled
}
