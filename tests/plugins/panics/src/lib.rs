//! Fixture: a plugin that panics wherever it is asked to.

use pliant_sdk::hook::{ToolCallAnswer, ToolCallEvent};
use pliant_sdk::{Error, Host, Init, Plugin, Tool, ToolCtx, ToolResult, ToolSpec};

/// Where the explosion happens.
#[derive(PartialEq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Place {
    /// In the tool itself.
    Execute,
    /// In the handler of `tool_call`, before the tool runs.
    Hook,
    /// On a thread of the plugin's own; the tool answers.
    Thread,
    /// Nowhere; the tool answers.
    Nowhere,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct ExplodeInput {
    /// Where to panic.
    place: Place,
}

struct Explode {
    when_dropped: bool,
}

impl Drop for Explode {
    fn drop(&mut self) {
        assert!(!self.when_dropped, "the end exploded");
    }
}

impl Tool for Explode {
    type Input = ExplodeInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("explode", "Panics.")
    }

    async fn execute(&self, input: ExplodeInput, _ctx: ToolCtx) -> Result<ToolResult, Error> {
        assert!(input.place != Place::Execute, "explode was called");
        if input.place == Place::Thread {
            let thread = std::thread::spawn(|| panic!("a thread exploded"));
            assert!(thread.join().is_err(), "the thread did not explode");
        }
        Ok(ToolResult::text("nothing exploded"))
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NoInput {}

/// Answers, and panics when its future is dropped.
struct ExplodeInDrop;

impl Tool for ExplodeInDrop {
    type Input = NoInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("explode_in_drop", "Panics while it is cleaned up.")
    }

    async fn execute(&self, _input: NoInput, ctx: ToolCtx) -> Result<ToolResult, Error> {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("a drop exploded");
            }
        }
        let _bomb = Bomb;
        // Long enough to be cancelled by a test that wants the future dropped while it waits.
        ctx.host().sleep_ms(50).await?;
        Ok(ToolResult::text("answered before the drop"))
    }
}

/// Setting `pluginSettings.panics.create = true` makes the constructor panic, `.drop` the destructor
/// of a tool.
fn create(_host: Host, init: Init) -> Result<Plugin, Error> {
    assert!(init.settings.get("create").is_none(), "create exploded");
    let when_dropped = init.settings.get("drop").is_some();
    Ok(Plugin::new()
        .tool(Explode { when_dropped })
        .tool(ExplodeInDrop)
        .on(|call: ToolCallEvent, _ctx| async move {
            let asked = call.input.get("place").is_some_and(|at| at == "hook");
            assert!(!asked, "a hook exploded");
            Ok(ToolCallAnswer::default())
        }))
}

pliant_sdk::export! {
    name: "panics",
    provides: { tool "explode", tool "explode_in_drop", hook "tool_call" },
    create: create,
}
