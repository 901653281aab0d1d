//! `flag("name")`, also as `ctx.flag("name")`: what the user gave for one of the script's own flags.

use std::sync::PoisonError;

use pliant_kernel::registry::Kind;
use rhai::{Dynamic, Engine};
use serde_json::{Value, json};

use super::Ctx;
use crate::call::{Call, ScriptResult};
use crate::convert;

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("flag", flag);
    engine.register_fn("flag", |_: &mut Ctx, name: &str| flag(name));
}

/// While the script is loaded, nobody knows yet what was given; the default stands for it.
fn flag(name: &str) -> ScriptResult<Dynamic> {
    let call = Call::current()?;
    if let Some(registrations) = call.registrations() {
        let registrations = registrations.lock().unwrap_or_else(PoisonError::into_inner);
        let spec = registrations.spec(Kind::Flag, name);
        let default = spec.and_then(|spec| spec.get("default")).cloned();
        return convert::to_dynamic(default.unwrap_or_default());
    }
    let host = call.host().clone();
    let payload = json!({"name": name});
    let value: Value = call.wait(async move { host.call("flag.get", &payload).await })?;
    convert::to_dynamic(value)
}
