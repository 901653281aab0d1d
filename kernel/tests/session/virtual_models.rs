//! Virtual models: who answers each request, what a route is told and keeps, whose limits count, and how
//! full the context is. Rules of `kernel.md` §7.3 are named at each test.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use pliant_kernel::models::ModelWish;
use pliant_kernel::pipeline::Prompt;
use pliant_kernel::registry::{InProcess, Rank, Source};
use pliant_kernel::run::NavigateOptions;
use pliant_kernel::session::{SelectOptions, Session};
use pliant_kernel::{Kernel, OpenOptions, SessionChoice};
use pliant_sdk::message::StopReason;
use pliant_sdk::message::ThinkingLevel::{self, High, Low, Off};
use pliant_sdk::plugin::CallCtx;
use pliant_sdk::session::ContextUsage;
use pliant_sdk::virtual_model::{Route, RouteRequest, VirtualModel, VirtualModelSpec};
use pliant_sdk::{Error, Model, Plugin};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::models::{Shop, entries_of, model, selections};
use crate::support::*;

/// Routes as it is told, and writes down what it is asked.
#[derive(Clone, Default)]
struct Router {
    routes: Arc<Mutex<VecDeque<Result<Route, Error>>>>,
    asked: Arc<Mutex<Vec<String>>>,
    requests: Arc<Mutex<Vec<RouteRequest>>>,
    spec: VirtualModelSpec,
}

impl Router {
    fn new(routes: impl IntoIterator<Item = Result<Route, Error>>) -> Self {
        Self {
            routes: Arc::new(Mutex::new(routes.into_iter().collect())),
            spec: VirtualModelSpec {
                thinking_levels: vec![Off, Low, High],
                ..VirtualModelSpec::new("router", "auto", "Auto")
            },
            ..Self::default()
        }
    }

    /// Always to the same model.
    fn to(model: &str) -> Self {
        Self::new(std::iter::repeat_n(Ok(Route::to(model)), 20))
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl VirtualModel for Router {
    fn spec(&self) -> VirtualModelSpec {
        self.spec.clone()
    }

    async fn route(&self, request: RouteRequest, _: CallCtx) -> Result<Route, Error> {
        let text = |message: &Option<Arc<pliant_sdk::Message>>| {
            let answer = message.as_ref().and_then(|message| message.as_assistant());
            answer.map_or_else(|| "-".to_owned(), |answer| answer.model.clone())
        };
        let failed = request.failed.as_ref();
        let failed = failed.map_or_else(|| "-".to_owned(), |failed| failed.model.reference());
        let state = request.state.clone().unwrap_or_default();
        let reason = serde_json::to_value(request.reason)?;
        self.asked.lock().unwrap().push(format!(
            "{} previous {} failed {failed} state {state}",
            reason.as_str().unwrap(),
            text(&request.previous),
        ));
        self.requests.lock().unwrap().push(request);
        let route = self.routes.lock().unwrap().pop_front();
        route.unwrap_or_else(|| Err(Error::failed("the router has no route left")))
    }
}

fn plugin(router: &Router) -> Plugin {
    let window = |id: &str, window| Model {
        context_window: window,
        ..model("acme", id, Some(json!({"low": null})))
    };
    let models = vec![window("small", 20_000), window("large", 1_000_000)];
    let paid = vec![model("paid", "gold", None)];
    Plugin::new()
        .tool(echo("echo"))
        .provider(Shop("acme", None, models))
        .provider(Shop("paid", Some("NO_SUCH_KEY_OF_PLIANT"), paid))
        .virtual_model(router.clone())
}

/// A session with the router selected.
async fn routed(replies: impl IntoIterator<Item = Reply>, router: &Router) -> Scene {
    let settings = json!({"retry": {"baseDelayMs": 1}, "compaction": {"keepRecentTokens": 10}});
    let mut scene = scene_with(Script::new(replies), plugin(router), settings).await;
    let how = SelectOptions {
        level: Some(Low),
        ..SelectOptions::default()
    };
    scene
        .session
        .set_model(&router.spec.model(), how)
        .await
        .unwrap();
    scene.events();
    scene
}

fn models(scene: &Scene) -> Vec<String> {
    scene.script.models.lock().unwrap().clone()
}

fn last_error(session: &Session) -> String {
    let messages = session.messages();
    let answer = messages.last().unwrap().as_assistant().unwrap();
    answer.error_message.clone().unwrap()
}

fn busy(text: &str, input: u64) -> Reply {
    Reply::Answer(json!({"content": [{"type": "text", "text": text}],
        "usage": {"input": input, "output": 5, "totalTokens": input + 5}}))
}

#[tokio::test]
async fn every_request_is_routed_with_its_reason_and_the_state_that_the_last_route_kept() {
    // V10, V11, V12, V13: user, continuation, retry
    let state = |n: u32| json!({ "n": n });
    let router = Router::new([
        Ok(Route::to("acme/small").with_state(state(1))),
        Ok(Route::to("acme/small").with_state(state(1))),
        Ok(Route::to("acme/large").at(High).with_state(state(2))),
        Ok(Route::to("acme/large")),
    ]);
    let replies = [
        calls([("c1", "echo", json!({"text": "x"}))]),
        Reply::Fail("503 overloaded"),
        Reply::Text("done"),
        Reply::Text("again"),
    ];
    let scene = routed(replies, &router).await;
    scene.prompt("hi").await;
    scene.prompt("more").await;
    assert_eq!(
        router.asked(),
        [
            "user previous - failed - state null",
            "continuation previous small failed - state {\"n\":1}",
            "retry previous small failed acme/small state {\"n\":1}",
            "user previous large failed - state {\"n\":2}",
        ]
    );
    let expected = ["acme/small", "acme/small", "acme/large", "acme/large"];
    assert_eq!(models(&scene), expected);
    // The conversation that is about to be sent, without the attempt that failed.
    let requests = router.requests.lock().unwrap();
    let roles = |request: &RouteRequest| {
        let roles = request
            .messages
            .iter()
            .map(|message| message.role().to_owned());
        roles.collect::<Vec<_>>()
    };
    assert_eq!(
        roles(&requests[2]),
        ["system", "user", "assistant", "toolResult"]
    );
    assert_eq!(requests[2].model.reference(), "router/auto");
    assert_eq!(requests[2].thinking_level, Low);
    let failed = requests[2].failed.as_ref().unwrap().message.as_assistant();
    assert_eq!(failed.unwrap().model, "small");
}

#[tokio::test]
async fn the_selection_stays_virtual_and_answers_name_who_gave_them() {
    // V13, V14, M6: the state stands before the answer, and only when it is another one
    let state = || json!({"n": 1});
    let router = Router::new([
        Ok(Route::to("acme/small").at(Low).with_state(state())),
        Ok(Route::to("acme/large").at(Off).with_state(state())),
    ]);
    let replies = [
        calls([("c1", "echo", json!({"text": "x"}))]),
        Reply::Text("done"),
    ];
    let mut scene = routed(replies, &router).await;
    scene.prompt("hi").await;
    assert_eq!(scene.session.model().unwrap().reference(), "router/auto");
    assert_eq!(
        selections(&scene.session),
        [
            "to fake/m",
            "at off",
            "to router/auto",
            "at low",
            // `low` is none of the target's levels.
            "answer of acme/small at medium",
            "answer of acme/large at off",
        ]
    );
    let entries = entries_of(&scene.session);
    let kept: Vec<_> = entries
        .iter()
        .filter(|entry| entry["type"] == "custom")
        .collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0]["customType"], "pi.virtual-model-state");
    assert_eq!(
        kept[0]["data"],
        json!({"provider": "router", "modelId": "auto", "state": {"n": 1}})
    );
    let place = |wanted: &dyn Fn(&Value) -> bool| entries.iter().position(wanted).unwrap();
    let state = place(&|entry| entry["type"] == "custom");
    assert!(place(&|entry| entry["message"]["role"] == "user") < state);
    assert!(state < place(&|entry| entry["message"]["role"] == "assistant"));
    let reasoning: Vec<_> = {
        let options = scene.script.options.lock().unwrap();
        options.iter().map(|options| options.reasoning).collect()
    };
    assert_eq!(reasoning, [Some(ThinkingLevel::Medium), None]);
    let appended = scene.events();
    let appended = appended.iter().filter(|event| *event == "entry_appended");
    assert_eq!(appended.count(), 1);
}

#[tokio::test]
async fn a_route_that_leads_nowhere_is_an_answer_that_says_so_and_nothing_is_sent() {
    // V10, providers §1.4
    for (route, says) in [
        (Err(Error::failed("no idea")), "no idea"),
        (Ok(Route::to("router/auto")), "virtual model itself"),
        (Ok(Route::to("acme/none")), "\"acme/none\""),
        (Ok(Route::to("paid/gold")), "no key for \"paid\""),
    ] {
        let router = Router::new([route]);
        let mut scene = routed([Reply::Text("never")], &router).await;
        scene.prompt("hi").await;
        let error = last_error(&scene.session);
        assert!(
            error.contains("router/auto") && error.contains(says),
            "{error}"
        );
        assert!(models(&scene).is_empty());
        let last = selections(&scene.session).pop().unwrap();
        assert_eq!(last, "answer of router/auto at low");
        assert_eq!(
            scene.events()[..],
            [
                "agent_start",
                "turn_start",
                "message_start system",
                "message_end system",
                "message_start user",
                "message_end user",
                "message_start assistant",
                "message_end assistant",
                "turn_end",
                "agent_end",
                "agent_settled",
            ]
        );
    }
}

/// Says nothing, or panics.
struct Bad(bool, Arc<Notify>);

impl VirtualModel for Bad {
    fn spec(&self) -> VirtualModelSpec {
        VirtualModelSpec::new("router", "auto", "Auto")
    }

    async fn route(&self, _: RouteRequest, _: CallCtx) -> Result<Route, Error> {
        assert!(self.0, "lost its way");
        self.1.notify_one();
        std::future::pending().await
    }
}

async fn badly_routed(bad: Bad, limit_ms: u64) -> Scene {
    let settings = json!({"retry": {"enabled": false},
        "extensions": {"handlerTimeoutMs": limit_ms}});
    let model = bad.spec().model();
    let scene = scene_with(Script::new([]), Plugin::new().virtual_model(bad), settings).await;
    scene
        .session
        .set_model(&model, SelectOptions::default())
        .await
        .unwrap();
    scene
}

#[tokio::test]
async fn a_route_that_panics_or_never_comes_is_an_answer_that_says_so() {
    // V10, invariant 39
    for (hangs, says) in [(false, "lost its way"), (true, "within 20 ms")] {
        let scene = badly_routed(Bad(hangs, Arc::default()), 20).await;
        scene.prompt("hi").await;
        let error = last_error(&scene.session);
        assert!(
            error.contains("router/auto") && error.contains(says),
            "{error}"
        );
        assert!(scene.session.is_idle());
    }
}

#[tokio::test]
async fn an_abort_does_not_wait_for_a_route() {
    // L28, invariant 27
    let asked = Arc::new(Notify::new());
    let scene = badly_routed(Bad(true, Arc::clone(&asked)), 0).await;
    let session = scene.session.clone();
    let run = tokio::spawn(async move { session.prompt(Prompt::text("hi"), |_| ()).await });
    asked.notified().await;
    scene.session.abort().await;
    run.await.unwrap().unwrap();
    let messages = scene.session.messages();
    let last = messages.last().unwrap().as_assistant().unwrap();
    assert_eq!(last.stop_reason, StopReason::Aborted);
}

#[tokio::test]
async fn a_route_that_fails_for_a_while_is_asked_again() {
    // R6, V11: no physical model has failed
    let router = Router::new([
        Err(Error::failed("503 service unavailable")),
        Ok(Route::to("acme/large")),
    ]);
    let scene = routed([Reply::Text("done")], &router).await;
    scene.prompt("hi").await;
    let same = "user previous - failed - state null";
    assert_eq!(router.asked(), [same, same]);
    assert_eq!(models(&scene), ["acme/large"]);
}

#[tokio::test]
async fn the_last_registration_of_a_virtual_model_counts_and_one_that_is_gone_is_told() {
    // extensions §4.12, V10
    let (first, second) = (Router::to("acme/small"), Router::to("acme/large"));
    let script = Script::new([Reply::Text("one")]);
    let (kernel, _dir) = kernel_with(&script, plugin(&first), json!({}));
    let add = |name: &str, plugin: Plugin| {
        let source = Source::inline(name, Rank::User);
        kernel
            .registry()
            .publish(Arc::new(InProcess::new(source, plugin).unwrap()));
    };
    add("other", Plugin::new().virtual_model(second.clone()));
    let session = open_session(&kernel).await;
    let auto = kernel
        .catalog()
        .find("router", "auto")
        .await
        .unwrap()
        .unwrap();
    session
        .set_model(&auto, SelectOptions::default())
        .await
        .unwrap();
    session.prompt(Prompt::text("hi"), |_| ()).await.unwrap();
    assert_eq!(*script.models.lock().unwrap(), ["acme/large"]);
    assert!(first.asked().is_empty());
    kernel.registry().withdraw("other");
    add("extension", Plugin::new());
    let refused = session.prompt(Prompt::text("more"), |_| ()).await;
    assert!(refused.unwrap_err().to_string().contains("router"));
    // It may also go when the prompt was accepted.
    let plain = Plugin::new().provider(Shop("router", None, vec![model("router", "x", None)]));
    add("extension", plain);
    session.prompt(Prompt::text("more"), |_| ()).await.unwrap();
    let error = last_error(&session);
    assert!(error.contains("not registered any more"), "{error}");
}

#[tokio::test]
async fn a_virtual_model_hides_a_physical_one_and_needs_no_key_of_its_own() {
    // providers §1.4
    let router = Router {
        spec: VirtualModelSpec::new("acme", "small", "Small, or not"),
        ..Router::to("acme/large")
    };
    let (kernel, _dir) = kernel_with(&Script::new([]), plugin(&router), json!({}));
    let found = kernel
        .catalog()
        .find("acme", "small")
        .await
        .unwrap()
        .unwrap();
    assert_eq!((&*found.api, &*found.name), ("pi-virtual", "Small, or not"));
    let alone = Router::to("acme/large");
    let (kernel, _dir) = kernel_with(&Script::new([]), plugin(&alone), json!({}));
    assert!(kernel.catalog().usable("router"));
    let available = kernel.catalog().available().await.unwrap();
    assert!(
        available
            .iter()
            .any(|model| model.reference() == "router/auto")
    );
    assert!(!kernel.catalog().usable("nobody"));
}

fn on(file: &Session) -> OpenOptions {
    OpenOptions {
        session: SessionChoice::Named(file.file().unwrap().display().to_string()),
        ..OpenOptions::default()
    }
}

async fn spoken_with_router(kernel: &Kernel) -> OpenOptions {
    let session = open_session(kernel).await;
    let auto = kernel
        .catalog()
        .find("router", "auto")
        .await
        .unwrap()
        .unwrap();
    let how = SelectOptions {
        level: Some(Low),
        ..SelectOptions::default()
    };
    session.set_model(&auto, how).await.unwrap();
    session.prompt(Prompt::text("hi"), |_| ()).await.unwrap();
    session.close("quit").await;
    on(&session)
}

#[tokio::test]
async fn a_resumed_session_goes_on_with_its_virtual_model_or_with_who_answered_for_it() {
    // V9, V3, S2.7(1)
    let router = Router::to("acme/small");
    let replies = [Reply::Text("one")];
    let (kernel, _dir) = kernel_with(&Script::new(replies), plugin(&router), json!({}));
    let open = spoken_with_router(&kernel).await;
    let session = kernel.open_session(open.clone()).await.unwrap();
    assert_eq!(session.model().unwrap().reference(), "router/auto");
    assert_eq!(session.thinking_level(), Low);
    assert!(session.notices().is_empty());
    session.close("quit").await;

    let none = Plugin::new().provider(Shop("acme", None, vec![model("acme", "small", None)]));
    let source = Source::inline("extension", Rank::User);
    kernel
        .registry()
        .publish(Arc::new(InProcess::new(source, none).unwrap()));
    let session = kernel.open_session(open).await.unwrap();
    assert_eq!(session.model().unwrap().reference(), "acme/small");
}

#[tokio::test]
async fn a_virtual_model_that_never_answered_leaves_the_one_before_it() {
    // V9
    let router = Router::to("acme/small");
    let replies = [Reply::Text("one")];
    let (kernel, _dir) = kernel_with(&Script::new(replies), plugin(&router), json!({}));
    let session = open_session(&kernel).await;
    session.prompt(Prompt::text("hi"), |_| ()).await.unwrap();
    let auto = kernel
        .catalog()
        .find("router", "auto")
        .await
        .unwrap()
        .unwrap();
    session
        .set_model(&auto, SelectOptions::default())
        .await
        .unwrap();
    session.close("quit").await;
    kernel.registry().withdraw("extension");
    let resumed = kernel.open_session(on(&session)).await.unwrap();
    assert_eq!(resumed.model().unwrap().reference(), "fake/m");
    let [notice] = resumed.notices() else {
        panic!("{:?}", resumed.notices())
    };
    assert!(
        notice.contains("router/auto") && notice.contains("fake/m"),
        "{notice}"
    );
}

#[tokio::test]
async fn a_run_notes_a_selection_that_its_branch_does_not_imply_where_a_virtual_model_is_concerned()
{
    // V8, P44
    let router = Router::to("acme/small");
    let replies = [Reply::Text("one"), Reply::Text("two"), Reply::Text("three")];
    let (kernel, _dir) = kernel_with(&Script::new(replies), plugin(&router), json!({}));
    let open = spoken_with_router(&kernel).await;
    let other = |model: &str, level| OpenOptions {
        model: ModelWish {
            provider: None,
            model: Some(model.into()),
        },
        level: Some(level),
        ..open.clone()
    };
    // Nothing is noted for having been opened.
    let session = kernel
        .open_session(other("acme/large", High))
        .await
        .unwrap();
    let before = selections(&session);
    assert_eq!(before.last().unwrap(), "answer of acme/small at medium");
    session.prompt(Prompt::text("more"), |_| ()).await.unwrap();
    let noted = selections(&session);
    assert_eq!(
        noted[before.len()..],
        ["to acme/large", "at high", "answer of acme/large at high"]
    );
    session.close("quit").await;
    // Between physical models the answer says it.
    let session = kernel
        .open_session(other("acme/small", High))
        .await
        .unwrap();
    session.prompt(Prompt::text("more"), |_| ()).await.unwrap();
    assert_eq!(
        selections(&session)[noted.len()..],
        ["answer of acme/small at high"]
    );
}

#[tokio::test]
async fn a_run_on_another_branch_notes_what_that_branch_does_not_say() {
    // V8, S2.7(1), P44
    let router = Router::to("acme/large");
    let replies = ["one", "two", "three"].map(Reply::Text);
    let (kernel, _dir) = kernel_with(&Script::new(replies), plugin(&router), json!({}));
    let session = open_session(&kernel).await;
    session.prompt(Prompt::text("hi"), |_| ()).await.unwrap();
    let before_routing = session.leaf().unwrap();
    let auto = kernel
        .catalog()
        .find("router", "auto")
        .await
        .unwrap()
        .unwrap();
    let how = SelectOptions {
        level: Some(High),
        ..SelectOptions::default()
    };
    session.set_model(&auto, how).await.unwrap();
    session.prompt(Prompt::text("more"), |_| ()).await.unwrap();
    let stood = selections(&session).len();
    session
        .navigate_tree(&before_routing, NavigateOptions::default())
        .await
        .unwrap();
    session
        .prompt(Prompt::text("otherwise"), |_| ())
        .await
        .unwrap();
    assert_eq!(
        selections(&session)[stood..],
        ["to router/auto", "at high", "answer of acme/large at high"]
    );
}

#[tokio::test]
async fn a_summary_that_a_plugin_wrote_is_not_routed_and_one_of_a_branch_is() {
    // R37, V11
    let router = Router::to("acme/large");
    let supplies = Plugin::new().on_event("session_before_compact", |event, _| async move {
        let kept = event["preparation"]["firstKeptEntryId"].clone();
        Ok(json!({"compaction": {"summary": "MINE", "firstKeptEntryId": kept, "tokensBefore": 1}}))
    });
    let replies = [
        Reply::Text("an answer that is long enough to be kept"),
        Reply::Text("two"),
        Reply::Text("BRANCH"),
    ];
    let scene = routed(replies, &router).await;
    scene.publish("supplies", supplies);
    scene.prompt("first").await;
    let target = scene.session.leaf().unwrap();
    scene.session.compact(None).await.unwrap();
    assert_eq!(router.asked().len(), 1);
    scene.prompt("second").await;
    let options = NavigateOptions {
        summarize: true,
        ..NavigateOptions::default()
    };
    scene.session.navigate_tree(&target, options).await.unwrap();
    let asked = router.asked();
    assert_eq!(
        asked.last().unwrap(),
        "direct previous large failed - state null"
    );
    assert_eq!(asked.len(), 3);
    assert_eq!(models(&scene), ["acme/large"; 3]);
}

#[tokio::test]
async fn a_conversation_too_long_for_the_model_that_it_is_routed_to_is_compacted_first() {
    // R14, R37, V14: the route stays, and the summary is routed once, without the state
    let router = Router::new([
        Ok(Route::to("acme/large").with_state(json!(1))),
        Ok(Route::to("acme/small").with_state(json!(2))),
        Ok(Route::to("acme/large").with_state(json!(3))),
    ]);
    let replies = [
        busy("long", 30_000),
        Reply::Text("SUMMARY"),
        Reply::Text("short"),
    ];
    let mut scene = routed(replies, &router).await;
    scene.prompt("first").await;
    let quiet = scene.events();
    assert!(
        !quiet.iter().any(|event| event.starts_with("compaction")),
        "{quiet:?}"
    );
    scene
        .prompt("second, which is long enough to stay as it is")
        .await;
    assert_eq!(
        router.asked(),
        [
            "user previous - failed - state null",
            "user previous large failed - state 1",
            "direct previous large failed - state null",
        ]
    );
    assert_eq!(models(&scene), ["acme/large", "acme/large", "acme/small"]);
    let events = scene.events();
    let place = |word: &str| events.iter().position(|event| event == word).unwrap();
    assert!(place("message_end user") < place("compaction_start Threshold"));
    assert!(place("compaction_end Threshold done") < place("message_start assistant"));
    let last = scene.script.requests().pop().unwrap();
    assert_eq!(last.len(), 3, "{last:?}");
    assert!(
        last[1].contains("SUMMARY") && last[2].contains("second"),
        "{last:?}"
    );
    let entries = entries_of(&scene.session);
    let states = entries.iter().filter(|entry| entry["type"] == "custom");
    let states: Vec<_> = states.map(|entry| entry["data"]["state"].clone()).collect();
    assert_eq!(states, [json!(1), json!(2)]);
}

#[tokio::test]
async fn an_abort_ends_a_compaction_for_the_model_of_a_route_and_tells_so() {
    // L28, R51, R26: it happens while the request is made
    let routes = ["acme/large", "acme/small", "acme/large"].map(|name| Ok(Route::to(name)));
    let router = Router::new(routes);
    let mut scene = routed([busy("long", 30_000), Reply::Hang("SUM")], &router).await;
    scene.prompt("first").await;
    scene.events();
    let session = scene.session.clone();
    let second = Prompt::text("second, which is long enough to stay as it is");
    let run = tokio::spawn(async move { session.prompt(second, |_| ()).await });
    while scene.script.requests().len() < 2 {
        tokio::task::yield_now().await;
    }
    scene.session.abort().await;
    run.await.unwrap().unwrap();
    let events = scene.events();
    let place = |word: &str| events.iter().position(|event| event == word);
    let (start, end) = (
        place("compaction_start Threshold"),
        place("compaction_end Threshold aborted"),
    );
    assert!(start.is_some() && start < end, "{events:?}");
    assert!(end < place("message_start assistant"), "{events:?}");
    assert!(!scene.session.is_compacting());
}

#[tokio::test]
async fn a_request_that_did_not_fit_is_routed_again_with_who_refused_it() {
    // R19, R22, R37, V11: both parts of the summary are one model's
    let router = Router::new([
        Ok(Route::to("acme/small")),
        Ok(Route::to("acme/small")),
        Ok(Route::to("acme/large")),
        Ok(Route::to("acme/large")),
    ]);
    let replies = [
        Reply::Text("a first answer that is long enough to be kept"),
        Reply::Fail("400: prompt is too long: 210000 tokens > 200000 maximum"),
        Reply::Text("SUMMARY"),
        Reply::Text("SUMMARY OF THE TURN"),
        Reply::Text("done"),
    ];
    let scene = routed(replies, &router).await;
    scene.prompt("first").await;
    scene
        .prompt("second, which is long enough to stay as it is")
        .await;
    assert_eq!(
        router.asked()[1..],
        [
            "user previous small failed - state null",
            "direct previous small failed - state null",
            "retry previous small failed acme/small state null",
        ]
    );
    assert_eq!(models(&scene)[2..], ["acme/large"; 3]);
    let last = scene.script.requests().pop().unwrap();
    assert!(
        last.iter()
            .any(|message| message.contains("SUMMARY OF THE TURN")),
        "{last:?}"
    );
}

#[tokio::test]
async fn a_summary_that_cannot_be_routed_fails_and_the_conversation_stays() {
    // R37
    let router = Router::new([Ok(Route::to("acme/large")), Err(Error::failed("no idea"))]);
    let scene = routed(
        [busy("an answer that is long enough to be kept", 10)],
        &router,
    )
    .await;
    scene.prompt("first").await;
    let failed = scene.session.compact(None).await.unwrap_err();
    assert!(failed.to_string().contains("no idea"), "{failed}");
    assert_eq!(models(&scene), ["acme/large"]);
}

#[tokio::test]
async fn the_window_is_that_of_who_answered_last() {
    // V14
    let router = Router::new([
        Ok(Route::to("acme/small")),
        Ok(Route::to("acme/large")),
        Ok(Route::to("acme/small")),
    ]);
    let replies = [busy("a", 1_000), busy("b", 2_000), Reply::Fail("400 no")];
    let scene = routed(replies, &router).await;
    // The virtual model declares none.
    assert_eq!(scene.session.context_usage().await, None);
    for window in [20_000, 1_000_000, 1_000_000] {
        scene.prompt("hi").await;
        let usage = scene.session.context_usage().await.unwrap();
        assert_eq!(usage.context_window, window);
    }
}

#[tokio::test]
async fn the_context_is_full_by_what_the_last_answer_said_and_unknown_after_a_compaction() {
    // V15
    let settings = json!({"compaction": {"keepRecentTokens": 5}});
    let plugin = Plugin::new().on_event("agent_settled", |_, ctx| async move {
        let usage = ctx.host().session().usage().await?.unwrap();
        assert_eq!(usage.tokens, Some(32_000));
        Ok(Value::Null)
    });
    let replies = [
        busy("an answer that is long enough to be kept", 31_995),
        Reply::Text("SUMMARY"),
        busy("more", 15_995),
    ];
    let mut scene = scene_with(Script::new(replies), plugin, settings).await;
    scene.prompt("hi").await;
    let errors = scene.events();
    assert!(
        !errors.iter().any(|event| event.contains("error")),
        "{errors:?}"
    );
    let full = |tokens: Option<u64>, percent| {
        Some(ContextUsage {
            tokens,
            context_window: 128_000,
            percent,
        })
    };
    assert_eq!(
        scene.session.context_usage().await,
        full(Some(32_000), Some(25.0))
    );
    scene.session.compact(None).await.unwrap();
    assert_eq!(scene.session.context_usage().await, full(None, None));
    scene.prompt("hi").await;
    assert_eq!(
        scene.session.context_usage().await,
        full(Some(16_000), Some(12.5))
    );
}
