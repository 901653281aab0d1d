//! How functions of scripts reach the session: one question, one answer, both JSON.

use serde_json::Value;

use pliant_sdk::error::code;
use rhai::Dynamic;

use crate::call::{Call, ScriptResult, fail, throw};
use crate::convert;

/// Asks a service for a function without `ctx`.
///
/// # Errors
/// While the script is loaded, when there is no session to ask; what the service says.
pub(super) fn ask(function: &str, service: &str, payload: &Value) -> ScriptResult<Dynamic> {
    let call = Call::current()?;
    if call.registrations().is_some() {
        return Err(fail(format!(
            "{function} is not there yet while the script is loaded, because there is no session then. Call it in a handler, for example in on(\"session_start\", |event, ctx| …)"
        )));
    }
    ask_of(&call, service, payload)
}

/// Asks a service for a call.
///
/// # Errors
/// When the call has ended; what the service says.
pub(super) fn ask_of(call: &Call, service: &str, payload: &Value) -> ScriptResult<Dynamic> {
    call.ensure_open()?;
    convert::to_dynamic(call.wait(call.host().call::<Value>(service, payload))?)
}

/// Asks a service for a call; nothing where there is no session.
///
/// # Errors
/// As [`ask_of`].
pub(super) fn ask_if_there(call: &Call, service: &str, payload: &Value) -> ScriptResult<Dynamic> {
    call.ensure_open()?;
    let asked = call.host().call::<Value>(service, payload);
    match call.wait_for(asked)? {
        Ok(answer) => convert::to_dynamic(answer),
        Err(error) if error.is(code::UNSUPPORTED) => Ok(Dynamic::UNIT),
        Err(error) => Err(throw(&error)),
    }
}
