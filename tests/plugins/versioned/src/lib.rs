//! Fixture: a plugin whose versions differ in one text. A test writes another number into a copy of the
//! library, and has another version without a build. It overrides `ls`, and its handler and its tool each
//! say their version, so that it shows if one call met two of them.

use pliant_sdk::hook::{ToolCallAnswer, ToolCallEvent};
use pliant_sdk::{Error, Host, Init, Plugin, Tool, ToolCtx, ToolResult, ToolSpec};
use serde_json::json;

/// What the test looks for in the library and writes over: the version, and the name of the tool.
#[used]
static VERSION: [u8; 27] = *b"pliant-version: 00000000 ls";

/// A part of it, read so that the compiler cannot know it.
fn part(range: std::ops::Range<usize>) -> String {
    let text = std::hint::black_box(&VERSION);
    String::from_utf8_lossy(&text[range]).into_owned()
}

fn version() -> String {
    part(16..24)
}

fn tool() -> String {
    part(25..27)
}

/// The arguments.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// Written by the handler.
    #[serde(default)]
    seen: String,
}

struct Ls;

impl Tool for Ls {
    type Input = Input;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new(tool(), format!("Says its version, {}.", version()))
    }

    async fn execute(&self, input: Input, ctx: ToolCtx) -> Result<ToolResult, Error> {
        ctx.host().sleep_ms(1).await?;
        Ok(ToolResult::text(format!(
            "tool {} handler {}",
            version(),
            input.seen
        )))
    }
}

fn create(_host: Host, _init: Init) -> Result<Plugin, Error> {
    Ok(Plugin::new()
        .tool(Ls)
        .on(|call: ToolCallEvent, _ctx| async move {
            if call.tool_name != tool() {
                return Ok(ToolCallAnswer::default());
            }
            Ok(ToolCallAnswer {
                event: Some(json!({"input": {"seen": version()}})),
                ..ToolCallAnswer::default()
            })
        }))
}

pliant_sdk::export! {
    name: "versioned",
    provides: { tool "ls", hook "tool_call" },
    create: create,
}
