//! What scripts can call. One file per group; each has `install`, which adds its functions to an
//! engine. A new group is a new file and a line in [`GROUPS`].
//!
//! Names are snake_case; fields of maps that come from or go to JSON keep their JSON names. A
//! failure is thrown as `#{code, message, details}`. Functions that wait stop when nobody waits for
//! the script any more.

mod ask;
mod bus;
mod catalog;
mod control;
mod ctx;
mod exec;
mod files;
mod flag;
mod http;
mod http_stream;
mod json;
mod log;
mod messages;
mod model;
mod naming;
mod provider;
mod register;
mod session;
mod shell;
mod snapshots;
mod state;
mod text;
mod time;
mod timer;
mod tools;
mod ui;

use rhai::{Dynamic, Engine, Map};
use serde::de::DeserializeOwned;

pub(crate) use ctx::Ctx;
pub(crate) use provider::{Out, Request};
pub(crate) use register::function as host_function;

use crate::call::{ScriptResult, fail};
use crate::convert;
use crate::engine::MAX_STRING;

const GROUPS: &[fn(&mut Engine)] = &[
    register::install,
    ctx::install,
    session::install,
    control::install,
    ui::install,
    messages::install,
    naming::install,
    tools::install,
    model::install,
    bus::install,
    catalog::install,
    flag::install,
    state::install,
    provider::install,
    exec::install,
    http::install,
    http_stream::install,
    files::install,
    json::install,
    text::install,
    shell::install,
    snapshots::install,
    time::install,
    timer::install,
    log::install,
];

/// Adds everything to an engine.
pub(crate) fn install(engine: &mut Engine) {
    for group in GROUPS {
        group(engine);
    }
}

/// Options given as a map. A misspelt one is named instead of being ignored.
fn options<T: DeserializeOwned>(function: &str, given: Map, known: &[&str]) -> ScriptResult<T> {
    if let Some(stranger) = given.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(fail(format!(
            "{function} has no option `{stranger}`; it takes {}",
            known.join(", ")
        )));
    }
    convert::to_typed(&Dynamic::from(given))
        .map_err(|error| fail(format!("the options of {function}: {error}")))
}

/// Bytes as text, with � for what is not UTF-8; that may make it longer, so it is cut to the limit.
fn text_within_limit(bytes: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    if text.len() > MAX_STRING {
        text.truncate(text.floor_char_boundary(MAX_STRING));
    }
    text
}
