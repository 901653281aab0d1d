//! Fixture: a plugin whose declarations are nonsense, but for one tool.

use std::borrow::Cow;

use pliant_sdk::command::{Command, CommandCtx, CommandSpec};
use pliant_sdk::flag::FlagSpec;
use pliant_sdk::{Error, Host, Init, Plugin, Tool, ToolCtx, ToolResult, ToolSpec};
use serde_json::{Value, json};

/// Arguments of any shape, with a schema that is none.
#[derive(serde::Deserialize)]
struct Anything {}

impl schemars::JsonSchema for Anything {
    fn schema_name() -> Cow<'static, str> {
        "Anything".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": 17, "properties": ["a", 1e300], "required": {"not": "a list"}, "$ref": "#/nowhere",
        })
    }
}

/// Answers a word.
struct Named(&'static str, &'static str);

impl Tool for Named {
    type Input = Value;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.0, "Says a word.")
    }

    async fn execute(&self, _: Value, _: ToolCtx) -> Result<ToolResult, Error> {
        Ok(ToolResult::text(self.1))
    }
}

struct Shapeless;

impl Tool for Shapeless {
    type Input = Anything;

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            constrained_sampling: Some(json!([1, 2, 3])),
            output_schema: Some(json!("a schema")),
            annotations: Some(json!(-0.0)),
            namespace: Some(json!({"name": 1})),
            ..ToolSpec::new("shapeless", "\u{0}\u{7f}")
        }
    }

    async fn execute(&self, _: Anything, _: ToolCtx) -> Result<ToolResult, Error> {
        Ok(ToolResult::text("called"))
    }
}

struct Spaced;

impl Command for Spaced {
    fn spec(&self) -> CommandSpec {
        CommandSpec::new("two words", "Cannot be typed.")
    }

    async fn run(&self, _: String, _: CommandCtx) -> Result<(), Error> {
        Ok(())
    }
}

fn create(_host: Host, _init: Init) -> Result<Plugin, Error> {
    let flag = FlagSpec {
        name: "--".to_owned(),
        ..FlagSpec::default()
    };
    Ok(Plugin::new()
        .tool(Named("twice", "first"))
        .tool(Named("twice", "second"))
        .tool(Named("no name!", "unreachable"))
        .tool(Shapeless)
        .command(Spaced)
        .flag(flag)
        .on_event("no_such_event", |_, _| async { Ok(json!({"block": true})) }))
}

pliant_sdk::export! {
    name: "nonsense",
    provides: {
        tool "twice",
        tool "no name!",
        tool "shapeless",
        command "two words",
        flag "--",
        hook "no_such_event",
    },
    create: create,
}
