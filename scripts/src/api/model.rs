//! `set_model("provider/id")`, `set_thinking_level("high")`, `models()`, and what `ctx` says of the
//! session's model: `ctx.model`, `ctx.thinking_level`, `ctx.scoped_models`, `ctx.usage()`.

use rhai::{Array, Engine, EvalAltResult};
use serde_json::{Value, json};

use super::Ctx;
use super::ask::{ask, ask_if_there};

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("set_model", |model: &str| {
        ask("set_model", "session.set_model", &json!({ "model": model }))
    });
    // Without an answer: it is often the last thing a handler does, whose answer it would become.
    engine.register_fn("set_thinking_level", |level: &str| {
        let payload = json!({ "level": level });
        ask("set_thinking_level", "session.set_thinking_level", &payload).map(drop)
    });
    engine.register_fn("models", || ask("models", "models.list", &Value::Null));
    for (name, service) in [
        ("model", "session.model"),
        ("thinking_level", "session.thinking_level"),
    ] {
        engine.register_get(name, move |ctx: &mut Ctx| {
            ask_if_there(ctx.call(), service, &Value::Null)
        });
    }
    engine.register_get("scoped_models", |ctx: &mut Ctx| {
        let scope = ask_if_there(ctx.call(), "session.scoped_models", &Value::Null)?;
        Ok::<_, Box<EvalAltResult>>(scope.try_cast::<Array>().unwrap_or_default())
    });
    engine.register_fn("usage", |ctx: &mut Ctx| {
        ask_if_there(ctx.call(), "session.usage", &Value::Null)
    });
}
