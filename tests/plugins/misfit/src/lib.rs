//! Fixture: a plugin whose manifest promises another tool than the one it brings.

use pliant_sdk::{Error, Host, Init, Plugin, Tool, ToolCtx, ToolResult, ToolSpec};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NoInput {}

struct Brought;

impl Tool for Brought {
    type Input = NoInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("brought", "Nobody was told of it.")
    }

    async fn execute(&self, _input: NoInput, _ctx: ToolCtx) -> Result<ToolResult, Error> {
        Ok(ToolResult::text("unannounced"))
    }
}

fn create(_host: Host, _init: Init) -> Result<Plugin, Error> {
    Ok(Plugin::new().tool(Brought))
}

pliant_sdk::export! {
    name: "misfit",
    provides: { tool "promised" },
    create: create,
}
