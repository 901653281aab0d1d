//! `set_model("provider/id")`, `set_thinking_level("high")`, `models()`, and what `ctx` says of the
//! session's model: `ctx.model`, `ctx.thinking_level`, `ctx.scoped_models`, `ctx.usage()`.

use pliant_sdk::error::code;
use rhai::{Array, Dynamic, Engine, EvalAltResult};
use serde_json::{Value, json};

use super::Ctx;
use crate::call::{Call, ScriptResult, throw};
use crate::convert;

/// Asks the session; where there is none, the answer is nothing.
fn ask(call: &Call, service: &str, payload: &Value) -> ScriptResult<Dynamic> {
    call.ensure_open()?;
    let asked = call.host().call::<Value>(service, payload);
    match call.wait_for(asked)? {
        Ok(answer) => convert::to_dynamic(answer),
        Err(error) if error.is(code::UNSUPPORTED) => Ok(Dynamic::UNIT),
        Err(error) => Err(throw(&error)),
    }
}

/// Tells the session to change; where there is none, that is a failure.
fn tell(service: &str, payload: &Value) -> ScriptResult<Dynamic> {
    let call = Call::current()?;
    convert::to_dynamic(call.wait(call.host().call::<Value>(service, payload))?)
}

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("set_model", |model: &str| {
        tell("session.set_model", &json!({ "model": model }))
    });
    // Without an answer: it is often the last thing a handler does, whose answer it would become.
    engine.register_fn("set_thinking_level", |level: &str| {
        tell("session.set_thinking_level", &json!({ "level": level })).map(drop)
    });
    engine.register_fn("models", || tell("models.list", &Value::Null));
    for (name, service) in [
        ("model", "session.model"),
        ("thinking_level", "session.thinking_level"),
    ] {
        engine.register_get(name, move |ctx: &mut Ctx| {
            ask(ctx.call(), service, &Value::Null)
        });
    }
    engine.register_get("scoped_models", |ctx: &mut Ctx| {
        let scope = ask(ctx.call(), "session.scoped_models", &Value::Null)?;
        Ok::<_, Box<EvalAltResult>>(scope.try_cast::<Array>().unwrap_or_default())
    });
    engine.register_fn("usage", |ctx: &mut Ctx| {
        ask(ctx.call(), "session.usage", &Value::Null)
    });
}
