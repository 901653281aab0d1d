//! Fixture: a plugin that does not return, wherever it is asked to, unless a file appears.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use pliant_sdk::{Error, Host, Init, Plugin, Tool, ToolCtx, ToolResult, ToolSpec};
use serde_json::Value;

/// How it hangs.
#[derive(Clone, Copy, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum How {
    /// It computes.
    Spin,
    /// It waits for something else than the host.
    Block,
    /// It waits for the host, and computes when the call is given up.
    Cleanup,
    /// It does not hang.
    Not,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct HangInput {
    /// How.
    how: How,
    /// It makes this file when it begins.
    begun: PathBuf,
    /// It ends when this file is there.
    until: PathBuf,
}

struct Hang;

impl Tool for Hang {
    type Input = HangInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("hang", "Does not return.")
    }

    async fn execute(&self, input: HangInput, ctx: ToolCtx) -> Result<ToolResult, Error> {
        let HangInput { how, begun, until } = input;
        let _cleanup = Cleanup(matches!(how, How::Cleanup).then(|| until.clone()));
        std::fs::write(begun, "")?;
        match how {
            How::Spin => spin(&until),
            How::Block => block(&until),
            How::Cleanup => ctx.host().sleep_ms(600_000).await?,
            How::Not => {}
        }
        Ok(ToolResult::text("it returned"))
    }
}

/// Hangs when it is dropped.
struct Cleanup(Option<PathBuf>);

impl Drop for Cleanup {
    fn drop(&mut self) {
        if let Some(until) = &self.0 {
            spin(until);
        }
    }
}

fn spin(until: &Path) {
    while !until.exists() {
        std::hint::spin_loop();
    }
}

fn block(until: &Path) {
    while !until.exists() {
        thread::sleep(Duration::from_millis(2));
    }
}

/// Hangs at the end of the plugin.
struct End(Option<PathBuf>);

impl Tool for End {
    type Input = Value;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("end", "Hangs when it is dropped, if the settings say so.")
    }

    async fn execute(&self, _: Value, _: ToolCtx) -> Result<ToolResult, Error> {
        Ok(ToolResult::text("not yet"))
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if let Some(until) = &self.0 {
            block(until);
        }
    }
}

/// `pluginSettings.hangs.start`, `.gate` and `.end` are files; the plugin blocks at its start, before
/// commands of the user, or at its end until they are there.
fn create(_host: Host, init: Init) -> Result<Plugin, Error> {
    let file = |place: &str| init.settings.get(place)?.as_str().map(PathBuf::from);
    if let Some(until) = file("start") {
        block(&until);
    }
    let gate = file("gate");
    Ok(Plugin::new()
        .tool(Hang)
        .tool(End(file("end")))
        .on_event("user_bash", move |_, _| {
            let gate = gate.clone();
            async move {
                if let Some(until) = gate {
                    spin(&until);
                }
                Ok(Value::Null)
            }
        }))
}

pliant_sdk::export! {
    name: "hangs",
    provides: { tool "hang", tool "end", hook "user_bash" },
    create: create,
}
