//! Fixture: a tool that calls other tools, in each way there is.

use std::task::Poll;

use pliant_sdk::message::joined_text;
use pliant_sdk::session::CalledTool;
use pliant_sdk::{Error, Host, Init, Plugin, Tool, ToolCtx, ToolResult, ToolSpec};
use serde_json::{Map, Value};

/// The arguments.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct CallInput {
    /// Name of the tool.
    name: String,
    /// Its arguments.
    arguments: Map<String, Value>,
    /// `wait`, `watch`, `start` or `drop`.
    how: String,
}

struct Call;

impl Tool for Call {
    type Input = CallInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("call", "Call another tool.")
    }

    async fn execute(&self, input: CallInput, ctx: ToolCtx) -> Result<ToolResult, Error> {
        let CallInput {
            name,
            arguments,
            how,
        } = input;
        let arguments = Value::Object(arguments);
        let said = match how.as_str() {
            "watch" => {
                let mut shown = 0;
                let called = ctx.watch_tool(&name, arguments, |_| shown += 1).await?;
                format!(
                    "{} after {}",
                    said(&called),
                    if shown > 0 { "some" } else { "none" }
                )
            }
            "start" => ctx.start_tool(&name, arguments).await?,
            "drop" => {
                let mut call = Box::pin(ctx.call_tool(&name, arguments));
                let mut looks = 0;
                // Looks at it a few times, then gives up.
                let given_up = std::future::poll_fn(|cx| {
                    looks += 1;
                    match call.as_mut().poll(cx) {
                        Poll::Ready(_) => Poll::Ready(false),
                        Poll::Pending if looks == 4 => Poll::Ready(true),
                        Poll::Pending => {
                            cx.waker().wake_by_ref();
                            Poll::Pending
                        }
                    }
                });
                format!("gave up: {}", given_up.await)
            }
            _ => said(&ctx.call_tool(&name, arguments).await?),
        };
        Ok(ToolResult::text(said))
    }
}

fn said(called: &CalledTool) -> String {
    let text = joined_text(&called.result.content, "");
    format!("{}: {}", called.tool_call.id, text.trim())
}

fn create(_host: Host, _init: Init) -> Result<Plugin, Error> {
    Ok(Plugin::new().tool(Call))
}

pliant_sdk::export! {
    name: "calls",
    provides: { tool "call" },
    create: create,
    needs: ["tools.call"],
    kernel: "0.1",
}
