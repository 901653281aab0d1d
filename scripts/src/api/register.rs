//! `on`, `register_tool`, `register_command`, `register_flag`, `register_provider`,
//! `register_virtual_model`: only at the top level.

use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use rhai::{Dynamic, Engine, FnPtr, Map};

use crate::call::{Call, ScriptResult, fail};
use crate::contribution::{Declare, Listening, declare};

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("on", on);
    engine.register_fn("register_tool", |fields: Map| {
        let name = fields.get("name").map(ToString::to_string);
        match name.filter(|name| !name.is_empty()) {
            Some(name) => register("register_tool", declare::tool, &name, fields),
            None => Err(fail("register_tool: `name` is missing")),
        }
    });
    engine.register_fn("register_command", |name: &str, fields: Map| {
        register("register_command", declare::command, name, fields)
    });
    engine.register_fn("register_flag", |name: &str, fields: Map| {
        register("register_flag", declare::flag, name, fields)
    });
    engine.register_fn("register_provider", |name: &str, fields: Map| {
        register("register_provider", declare::provider, name, fields)
    });
    engine.register_fn("register_virtual_model", virtual_model);
}

/// A virtual model is named by its provider and id; its `name` is for people.
fn virtual_model(mut fields: Map) -> ScriptResult<()> {
    let text = |key: &str| fields.get(key).map(ToString::to_string).unwrap_or_default();
    let (provider, id) = (text("provider"), text("id"));
    if provider.is_empty() || id.is_empty() {
        return Err(fail(
            "register_virtual_model: `provider` and `id` have to say what is selected",
        ));
    }
    let label = fields.remove("name").unwrap_or_default();
    if !label.is_unit() {
        fields.insert("label".into(), label);
    }
    fields.remove("id");
    fields.insert("modelId".into(), id.clone().into());
    let name = format!("{provider}/{id}");
    register(
        "register_virtual_model",
        declare::virtual_model,
        &name,
        fields,
    )
}

fn register(function: &str, declare: Declare, name: &str, mut fields: Map) -> ScriptResult<()> {
    let call = Call::current()?;
    let registrations = call.registrations()?;
    fields.insert("name".into(), name.into());
    let registration = declare(call.program(), name, fields)
        .map_err(|error| fail(format!("{function}(\"{name}\"): {}", plain(&error))))?;
    registrations
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .add(registration);
    Ok(())
}

/// The message of an error that [`fail`] made.
fn plain(error: &rhai::EvalAltResult) -> String {
    match error {
        rhai::EvalAltResult::ErrorRuntime(thrown, _) => thrown
            .as_map_ref()
            .ok()
            .and_then(|map| map.get("message").map(ToString::to_string))
            .unwrap_or_else(|| thrown.to_string()),
        other => other.to_string(),
    }
}

/// Answers a function that ends the subscription.
fn on(event: &str, handle: FnPtr) -> ScriptResult<FnPtr> {
    listen(event, handle)
}

/// The same for whatever is heard of by a handler of that name.
pub(super) fn listen(event: &str, handle: FnPtr) -> ScriptResult<FnPtr> {
    let listening: Listening = Arc::new(AtomicBool::new(true));
    let fields = Map::from([
        ("handle".into(), Dynamic::from(handle)),
        ("listening".into(), Dynamic::from(Arc::clone(&listening))),
    ]);
    register("on", declare::hook, event, fields)?;
    function("unsubscribe", move || {
        listening.store(false, Ordering::Relaxed)
    })
}

/// A function of the host as a value, called as `f.call()`.
#[expect(
    deprecated,
    reason = "Rhai marks what may still change its signature this way; see its documentation"
)]
pub(super) fn function(name: &str, act: impl Fn() + Send + Sync + 'static) -> ScriptResult<FnPtr> {
    FnPtr::from_fn(name, move |_, _| {
        act();
        Ok(Dynamic::UNIT)
    })
}
