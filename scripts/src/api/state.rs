//! `state_get("key")` and `state_put("key", value)`: what a script keeps beyond reloads and the process.

use rhai::{Dynamic, Engine};
use serde_json::Value;

use crate::call::{Call, ScriptResult};
use crate::convert;

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("state_get", |key: &str| -> ScriptResult<Dynamic> {
        let call = Call::current()?;
        let (host, key) = (call.host().clone(), key.to_owned());
        let kept = call.wait(async move { host.state(&key).await })?;
        convert::to_dynamic(kept)
    });
    engine.register_fn(
        "state_put",
        |key: &str, value: Dynamic| -> ScriptResult<()> {
            let call = Call::current()?;
            let value: Value = convert::to_typed(&value)?;
            let (host, key) = (call.host().clone(), key.to_owned());
            call.wait(async move { host.keep_state(&key, &value).await })
        },
    );
}
