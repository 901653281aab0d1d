//! Tools that change what the model is told of the others (`extensions.md` §4.3).

use std::time::Duration;

use pliant_sdk::loadout::{LoadoutChanges, LoadoutView};
use pliant_sdk::tool::{Exposure, ToolCtx, ToolResult, ToolSpec};
use pliant_sdk::{Error, Plugin, Tool};
use serde_json::{Value, json};

use super::*;

/// A tool that says what a closure says.
struct Orders<F>(&'static str, F);

impl<F> Tool for Orders<F>
where
    F: Fn(LoadoutView) -> Result<LoadoutChanges, Error> + Send + Sync + 'static,
{
    type Input = Value;

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            parameters: json!({"type": "object"}),
            ..ToolSpec::new(self.0, "plain").prepares_loadout()
        }
    }

    fn prepare_loadout(&self, loadout: LoadoutView) -> Result<LoadoutChanges, Error> {
        (self.1)(loadout)
    }

    async fn execute(&self, input: Value, ctx: ToolCtx) -> Result<ToolResult, Error> {
        if let Some(names) = input.get("to") {
            let names: Vec<String> = serde_json::from_value(names.clone())?;
            ctx.host().session().set_active_tools(&names).await?;
        }
        Ok(ToolResult::text("ok"))
    }
}

fn simple(name: &str) -> impl Tool {
    named(ToolSpec::new(name, "plain").snippet(format!("about {name}")))
}

/// `name: description` of what each request declared.
fn told(script: &Script) -> Vec<Vec<String>> {
    let requests = script.requests.lock().unwrap();
    let tools = |request: &Vec<Arc<Message>>| {
        let systems = request.iter().filter_map(|message| match &**message {
            Message::System(system) => Some(system),
            _ => None,
        });
        let state = replay(systems).unwrap_or_default();
        let tools = state.tools_added.unwrap_or_default().into_iter();
        tools
            .map(|tool| format!("{}: {}", tool.name, tool.description))
            .collect()
    };
    requests.iter().map(tools).collect()
}

#[tokio::test]
async fn descriptions_and_hidden_declarations_are_what_active_tools_say() {
    // T23, M13, extensions §4.3
    let heard = Heard::default();
    let hears = heard.clone();
    let first = Orders("first", move |view: LoadoutView| {
        let names = view.registered.iter().map(|tool| tool.name.clone());
        hears.say(format!(
            "{:?} {:?} {:?}",
            view.declared,
            view.callable,
            names.collect::<Vec<_>>()
        ));
        assert_eq!(view.exposure("script"), Some(Exposure::Codemode));
        Ok(LoadoutChanges::default()
            .describe("first", "by first")
            .describe("a", "by first")
            .hide("b"))
    });
    let second = Orders("second", |_: LoadoutView| {
        Ok(LoadoutChanges::default()
            .describe("a", "by second")
            .describe("nobody", "x")
            .hide("script"))
    });
    let script_tool = named(ToolSpec::new("script", "").exposed(Exposure::Codemode));
    let plugin = Plugin::new()
        .tool(first)
        .tool(second)
        .tool(simple("a"))
        .tool(simple("b"))
        .tool(script_tool);
    let script = Script::new([
        calls([
            ("1", "b", json!({})),
            ("2", "first", json!({"to": ["first", "a", "b"]})),
        ]),
        calls([("3", "first", json!({"to": ["a", "b"]}))]),
        Reply::Text("done"),
    ]);
    let scene = scene(script, plugin).await;
    scene.prompt("go").await;
    assert_eq!(
        told(&scene.script),
        [
            vec!["first: by first", "second: plain", "a: by second"],
            vec!["first: by first", "a: by first"],
            // Nobody is left who says anything. What is declared anew stands last (M9).
            vec!["b: plain", "a: plain"],
        ]
    );
    assert_eq!(
        heard.all(),
        [
            r#"["first", "second", "a", "b"] ["first", "second", "a", "b", "script"] ["first", "second", "a", "b", "script"]"#,
            r#"["first", "a", "b"] ["first", "a", "b", "script"] ["first", "second", "a", "b", "script"]"#,
        ]
    );
    // A hidden tool stays active and callable, and the transcript declares it.
    assert_eq!(result_texts(&scene.session)[0], ("b".into(), false));
    let transcript = scene.session.messages();
    let first = transcript.iter().find_map(|message| match &**message {
        Message::System(system) => Some(system.clone()),
        _ => None,
    });
    let first = first.unwrap();
    assert_eq!(first.tools_added.unwrap().len(), 4);
    let prompt = serde_json::to_string(&first.sections).unwrap();
    assert!(
        prompt.contains("about a") && !prompt.contains("about b"),
        "{prompt}"
    );
}

#[tokio::test]
async fn a_tool_that_fails_to_say_is_reported_and_changes_nothing() {
    // T23, extensions §4.3
    let fails = Orders("fails", |_: LoadoutView| Err(Error::failed("no idea")));
    let panics = Orders("panics", |_: LoadoutView| panic!("on purpose"));
    let says = Orders("says", |_: LoadoutView| {
        Ok(LoadoutChanges::default().describe("says", "mine"))
    });
    let plugin = Plugin::new().tool(fails).tool(panics).tool(says);
    let mut scene = scene(Script::new([Reply::Text("ok"), Reply::Text("ok")]), plugin).await;
    scene.prompt("go").await;
    scene.prompt("again").await;
    let told = told(&scene.script);
    assert_eq!(told[1], ["fails: plain", "panics: plain", "says: mine"]);
    // Once for each change of the tools, not for each request.
    let failures = scene.events();
    let failures = failures
        .iter()
        .filter(|word| *word == "extension_error prepare_loadout");
    assert_eq!(failures.count(), 2);
}

mod slow {
    use std::sync::Arc;

    use pliant_kernel::registry::{Contribution, Generation, Kind, Rank, Source};
    use pliant_sdk::Error;
    use pliant_sdk::host::BoxFuture;
    use pliant_sdk::plugin::Invocation;
    use serde_json::json;

    /// A source whose tool never says what it wants.
    pub struct Slow {
        source: Source,
        contributions: Arc<[Contribution]>,
    }

    impl Default for Slow {
        fn default() -> Self {
            let spec =
                json!({"name": "slow", "parameters": {"type": "object"}, "preparesLoadout": true});
            Self {
                source: Source::inline("slow", Rank::User),
                contributions: Arc::new([Contribution {
                    id: 0,
                    kind: Kind::Tool,
                    name: "slow".into(),
                    spec,
                }]),
            }
        }
    }

    impl Generation for Slow {
        fn source(&self) -> &Source {
            &self.source
        }

        fn contributions(&self) -> Arc<[Contribution]> {
            Arc::clone(&self.contributions)
        }

        fn invoke(&self, _: u32, _: Invocation) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
            Box::pin(std::future::pending())
        }

        fn control(&self, _: &str, _: &[u8]) -> Result<Vec<u8>, Error> {
            Ok(Vec::new())
        }
    }
}

#[tokio::test]
async fn a_tool_that_never_says_holds_nobody_for_long() {
    // extensions §4.3; 200 ms, whatever handlers may take
    let mut scene = scene(Script::new([Reply::Text("ok")]), Plugin::new()).await;
    scene.registry.publish(Arc::new(slow::Slow::default()));
    tokio::time::timeout(Duration::from_secs(5), scene.prompt("go"))
        .await
        .unwrap();
    assert!(
        scene
            .events()
            .contains(&"extension_error prepare_loadout".to_owned())
    );
    assert_eq!(declared(&scene.script), [["slow"]]);
}
