//! `bus_on("channel", |data| …)` and `bus_emit("channel", data)`: what extensions say to each other
//! (`extensions.md` §4.11).

use pliant_kernel::registry::BUS_PREFIX;
use rhai::{Dynamic, Engine, FnPtr};
use serde_json::{Value, json};

use super::ask::ask;
use super::register;
use crate::call::{ScriptResult, fail};
use crate::convert;

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("bus_on", |channel: &str, handle: FnPtr| {
        named(channel)?;
        register::listen(&format!("{BUS_PREFIX}{channel}"), handle)
    });
    engine.register_fn("bus_emit", |channel: &str| emit(channel, &Dynamic::UNIT));
    engine.register_fn("bus_emit", |channel: &str, data: Dynamic| {
        emit(channel, &data)
    });
}

/// Returns when everybody has heard it.
fn emit(channel: &str, data: &Dynamic) -> ScriptResult<()> {
    named(channel)?;
    let data: Value = convert::to_typed(data)?;
    let payload = json!({"channel": channel, "data": data});
    ask("bus_emit", "bus.emit", &payload).map(drop)
}

fn named(channel: &str) -> ScriptResult<()> {
    match channel.is_empty() {
        true => Err(fail("a channel needs a name")),
        false => Ok(()),
    }
}
