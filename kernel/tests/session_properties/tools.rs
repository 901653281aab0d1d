//! The tools of a script: they do what the call says.

use std::panic::resume_unwind;
use std::sync::Arc;

use pliant_sdk::tool::{ExecutionMode, ToolCtx, ToolResult, ToolSpec};
use pliant_sdk::{Error, Tool};
use serde_json::json;

use crate::model::{Alive, Gate};

/// What all of them share.
#[derive(Default)]
pub struct Workshop {
    pub gate: Gate,
    pub alive: Alive,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub struct Input {
    pub deed: String,
    pub text: String,
}

pub struct Doer {
    pub name: &'static str,
    pub mode: ExecutionMode,
    pub workshop: Arc<Workshop>,
}

impl Tool for Doer {
    type Input = Input;

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            execution_mode: self.mode,
            ..ToolSpec::new(self.name, "Do what is said.")
        }
    }

    async fn execute(&self, input: Input, ctx: ToolCtx) -> Result<ToolResult, Error> {
        let _life = self.workshop.alive.begin();
        let done = ToolResult::text(&input.text);
        match input.deed.as_str() {
            "Fail" => Err(Error::failed(input.text)),
            "Panic" => resume_unwind(Box::new("the tool panics")),
            "Hang" => std::future::pending().await,
            "Gate" => {
                ctx.update(&ToolResult::text("at the gate"));
                self.workshop.gate.pass().await;
                Ok(done)
            }
            "Update" => {
                ctx.update(&ToolResult::text("so far"));
                tokio::task::yield_now().await;
                ctx.update(&ToolResult::text("further"));
                Ok(done)
            }
            "Nest" => {
                for (name, deed) in [("echo", "Gate"), ("slow", "Say"), ("unknown", "Say")] {
                    let arguments = json!({"deed": deed, "text": input.text});
                    ctx.call_tool(name, arguments).await?;
                }
                Ok(done)
            }
            "SayMuch" => Ok(ToolResult::text("word ".repeat(9_000))),
            "Terminate" => Ok(ToolResult {
                terminate: true,
                ..done
            }),
            _ => Ok(done),
        }
    }
}
