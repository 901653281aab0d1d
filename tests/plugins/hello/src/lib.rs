//! Fixture: the small plugin of the SDK's crate docs, as a library that is really loaded.

use pliant_sdk::hook::{ToolCallAnswer, ToolCallEvent};
use pliant_sdk::{Error, Host, Init, Plugin, Tool, ToolCtx, ToolResult, ToolSpec};

/// The arguments. Doc comments become the descriptions that the model sees.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct GreetInput {
    /// Who to greet.
    name: String,
}

struct Greet;

impl Tool for Greet {
    type Input = GreetInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("greet", "Greet somebody by name.")
    }

    async fn execute(&self, input: GreetInput, _ctx: ToolCtx) -> Result<ToolResult, Error> {
        Ok(ToolResult::text(format!("Hello, {}!", input.name)))
    }
}

fn create(_host: Host, _init: Init) -> Result<Plugin, Error> {
    Ok(Plugin::new()
        .tool(Greet)
        .on(|call: ToolCallEvent, _ctx| async move {
            let forbidden = call.input.get("name").is_some_and(|name| name == "nobody");
            Ok(if forbidden {
                ToolCallAnswer::block("Nobody is not to be greeted.")
            } else {
                ToolCallAnswer::default()
            })
        }))
}

pliant_sdk::export! {
    name: "hello",
    provides: { tool "greet", hook "tool_call" },
    create: create,
}
