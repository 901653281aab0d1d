//! What extensions show in place of the front end, and what they add to the keyboard (`extensions.md`
//! §4.5, §4.10).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pliant_kernel::session::Session;
use pliant_sdk::autocomplete::{Autocomplete, AutocompleteSpec, Typed};
use pliant_sdk::command::{Command, CommandCtx, CommandSpec, Completion};
use pliant_sdk::display::{Surface, ToolPart, ToolShown, ViewOptions};
use pliant_sdk::error::code;
use pliant_sdk::message::CustomMessage;
use pliant_sdk::plugin::CallCtx;
use pliant_sdk::shortcut::{Shortcut, ShortcutSpec};
use pliant_sdk::tool::{ToolCtx, ToolResult, ToolSpec};
use pliant_sdk::view::{MAX_NODES, View};
use pliant_sdk::{Error, Plugin, Tool};
use serde_json::json;

use crate::support::*;

fn note(custom_type: &str) -> CustomMessage {
    let message = json!({"customType": custom_type, "content": "text", "display": true});
    serde_json::from_value(message).unwrap()
}

async fn shown(session: &Session, custom_type: &str) -> Option<String> {
    let message = note(custom_type);
    let view = session.view_message(&message, ViewOptions::default());
    view.await.map(|view| view.to_plain())
}

/// A plugin that shows messages of a type as `says`.
fn showing(custom_type: &str, says: &'static str) -> Plugin {
    Plugin::new().message_renderer(custom_type, move |shown, _| async move {
        let text = shown.message.content.joined_text("");
        Ok(Some(View::text(format!("{says}: {text}"))))
    })
}

#[tokio::test]
async fn the_first_extension_shows_a_type_of_message() {
    let scene = scene(Script::default(), showing("note", "first")).await;
    scene.publish("second", showing("note", "second"));
    scene.publish("third", showing("other", "third"));
    assert_eq!(shown(&scene.session, "note").await.unwrap(), "first: text");
    assert_eq!(shown(&scene.session, "other").await.unwrap(), "third: text");
    assert_eq!(shown(&scene.session, "unknown").await, None);
    let snapshot = scene.registry.snapshot();
    let said = snapshot.diagnostics().join("\n");
    assert!(
        said.contains("message renderer of \"note\" in \"second\""),
        "{said}"
    );
}

#[tokio::test]
async fn entries_are_shown_by_their_own_renderers() {
    let plugin = Plugin::new().entry_renderer("todo", |shown, _| async move {
        let data = &shown.entry["data"];
        Ok(data["text"].as_str().map(View::text))
    });
    let scene = scene(Script::default(), plugin).await;
    let data = Some(json!({"text": "buy milk"}));
    let entry = scene.session.append("todo".to_owned(), data).await.unwrap();
    let view = scene
        .session
        .view_entry(&entry, ViewOptions::default())
        .await;
    assert_eq!(view.unwrap().to_plain(), "buy milk");
    let entry = scene.session.append("todo".to_owned(), None).await.unwrap();
    assert_eq!(
        scene
            .session
            .view_entry(&entry, ViewOptions::default())
            .await,
        None
    );
}

#[tokio::test]
async fn a_renderer_that_fails_is_told_and_left_out_after_three_times() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let plugin = Plugin::new().message_renderer("note", move |_, _| {
        let count = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            match count {
                0 => Err(Error::failed("no paper")),
                1 => Ok(Some(View::column((0..MAX_NODES).map(|_| View::text(""))))),
                _ => panic!("no ink"),
            }
        }
    });
    let mut scene = scene(Script::default(), plugin).await;
    for _ in 0..5 {
        assert_eq!(shown(&scene.session, "note").await, None);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    let said = scene.errors().join("\n");
    for part in [
        "no paper",
        "more than 10000 nodes",
        "no ink",
        "failed three times in a row",
    ] {
        assert_eq!(said.matches(part).count(), 1, "{part} in {said}");
    }
}

/// A tool that shows its calls.
struct Weather;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

impl Tool for Weather {
    type Input = Nothing;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("weather", "Look out of the window.").renders()
    }

    fn render(&self, shown: ToolShown) -> Result<Option<View>, Error> {
        Ok(match shown.part {
            ToolPart::Call => Some(View::text("looking")),
            ToolPart::Result => None,
        })
    }

    async fn execute(&self, _: Nothing, _: ToolCtx) -> Result<ToolResult, Error> {
        Ok(ToolResult::text("sun"))
    }
}

fn call(tool: &str, part: ToolPart) -> ToolShown {
    ToolShown {
        part,
        tool_name: tool.to_owned(),
        tool_call_id: "c".to_owned(),
        input: json!({}),
        result: None,
        is_partial: false,
        options: ViewOptions::default(),
    }
}

#[tokio::test]
async fn renderers_of_tools_are_a_chain_that_ends_at_the_tool() {
    let outer = Plugin::new().tool_renderer(|shown, ctx: CallCtx| async move {
        if shown.tool_name != "weather" {
            return Ok(None);
        }
        let next = ctx.host().next_view().await?;
        Ok(next.map(|next| View::framed("outer", [next])))
    });
    let scene = scene(Script::default(), outer.tool(Weather)).await;
    let inner = Plugin::new().tool_renderer(|shown, _| async move {
        let says = (shown.tool_name == "bash").then(|| View::text("inner"));
        Ok(says)
    });
    scene.publish("inner", inner);
    let view = async |tool: &str, part: ToolPart| {
        let view = scene.session.view_tool(&call(tool, part)).await;
        view.map(|view| view.to_plain())
    };
    assert_eq!(
        view("weather", ToolPart::Call).await.unwrap(),
        "outer\n  looking"
    );
    assert_eq!(view("weather", ToolPart::Result).await, None);
    assert_eq!(view("bash", ToolPart::Call).await.unwrap(), "inner");
    assert_eq!(view("read", ToolPart::Call).await, None);
}

#[tokio::test]
async fn a_renderer_in_the_middle_that_fails_is_passed_by() {
    let outer =
        Plugin::new().tool_renderer(|_, ctx: CallCtx| async move { ctx.host().next_view().await });
    let mut scene = scene(Script::default(), outer.tool(Weather)).await;
    let broken = Plugin::new().tool_renderer(|_, _| async { Err(Error::failed("torn")) });
    scene.publish("broken", broken);
    let view = scene
        .session
        .view_tool(&call("weather", ToolPart::Call))
        .await;
    assert_eq!(view.unwrap().to_plain(), "looking");
    assert!(scene.errors().join("\n").contains("torn"));
}

#[tokio::test]
async fn markdown_passes_every_transformer_in_load_order() {
    let adds = |word: &'static str| {
        Plugin::new().markdown_transformer(move |shown, _| async move {
            Ok(format!("{}{word}", shown.markdown))
        })
    };
    let scene = scene(Script::default(), adds(" a")).await;
    let fails = Plugin::new().markdown_transformer(|_, _| async { Err(Error::failed("smudged")) });
    scene.publish("fails", fails);
    scene.publish("b", adds(" b"));
    let text = scene
        .session
        .transform_markdown("x".to_owned(), Surface::Assistant);
    assert_eq!(text.await, "x a b");
}

struct Key(&'static str, Arc<AtomicUsize>);

impl Shortcut for Key {
    fn spec(&self) -> ShortcutSpec {
        ShortcutSpec::new(self.0, "")
    }

    async fn press(&self, ctx: CommandCtx) -> Result<(), Error> {
        // What only commands may do.
        ctx.host().session().wait_idle().await?;
        self.1.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::test]
async fn the_last_extension_has_a_key() {
    let (first, last): (Arc<AtomicUsize>, Arc<AtomicUsize>) = Default::default();
    let plugin = Plugin::new()
        .shortcut(Key("Ctrl+G", Arc::clone(&first)))
        .shortcut(Key("f2", Arc::clone(&first)))
        .shortcut(Key("hyper+x", Arc::clone(&first)));
    let scene = scene(Script::default(), plugin).await;
    scene.publish(
        "last",
        Plugin::new().shortcut(Key("ctrl+g", Arc::clone(&last))),
    );
    let keys: Vec<String> = scene
        .session
        .shortcuts()
        .into_iter()
        .map(|key| key.name)
        .collect();
    assert_eq!(keys, ["ctrl+g", "f2"]);
    scene.session.press("CTRL+g").await.unwrap();
    scene.session.press("F2").await.unwrap();
    let counts = (first.load(Ordering::SeqCst), last.load(Ordering::SeqCst));
    assert_eq!(counts, (1, 1));
    let error = scene.session.press("f3").await.unwrap_err();
    assert_eq!(error.code, code::NOT_FOUND);
    assert_eq!(
        scene.session.press("f33").await.unwrap_err().code,
        code::INVALID
    );
    let snapshot = scene.registry.snapshot();
    let said = snapshot.diagnostics().join("\n");
    assert!(
        said.contains("hyper+x") && said.contains("no longer what \"extension\" did"),
        "{said}"
    );
}

struct Words(&'static str, &'static [&'static str]);

impl Autocomplete for Words {
    fn spec(&self) -> AutocompleteSpec {
        AutocompleteSpec::new(self.0)
    }

    async fn suggest(&self, typed: Typed, _: CallCtx) -> Result<Vec<Completion>, Error> {
        let fitting = self.1.iter().filter(|word| word.starts_with(&typed.word));
        let completion = |word: &&str| Completion {
            value: (*word).to_owned(),
            ..Completion::default()
        };
        Ok(fitting.map(completion).collect())
    }
}

struct Greet;

impl Command for Greet {
    fn spec(&self) -> CommandSpec {
        CommandSpec::new("greet", "")
    }

    async fn run(&self, _: String, _: CommandCtx) -> Result<(), Error> {
        Ok(())
    }

    fn complete(&self, prefix: &str) -> Vec<Completion> {
        let value = format!("{prefix}!");
        vec![Completion {
            value,
            ..Completion::default()
        }]
    }
}

#[tokio::test]
async fn the_newest_autocompletion_that_knows_the_word_is_asked() {
    let plugin = Plugin::new()
        .autocomplete(Words("#", &["#12", "#13"]))
        .command(Greet);
    let scene = scene(Script::default(), plugin).await;
    scene.publish(
        "newer",
        Plugin::new().autocomplete(Words("", &["#1x", "hello"])),
    );
    let suggest = async |line: &str| {
        let found = scene.session.suggest(line, line.chars().count()).await;
        found.into_iter().map(|one| one.label).collect::<Vec<_>>()
    };
    assert_eq!(suggest("see #1").await, ["#1x"]);
    assert_eq!(suggest("see #12").await, ["#12"]);
    assert_eq!(suggest("he").await, ["hello"]);
    assert_eq!(suggest("none").await, [""; 0]);
    let completed = scene.session.complete_command("greet", "you").await;
    assert_eq!(completed[0].label, "you!");
    assert!(
        scene
            .session
            .complete_command("nothing", "")
            .await
            .is_empty()
    );
}
