//! `on`, `register_tool`, `register_command`, `register_flag`, `register_provider`,
//! `register_virtual_model`, and what else there is to register: at the top level, or later in a handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pliant_kernel::registry::Kind;
use rhai::{Dynamic, Engine, FnPtr, Map};
use serde_json::{Value, json};

use super::ask::ask;
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
    engine.register_fn("register_shortcut", |key: &str, fields: Map| {
        register("register_shortcut", declare::shortcut, key, fields)
    });
    engine.register_fn("register_message_renderer", |name: &str, render: FnPtr| {
        let function = "register_message_renderer";
        renderer(function, declare::message_renderer, name, render)
    });
    engine.register_fn("register_entry_renderer", |name: &str, render: FnPtr| {
        let function = "register_entry_renderer";
        renderer(function, declare::entry_renderer, name, render)
    });
    engine.register_fn("register_tool_renderer", |render: FnPtr| {
        let function = "register_tool_renderer";
        renderer(function, declare::tool_renderer, "tools", render)
    });
    engine.register_fn("register_markdown_transformer", |transform: FnPtr| {
        let function = "register_markdown_transformer";
        renderer(
            function,
            declare::markdown_transformer,
            "markdown",
            transform,
        )
    });
    engine.register_fn("register_autocomplete", autocomplete);
    engine.register_fn("register_mcp_server", mcp_server);
    engine.register_fn("unregister_mcp_server", |name: &str| {
        Call::current()?.unregister(Kind::McpServer, name)
    });
    engine.register_fn("unregister_provider", |name: &str| {
        Call::current()?.unregister(Kind::Provider, name)
    });
    engine.register_fn("mcp_servers", || {
        ask("mcp_servers", "mcp.servers", &Value::Null)
    });
}

/// A renderer is a closure; the type it shows is its name.
fn renderer(function: &str, declare: Declare, name: &str, render: FnPtr) -> ScriptResult<()> {
    let fields = Map::from([("render".into(), Dynamic::from(render))]);
    register(function, declare, name, fields)
}

/// It is named by its trigger, so that one trigger is completed by one of them.
fn autocomplete(fields: Map) -> ScriptResult<()> {
    let trigger = fields.get("trigger").map(ToString::to_string);
    let name = trigger.filter(|trigger| !trigger.is_empty());
    let name = name.unwrap_or_else(|| "word".to_owned());
    register(
        "register_autocomplete",
        declare::autocomplete,
        &name,
        fields,
    )
}

/// A name that another extension has is refused here; one that the user's files have hides this one.
fn mcp_server(name: &str, fields: Map) -> ScriptResult<()> {
    let call = Call::current()?;
    if call.registrations().is_none() {
        let payload = json!({"name": name});
        let _ = ask("register_mcp_server", "mcp.claim", &payload)?;
    }
    register("register_mcp_server", declare::mcp_server, name, fields)
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
    fields.insert("name".into(), name.into());
    let registration = declare(call.program(), name, fields)
        .map_err(|error| fail(format!("{function}(\"{name}\"): {}", plain(&error))))?;
    call.register(registration)
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
        listening.store(false, Ordering::Relaxed);
        Ok(Dynamic::UNIT)
    })
}

/// A function of the host as a value, called as `f.call()`.
#[expect(
    deprecated,
    reason = "Rhai marks what may still change its signature this way; see its documentation"
)]
pub(crate) fn function(
    name: &str,
    act: impl Fn() -> ScriptResult<Dynamic> + Send + Sync + 'static,
) -> ScriptResult<FnPtr> {
    FnPtr::from_fn(name, move |_, _| act())
}
