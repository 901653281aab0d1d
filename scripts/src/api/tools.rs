//! `active_tools()`, `set_active_tools([…])`, `all_tools()`, and `ctx.call_tool("name", #{…})`: the tools
//! of the session, and calling one inside another (`extensions.md` §5.4).

use pliant_sdk::Error;
use pliant_sdk::message::joined_text;
use pliant_sdk::session::{CallPiece, CalledTool};
use rhai::{Array, Dynamic, Engine, FnPtr, Map, NativeCallContext};
use serde_json::{Value, json};

use super::Ctx;
use super::ask::ask;
use crate::call::{Call, ScriptResult, fail, throw};
use crate::convert;

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("active_tools", || {
        ask("active_tools", "tools.active", &Value::Null)
    });
    engine.register_fn("all_tools", || ask("all_tools", "tools.list", &Value::Null));
    engine.register_fn("set_active_tools", |names: Array| {
        let names: Vec<String> = names.iter().map(convert::display).collect();
        ask(
            "set_active_tools",
            "tools.set_active",
            &json!({"names": names}),
        )
        .map(drop)
    });
    engine.register_fn("call_tool", |ctx: &mut Ctx, name: &str| {
        call_tool(ctx.call(), name, Map::new(), |_| Ok(()))
    });
    engine.register_fn("call_tool", |ctx: &mut Ctx, name: &str, arguments: Map| {
        call_tool(ctx.call(), name, arguments, |_| Ok(()))
    });
    // `on_update` hears of each partial result.
    engine.register_fn(
        "call_tool",
        |context: NativeCallContext, ctx: &mut Ctx, name: &str, arguments: Map, mut given: Map| {
            let listener = given.remove("on_update").unwrap_or_default();
            super::options::<Value>("call_tool", given, &["on_update"])?;
            let Some(listener) = listener.try_cast::<FnPtr>() else {
                return Err(fail(
                    "call_tool: `on_update` has to be a closure, |partial| …",
                ));
            };
            call_tool(ctx.call(), name, arguments, |partial| {
                listener
                    .call_within_context::<Dynamic>(&context, (partial,))
                    .map(drop)
            })
        },
    );
}

/// Calls a tool inside the one that runs. It never throws for what the call comes to: an unknown tool,
/// wrong arguments and a refusal are outcomes with `isError`.
fn call_tool(
    call: &Call,
    name: &str,
    arguments: Map,
    mut show: impl FnMut(Dynamic) -> ScriptResult<()>,
) -> ScriptResult<Dynamic> {
    call.ensure_open()?;
    let arguments: Value = convert::to_typed(&Dynamic::from(arguments))?;
    let payload = json!({"name": name, "arguments": arguments}).to_string();
    let mut pieces = call.wait(call.host().open("tools.call", payload.into_bytes()))?;
    loop {
        let piece = call.wait(async { pieces.next().await.unwrap_or(Err(Error::cancelled())) })?;
        match serde_json::from_slice(&piece).map_err(|error| throw(&error.into()))? {
            CallPiece::Update(partial) => show(convert::to_dynamic(*partial)?)?,
            CallPiece::End(called) => return outcome(*called),
        }
    }
}

/// What a call came to, as a map: `isError`, `content`, `structuredContent`, `details`, and all text in
/// `text`.
fn outcome(called: CalledTool) -> ScriptResult<Dynamic> {
    let CalledTool {
        tool_call,
        result,
        is_error,
        duration_ms,
    } = called;
    let text = joined_text(&result.content, "\n");
    let mut outcome = serde_json::to_value(result).map_err(|error| throw(&error.into()))?;
    outcome["id"] = tool_call.id.into();
    outcome["isError"] = is_error.into();
    outcome["text"] = text.into();
    if let Some(duration_ms) = duration_ms {
        outcome["durationMs"] = duration_ms.into();
    }
    convert::to_dynamic(outcome)
}
