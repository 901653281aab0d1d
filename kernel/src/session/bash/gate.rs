//! `user_bash`: a handler may answer a command in place of the shell. A gate that fails closed: a
//! command that a failing or unreadable handler may have wanted to stop is not run.

use std::ops::ControlFlow;
use std::sync::Arc;

use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::message::BashExecutionMessage;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::BashOptions;
use crate::registry::{Callers, Dispatcher, HookPoint};
use crate::session::Shared;

/// What a handler gives in place of running the command.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    output: String,
    #[serde(deserialize_with = "present")]
    exit_code: Option<i64>,
    cancelled: bool,
    truncated: bool,
    full_output_path: Option<String>,
}

/// Null is a value, a missing key is a mistake.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    Option::deserialize(deserializer)
}

/// The first answer of a handler; `None` when the command is to be run.
///
/// # Errors
/// When a handler failed, or its answer is none.
pub(super) async fn ask(
    shared: &Arc<Shared>,
    command: &str,
    options: &BashOptions,
    cancel: &CancellationToken,
) -> Result<Option<BashExecutionMessage>, Error> {
    let snapshot = shared.equipment.registry.snapshot();
    let callers = Callers::new(shared, shared.patience(cancel.clone()));
    let Some(dispatcher) = Dispatcher::new(&snapshot, HookPoint::UserBash, callers) else {
        return Ok(None);
    };
    let payload = |_: &Option<BashExecutionMessage>| {
        json!({
            "type": "user_bash", "command": command, "cwd": shared.cwd,
            "excludeFromContext": options.exclude_from_context,
        })
    };
    let take = |given: &mut Option<BashExecutionMessage>, answer| {
        *given = Some(read(answer)?);
        Ok(ControlFlow::Break(()))
    };
    let mut given = None;
    match dispatcher.each(&mut given, payload, take).await {
        Ok(()) => Ok(given),
        Err(failure) if failure.error.is(code::CANCELLED) => Err(failure.error),
        Err(failure) => Err(Error::failed(format!(
            "The command was not run, because a user_bash handler of \"{}\" failed: {}",
            failure.source.name, failure.error
        ))),
    }
}

fn read(mut answer: Value) -> Result<BashExecutionMessage, Error> {
    let mut field = |name| answer.get_mut(name).map(Value::take);
    let (result, operations) = (field("result"), field("operations"));
    let Some(result) = result.filter(|_| operations.is_none()) else {
        return Err(Error::invalid(
            "its answer has to be nothing or {result: …}; running the command elsewhere is not \
             possible in this version",
        ));
    };
    let given: Given = serde_json::from_value(result)
        .map_err(|error| Error::invalid(format!("its result cannot be used: {error}")))?;
    Ok(BashExecutionMessage {
        output: given.output,
        exit_code: given.exit_code.filter(|_| !given.cancelled),
        cancelled: given.cancelled,
        truncated: given.truncated,
        full_output_path: given.full_output_path,
        ..BashExecutionMessage::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_result_is_an_answer() {
        // extensions §3.5, §9.17
        let whole =
            json!({"output": "o", "exitCode": null, "cancelled": false, "truncated": false});
        assert_eq!(read(json!({ "result": whole })).unwrap().output, "o");
        let mut code = whole.clone();
        code["exitCode"] = json!(3);
        assert_eq!(read(json!({ "result": code })).unwrap().exit_code, Some(3));
        for key in ["output", "exitCode", "cancelled", "truncated"] {
            let mut part = whole.clone();
            part.as_object_mut().unwrap().remove(key);
            assert!(read(json!({ "result": part })).is_err(), "{key}");
        }
        for other in [
            json!({}),
            json!(true),
            json!([]),
            json!({"operations": {}}),
            json!({"operations": {}, "result": whole}),
            json!({"result": "done"}),
        ] {
            assert!(read(other.clone()).is_err(), "{other}");
        }
    }
}
