//! Switching model and thinking level, what a session starts with, and what its file says of it. Rules
//! of `kernel.md` §7.1 and §7.2 are named at each test.

use std::sync::{Arc, Mutex};

use pliant_kernel::models::ModelWish;
use pliant_kernel::pipeline::Prompt;
use pliant_kernel::session::{Direction, Keep, SelectError, SelectOptions, Session};
use pliant_kernel::{Kernel, OpenOptions, SessionChoice};
use pliant_sdk::message::ThinkingLevel::{self, High, Low, Max, Medium, Minimal, Off};
use pliant_sdk::provider::{Provider, ProviderSpec};
use pliant_sdk::tool::{ToolCtx, ToolResult, ToolSpec};
use pliant_sdk::{Error, Event, Model, Plugin, Tool};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::*;

/// A provider, whether it wants a key, and its models.
pub struct Shop(pub &'static str, pub Option<&'static str>, pub Vec<Model>);

impl Provider for Shop {
    fn spec(&self) -> ProviderSpec {
        ProviderSpec {
            name: self.0.into(),
            keyless: self.1.is_none(),
            env: self.1.into_iter().map(str::to_owned).collect(),
            ..ProviderSpec::default()
        }
    }

    fn models(&self) -> Vec<Model> {
        self.2.clone()
    }
}

/// A model of the scripted wire. With levels it reasons, up to `high` and by what the map says.
pub fn model(provider: &str, id: &str, levels: Option<Value>) -> Model {
    Model {
        id: id.into(),
        name: id.into(),
        provider: provider.into(),
        api: "scripted".into(),
        reasoning: levels.is_some(),
        thinking_level_map: levels.and_then(|levels| levels.as_object().cloned()),
        ..Model::default()
    }
}

fn small() -> Model {
    model("acme", "small", None)
}

fn large() -> Model {
    model("acme", "large", Some(json!({"minimal": null})))
}

fn deep() -> Model {
    model("acme", "deep", Some(json!({"max": "max"})))
}

fn gold() -> Model {
    model("paid", "gold", Some(json!({})))
}

/// Models with and without levels, and one that nobody can pay for.
fn shelf() -> Plugin {
    Plugin::new()
        .provider(Shop("acme", None, vec![small(), large(), deep()]))
        .provider(Shop("paid", Some("NO_SUCH_KEY_OF_PLIANT"), vec![gold()]))
}

type Heard = Arc<Mutex<Vec<String>>>;

/// The same, and what its handlers hear of selections.
fn listening() -> (Plugin, Heard) {
    let heard = Heard::default();
    let (models, levels) = (Arc::clone(&heard), Arc::clone(&heard));
    let name = |model: &Value| model["id"].as_str().unwrap_or("-").to_owned();
    let plugin = shelf()
        .on_event("model_select", move |event, ctx| {
            let models = Arc::clone(&models);
            async move {
                // Both are in force for whoever hears of the model.
                let level = ctx.host().session().thinking_level().await?;
                let (new, old) = (name(&event["model"]), name(&event["previousModel"]));
                let source = event["source"].as_str().unwrap();
                models.lock().unwrap().push(format!(
                    "model {old} to {new} by {source} at {}",
                    level.as_str()
                ));
                Ok(Value::Null)
            }
        })
        .on_event("thinking_level_select", move |event, _| {
            let (new, old) = (&event["level"], &event["previousLevel"]);
            levels.lock().unwrap().push(format!("level {old} to {new}"));
            std::future::ready(Ok(Value::Null))
        });
    (plugin, heard)
}

pub fn entries_of(session: &Session) -> Vec<Value> {
    let file = std::fs::read_to_string(session.file().unwrap()).unwrap();
    let lines = file.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

/// Entries and answers that say something of model and level.
pub fn selections(session: &Session) -> Vec<String> {
    let word = |entry: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        Some(match entry["type"].as_str()? {
            "model_change" => format!(
                "to {}/{}",
                text(&entry["provider"]),
                text(&entry["modelId"])
            ),
            "thinking_level_change" => format!("at {}", text(&entry["thinkingLevel"])),
            "message" if entry["message"]["role"] == "assistant" => {
                let answer = &entry["message"];
                let (provider, model) = (text(&answer["provider"]), text(&answer["model"]));
                let level = text(&answer["thinkingLevel"]);
                format!("answer of {provider}/{model} at {level}")
            }
            _ => return None,
        })
    };
    entries_of(session).iter().filter_map(word).collect()
}

fn with_level(level: ThinkingLevel) -> SelectOptions {
    SelectOptions {
        level: Some(level),
        ..SelectOptions::default()
    }
}

#[tokio::test]
async fn a_model_is_stored_and_told_after_its_level() {
    // V1, V6, V7, extensions §2.8, §3.5
    let (plugin, heard) = listening();
    let replies = [Reply::Text("one"), Reply::Text("two")];
    let mut scene = scene(Script::new(replies), plugin).await;
    let session = scene.session.clone();
    session.set_model(&deep(), with_level(Max)).await.unwrap();
    session
        .set_model(&large(), SelectOptions::default())
        .await
        .unwrap();
    // The same one again is stored and not told.
    session
        .set_model(&large(), SelectOptions::default())
        .await
        .unwrap();
    assert_eq!(
        *heard.lock().unwrap(),
        [
            "level \"off\" to \"max\"",
            "model m to deep by set at max",
            "level \"max\" to \"high\"",
            "model deep to large by set at high",
        ]
    );
    assert_eq!(
        scene.events(),
        ["thinking_level_changed", "thinking_level_changed"]
    );
    scene.prompt("hi").await;
    assert_eq!(
        selections(&session),
        [
            "to fake/m",
            "at off",
            "to acme/deep",
            "at max",
            "to acme/large",
            "at high",
            "to acme/large",
            "answer of acme/large at high",
        ]
    );
    assert_eq!(
        scene.script.options.lock().unwrap()[0].reasoning,
        Some(High)
    );
}

#[tokio::test]
async fn a_model_that_nobody_can_pay_for_is_not_selected() {
    // V1
    let (plugin, heard) = listening();
    let scene = scene(Script::new([Reply::Text("one")]), plugin).await;
    let refused = scene
        .session
        .set_model(&gold(), SelectOptions::default())
        .await
        .unwrap_err();
    assert!(matches!(refused, SelectError::NoKey { .. }));
    let text = refused.to_string();
    assert!(
        text.contains("paid/gold") && text.contains("NO_SUCH_KEY_OF_PLIANT"),
        "{text}"
    );
    scene.prompt("hi").await;
    assert!(heard.lock().unwrap().is_empty());
    let unchanged = ["to fake/m", "at off", "answer of fake/m at off"];
    assert_eq!(selections(&scene.session), unchanged);
}

#[tokio::test]
async fn the_level_of_a_model_is_the_one_asked_for_else_of_its_setting_else_the_default_else_the_current()
 {
    // V4
    let own = json!({"modelThinkingLevels": {"acme/deep": "minimal"}});
    let both =
        json!({"modelThinkingLevels": {"acme/deep": "minimal"}, "defaultThinkingLevel": "low"});
    for (settings, asked, model, level) in [
        (both.clone(), Some(High), deep(), High),
        (both.clone(), None, deep(), Minimal),
        (both, None, large(), Low),
        (own.clone(), None, large(), Medium),
        (own, None, small(), Off),
    ] {
        let scene = scene_with(Script::new([]), shelf(), settings).await;
        let session = &scene.session;
        session
            .set_model(&large(), with_level(Medium))
            .await
            .unwrap();
        let how = SelectOptions {
            level: asked,
            ..SelectOptions::default()
        };
        session.set_model(&model, how).await.unwrap();
        assert_eq!(session.thinking_level(), level, "{}", model.id);
    }
}

#[tokio::test]
async fn only_a_level_that_differs_is_stored_and_told() {
    // V7
    let (plugin, heard) = listening();
    let mut scene = scene(Script::new([Reply::Text("one")]), plugin).await;
    let session = scene.session.clone();
    session.set_model(&large(), with_level(Low)).await.unwrap();
    heard.lock().unwrap().clear();
    scene.events();
    for (wish, level) in [(Low, Low), (Max, High), (High, High), (Minimal, Low)] {
        let got = session.set_thinking_level(wish, Keep::Session).await;
        assert_eq!(got.unwrap(), level);
    }
    let told = ["level \"low\" to \"high\"", "level \"high\" to \"low\""];
    assert_eq!(*heard.lock().unwrap(), told);
    assert_eq!(scene.events().len(), 2);
    scene.prompt("hi").await;
    let stored = selections(&session);
    assert_eq!(stored[4..6], ["at high", "at low"]);
}

#[tokio::test]
async fn a_choice_goes_into_the_settings_only_on_request_and_as_it_was_asked_for() {
    // V1, V7, resources §10
    let settings = json!({"mine": {"a": [1]}, "defaultModel": "m", "defaultProvider": "fake"});
    let scene = scene_with(Script::new([]), shelf(), settings.clone()).await;
    let (session, path) = (&scene.session, scene.dir.path().join("agent/settings.json"));
    let written =
        || serde_json::from_str::<Value>(&std::fs::read_to_string(&path).unwrap()).unwrap();
    session.set_model(&large(), with_level(Low)).await.unwrap();
    session
        .set_thinking_level(High, Keep::Session)
        .await
        .unwrap();
    assert_eq!(written(), settings);
    let keep = SelectOptions {
        keep: Keep::AsDefault,
        ..SelectOptions::default()
    };
    session.set_model(&large(), keep).await.unwrap();
    let level = session
        .set_thinking_level(Max, Keep::AsDefault)
        .await
        .unwrap();
    assert_eq!(level, High);
    assert_eq!(
        written(),
        json!({"mine": {"a": [1]}, "defaultModel": "large", "defaultProvider": "acme",
            "defaultThinkingLevel": "max"})
    );
    // The default holds at once (V4).
    session
        .set_model(&deep(), SelectOptions::default())
        .await
        .unwrap();
    assert_eq!(session.thinking_level(), Max);
}

#[tokio::test]
async fn cycling_goes_round_all_usable_models() {
    // V2, interfaces §8.2
    let (plugin, heard) = listening();
    let scene = scene(Script::new([]), plugin).await;
    let session = &scene.session;
    let mut seen = Vec::new();
    for _ in 0..4 {
        let cycled = session
            .cycle_model(Direction::Forward)
            .await
            .unwrap()
            .unwrap();
        assert!(!cycled.scoped);
        seen.push(cycled.model.id);
    }
    assert_eq!(seen, ["small", "large", "deep", "m"]);
    let back = session.cycle_model(Direction::Backward).await.unwrap();
    assert_eq!(back.unwrap().model.id, "deep");
    assert_eq!(heard.lock().unwrap()[0], "model m to small by cycle at off");
}

#[tokio::test]
async fn cycling_stays_in_the_scope_and_takes_its_levels() {
    // V2
    for (scope, direction, expected) in [
        (
            json!(["acme/large:low", "paid/*", "deep:max"]),
            Direction::Forward,
            Some(("large", Low)),
        ),
        (
            json!(["acme/large:low", "paid/*", "deep:max"]),
            Direction::Backward,
            Some(("deep", Max)),
        ),
        (
            json!(["ACME/l*"]),
            Direction::Backward,
            Some(("large", High)),
        ),
        (json!(["fake/m"]), Direction::Forward, None),
        (json!(["gold"]), Direction::Forward, None),
    ] {
        let settings = json!({"enabledModels": scope, "defaultThinkingLevel": "high"});
        let scene = scene_with(Script::new([]), shelf(), settings).await;
        let cycled = scene.session.cycle_model(direction).await.unwrap();
        let cycled = cycled.map(|cycled| (cycled.model.id, cycled.level, cycled.scoped));
        let expected = expected.map(|(id, level)| (id.to_owned(), level, true));
        assert_eq!(cycled, expected, "{scope}");
    }
}

#[tokio::test]
async fn levels_are_cycled_through_those_of_the_model() {
    // interfaces §8.2, V5
    let scene = scene(Script::new([]), shelf()).await;
    let session = &scene.session;
    assert_eq!(session.cycle_thinking_level().await.unwrap(), None);
    assert_eq!(session.thinking_levels(), [Off]);
    session
        .set_model(&large(), with_level(Medium))
        .await
        .unwrap();
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.extend(session.cycle_thinking_level().await.unwrap());
    }
    assert_eq!(seen, [High, Off, Low, Medium]);
}

/// Selects a model and a level while the model's call is worked on.
struct Switch;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

impl Tool for Switch {
    type Input = Nothing;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("switch", "Take the other model.")
    }

    async fn execute(&self, _: Nothing, ctx: ToolCtx) -> Result<ToolResult, Error> {
        let session = ctx.host().session();
        assert!(session.set_model("acme/large").await?);
        let level = session.set_thinking_level(Max).await?;
        Ok(ToolResult::text(level.as_str()))
    }
}

#[tokio::test]
async fn a_selection_made_in_a_run_holds_from_its_next_turn_on() {
    // R12, M6
    let replies = [calls([("c1", "switch", json!({}))]), Reply::Text("done")];
    let plugin = shelf().tool(Switch);
    let scene = scene(Script::new(replies), plugin).await;
    scene.prompt("hi").await;
    assert_eq!(
        *scene.script.models.lock().unwrap(),
        ["fake/m", "acme/large"]
    );
    assert_eq!(
        selections(&scene.session),
        [
            "to fake/m",
            "at off",
            "answer of fake/m at off",
            "to acme/large",
            "at high",
            "answer of acme/large at high",
        ]
    );
}

#[tokio::test]
async fn an_answer_keeps_the_level_that_it_was_asked_at() {
    // M6, R12
    let let_go = Arc::new(tokio::sync::Notify::new());
    let replies = [Reply::When(Arc::clone(&let_go), "late")];
    let scene = scene(Script::new(replies), shelf()).await;
    let session = scene.session.clone();
    session.set_model(&large(), with_level(Low)).await.unwrap();
    let running = tokio::spawn({
        let session = session.clone();
        async move { session.prompt(Prompt::text("hi"), |_| ()).await }
    });
    while scene.script.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    session
        .set_thinking_level(High, Keep::Session)
        .await
        .unwrap();
    let_go.notify_one();
    running.await.unwrap().unwrap();
    let last = selections(&session).pop().unwrap();
    assert_eq!(last, "answer of acme/large at low");
}

#[tokio::test]
async fn what_a_model_can_is_looked_up_again_after_a_reload() {
    // G15, V6
    let (plugin, heard) = listening();
    let mut scene = scene(Script::new([Reply::Text("a"), Reply::Text("b")]), plugin).await;
    let session = scene.session.clone();
    session.set_model(&large(), with_level(High)).await.unwrap();
    scene.prompt("hi").await;
    let weaker = Model {
        context_window: 5,
        ..model("acme", "large", Some(json!({"high": null, "medium": null})))
    };
    heard.lock().unwrap().clear();
    scene.events();
    let (again, heard) = listening();
    scene.publish(
        "extension",
        again.provider(Shop("acme", None, vec![weaker.clone()])),
    );
    scene.prompt("hi").await;
    assert_eq!(session.model(), Some(weaker));
    assert_eq!(*heard.lock().unwrap(), ["level \"high\" to \"low\""]);
    let stored = selections(&session);
    assert_eq!(
        stored[stored.len() - 2..],
        ["at low", "answer of acme/large at low"]
    );
}

#[tokio::test]
async fn extensions_select_models_for_the_session_and_see_no_headers() {
    // extensions §5.2, §5.3
    let secret = Model {
        headers: json!({"x-key": "secret"}).as_object().cloned(),
        ..large()
    };
    let plugin = Plugin::new()
        .provider(Shop("acme", None, vec![secret, small()]))
        .provider(Shop("paid", Some("NO_SUCH_KEY_OF_PLIANT"), vec![gold()]))
        .on_event("agent_start", |_, ctx| async move {
            let session = ctx.host().session();
            assert_eq!(session.model().await?.unwrap().id, "m");
            let names: Vec<String> = session
                .models()
                .await?
                .iter()
                .map(Model::reference)
                .collect();
            assert_eq!(names, ["fake/m", "acme/large", "acme/small"]);
            assert!(!session.set_model("paid/gold").await?);
            let unknown = session.set_model("acme/none").await.unwrap_err();
            assert!(unknown.to_string().contains("acme/none"), "{unknown}");
            assert!(session.set_model("acme/large").await?);
            assert_eq!(session.model().await?.unwrap().headers, None);
            assert_eq!(session.set_thinking_level(Max).await?, High);
            assert_eq!(session.thinking_level().await?, High);
            let scope = session.scoped_models().await?;
            assert_eq!(scope.len(), 1);
            assert_eq!(
                (&*scope[0].model.id, scope[0].thinking_level),
                ("small", Some(Low))
            );
            Ok(Value::Null)
        })
        .on_event("model_select", |event, _| async move {
            assert_eq!(event["model"].get("headers"), None);
            Ok(Value::Null)
        });
    let settings = json!({"enabledModels": ["small:low"]});
    let mut scene = scene_with(Script::new([Reply::Text("hi")]), plugin, settings).await;
    scene.prompt("hi").await;
    let errors: Vec<_> = scene
        .events()
        .into_iter()
        .filter(|e| e.contains("error"))
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(
        scene.session.model().unwrap().headers.unwrap()["x-key"],
        "secret"
    );
}

/// What a session starts with, given settings and what is asked for.
async fn start(settings: Value, open: OpenOptions) -> (String, ThinkingLevel, Vec<String>) {
    let (kernel, _dir) = kernel_with(&Script::new([]), shelf(), settings);
    let session = kernel.open_session(open).await.unwrap();
    described(&session)
}

fn described(session: &Session) -> (String, ThinkingLevel, Vec<String>) {
    let model = session.model().unwrap().reference();
    (model, session.thinking_level(), session.notices().to_vec())
}

fn wish(model: &str) -> OpenOptions {
    OpenOptions {
        model: ModelWish {
            provider: None,
            model: Some(model.into()),
        },
        ..OpenOptions::default()
    }
}

fn no_wish() -> OpenOptions {
    OpenOptions::default()
}

#[tokio::test]
async fn a_new_session_takes_what_is_asked_for_else_the_default_else_what_works() {
    // V3
    let defaults = json!({"defaultProvider": "acme", "defaultModel": "large",
        "defaultThinkingLevel": "low", "modelThinkingLevels": {"acme/deep": "max"}});
    let cases = [
        (
            defaults.clone(),
            wish("acme/deep:minimal"),
            "acme/deep",
            Minimal,
        ),
        (defaults.clone(), wish("acme/deep"), "acme/deep", Max),
        (defaults.clone(), no_wish(), "acme/large", Low),
        (json!({}), wish("acme/large"), "acme/large", Medium),
        (json!({}), no_wish(), "fake/m", Off),
        (
            json!({"enabledModels": ["gold", "deep:high", "small"]}),
            no_wish(),
            "acme/deep",
            High,
        ),
        (
            json!({"enabledModels": ["deep:high", "acme/l*"],
                "defaultProvider": "acme", "defaultModel": "large"}),
            no_wish(),
            "acme/large",
            Medium,
        ),
    ];
    for (settings, open, model, level) in cases {
        let shown = format!("{settings} {open:?}");
        let started = start(settings, open).await;
        assert_eq!(started, (model.to_owned(), level, Vec::new()), "{shown}");
    }
    let explicit = OpenOptions {
        level: Some(High),
        ..wish("acme/deep:minimal")
    };
    assert_eq!(start(defaults, explicit).await.1, High);
}

#[tokio::test]
async fn a_pattern_of_the_scope_that_means_nothing_is_told() {
    // V3
    let (_, _, notices) = start(json!({"enabledModels": ["nothing*", "small"]}), no_wish()).await;
    assert_eq!(notices.len(), 1);
    assert!(notices[0].contains("nothing*"), "{notices:?}");
}

/// A session that spoke with `model`, closed; and how to open it again.
async fn spoken(kernel: &Kernel, model: &Model, level: ThinkingLevel) -> OpenOptions {
    let session = open_session(kernel).await;
    session.set_model(model, with_level(level)).await.unwrap();
    session.prompt(Prompt::text("hi"), |_| ()).await.unwrap();
    again(session).await
}

async fn again(session: Session) -> OpenOptions {
    let file = session.file().unwrap();
    session.close("quit").await;
    OpenOptions {
        session: SessionChoice::Named(file.display().to_string()),
        ..OpenOptions::default()
    }
}

#[tokio::test]
async fn a_resumed_session_goes_on_as_its_branch_says_and_adds_nothing() {
    // V3, V9
    let defaults = json!({"defaultProvider": "acme", "defaultModel": "large",
        "defaultThinkingLevel": "low", "modelThinkingLevels": {"acme/deep": "max"}});
    let (kernel, _dir) = kernel_with(&Script::new([Reply::Text("hi")]), shelf(), defaults);
    let open = spoken(&kernel, &deep(), Minimal).await;
    let session = kernel.open_session(open.clone()).await.unwrap();
    assert_eq!(
        described(&session),
        ("acme/deep".to_owned(), Minimal, Vec::new())
    );
    let before = entries_of(&session);
    session.close("quit").await;
    // What is asked for counts for more, and is written down by whoever answers.
    let other = OpenOptions {
        model: wish("acme/small").model,
        ..open
    };
    let session = kernel.open_session(other).await.unwrap();
    assert_eq!(described(&session).0, "acme/small");
    assert_eq!(entries_of(&session), before);
}

/// Rewrites the entries of a closed session.
fn edit(open: &OpenOptions, change: impl Fn(&mut Value)) {
    let SessionChoice::Named(path) = &open.session else {
        panic!("a file is named")
    };
    let text = std::fs::read_to_string(path).unwrap();
    let line = |line: &str| {
        let mut entry = serde_json::from_str(line).unwrap();
        change(&mut entry);
        entry.to_string() + "\n"
    };
    std::fs::write(path, text.lines().map(line).collect::<String>()).unwrap();
}

#[tokio::test]
async fn a_resumed_session_whose_model_is_gone_says_so_and_takes_the_default() {
    // V3
    for gone in [("acme", "old"), ("paid", "gold"), ("nobody", "x")] {
        let defaults = json!({"defaultProvider": "acme", "defaultModel": "large"});
        let (kernel, _dir) = kernel_with(&Script::new([Reply::Text("hi")]), shelf(), defaults);
        let open = spoken(&kernel, &deep(), Low).await;
        edit(&open, |entry| {
            for (place, id) in [
                (&["provider", "modelId"], "model_change"),
                (&["provider", "model"], "message"),
            ] {
                if entry["type"] == id {
                    let target = match id {
                        "message" => &mut entry["message"],
                        _ => &mut *entry,
                    };
                    if target.get(place[1]).is_some() {
                        target[place[0]] = json!(gone.0);
                        target[place[1]] = json!(gone.1);
                    }
                }
            }
        });
        let session = kernel.open_session(open).await.unwrap();
        let (model, level, notices) = described(&session);
        assert_eq!((&*model, level), ("acme/large", Low));
        assert_eq!(notices.len(), 1, "{notices:?}");
        assert!(
            notices[0].contains(&format!("{}/{}", gone.0, gone.1)),
            "{notices:?}"
        );
    }
}

#[tokio::test]
async fn a_resumed_session_without_a_level_gets_the_default_one_and_notes_it() {
    // V3: what is set for the model is for new sessions.
    let own = json!({"modelThinkingLevels": {"acme/deep": "max"}});
    let both = json!({"modelThinkingLevels": {"acme/deep": "max"}, "defaultThinkingLevel": "low"});
    for (settings, level) in [(own, Medium), (both, Low)] {
        let (kernel, _dir) = kernel_with(&Script::new([Reply::Text("hi")]), shelf(), settings);
        let open = spoken(&kernel, &deep(), High).await;
        edit(&open, |entry| {
            if entry["type"] == "thinking_level_change" {
                entry["type"] = json!("something_else");
            }
        });
        let session = kernel.open_session(open).await.unwrap();
        assert_eq!(
            described(&session),
            ("acme/deep".to_owned(), level, Vec::new())
        );
        let last = selections(&session).pop().unwrap();
        assert_eq!(last, format!("at {}", level.as_str()));
    }
}

#[tokio::test]
async fn a_default_that_does_not_work_is_told_and_another_model_taken() {
    // V3
    let agent = json!({"providers": {"own": {"baseUrl": "http://localhost:1", "api": "scripted",
        "models": [{"id": "n"}]}}});
    for (provider, model) in [("paid", "gold"), ("nobody", "x"), ("acme", "none")] {
        let defaults = json!({"defaultProvider": provider, "defaultModel": model});
        let dir = tempfile::tempdir().unwrap();
        let kernel = scripted_kernel(&dir, &Script::new([]), shelf(), &defaults, Some(&agent));
        let session = kernel.open_session(no_wish()).await.unwrap();
        let (used, _, notices) = described(&session);
        assert_eq!((&*used, notices.len()), ("own/n", 1), "{notices:?}");
        assert!(notices[0].contains("own/n is used instead"), "{notices:?}");
    }
}

#[test]
fn the_highest_levels_are_supported_only_where_a_model_says_so() {
    // V5
    let levels = |map| model("acme", "x", map).thinking_levels();
    assert_eq!(levels(None), [Off]);
    assert_eq!(levels(Some(json!({}))), [Off, Minimal, Low, Medium, High]);
    let map = json!({"off": null, "low": null, "xhigh": null, "max": "all"});
    assert_eq!(levels(Some(map)), [Minimal, Medium, High, Max]);
}

proptest! {
    #[test]
    fn a_clamped_level_is_supported_and_stays_and_is_the_wish_where_that_is_supported(
        reasoning: bool,
        words in proptest::collection::vec(0_u8..3, 7),
        wish in 0_usize..7,
    ) {
        // Invariant 33, V5, V6
        let all = ThinkingLevel::ALL;
        let word = |(at, word): (usize, &u8)| match word {
            0 => None,
            1 => Some((all[at].as_str().to_owned(), Value::Null)),
            _ => Some((all[at].as_str().to_owned(), json!("word"))),
        };
        let map: serde_json::Map<_, _> = words.iter().enumerate().filter_map(word).collect();
        let mut model = model("acme", "x", Some(Value::Object(map)));
        model.reasoning = reasoning;
        let supported = model.thinking_levels();
        let (wish, clamped) = (all[wish], model.clamp_level(all[wish]));
        if supported.is_empty() {
            prop_assert_eq!(clamped, Off);
        } else {
            prop_assert!(supported.contains(&clamped));
        }
        prop_assert_eq!(model.clamp_level(clamped), clamped);
        if supported.contains(&wish) {
            prop_assert_eq!(clamped, wish);
        } else if let Some(higher) = supported.iter().find(|level| **level > wish) {
            prop_assert_eq!(clamped, *higher);
        }
    }
}

#[tokio::test]
async fn a_front_end_hears_of_a_level_and_not_of_a_model() {
    // interfaces §7
    let mut scene = scene(Script::new([]), shelf()).await;
    scene
        .session
        .set_model(&large(), with_level(Low))
        .await
        .unwrap();
    let event = scene.events.try_recv().unwrap();
    assert_eq!(*event, Event::ThinkingLevelChanged { level: Low });
    assert!(scene.events.try_recv().is_err());
}
