//! Fixture: a plugin that writes to stdout wherever it can, and starts children that inherit its
//! standard streams.

use std::process::Command;

use pliant_sdk::{Error, Host, Init, Plugin, Tool, ToolCtx, ToolResult, ToolSpec};

/// The arguments.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct PrintInput {
    /// What to print.
    text: String,
}

struct Print;

impl Tool for Print {
    type Input = PrintInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("print", "Print something.")
    }

    async fn execute(&self, input: PrintInput, _ctx: ToolCtx) -> Result<ToolResult, Error> {
        println!("{} of the tool", input.text);
        // The second half waits for the end of its input, which is the plugin's own.
        let script = format!("echo {} of a child; cat", input.text);
        let child = Command::new("sh").args(["-c", &script]).status();
        let status = child.map_err(|error| Error::failed(error.to_string()))?;
        Ok(ToolResult::text(format!("printed, {status}")))
    }
}

fn create(_host: Host, _init: Init) -> Result<Plugin, Error> {
    println!("noise of the start");
    Ok(Plugin::new().tool(Print))
}

pliant_sdk::export! {
    name: "prints",
    provides: { tool "print" },
    create: create,
}
