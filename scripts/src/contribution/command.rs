//! `register_command("name", #{description, run: |args, ctx| …, complete: |prefix| […]})`.

use std::sync::Arc;

use pliant_kernel::registry::Kind;
use pliant_sdk::Error;
use pliant_sdk::command::{CommandSpec, Completion};
use rhai::{Dynamic, Map};

use super::{
    Handler, Registration, Running, answer, function, optional_function, spec, unsupported,
};
use crate::call::{ScriptResult, fail};
use crate::convert;
use crate::program::{Callback, Program};

struct Command {
    run: Callback,
    complete: Option<Callback>,
}

/// Reads a command's declaration.
pub(crate) fn declare(
    program: &Program,
    name: &str,
    mut fields: Map,
) -> ScriptResult<Registration> {
    if name.is_empty() || name.contains(char::is_whitespace) || name.starts_with('/') {
        return Err(fail(format!(
            "\"{name}\" cannot be a command's name: one word, without the slash"
        )));
    }
    let command = Command {
        run: function(program, &mut fields, "run", &["args", "ctx"])?,
        complete: optional_function(program, &mut fields, "complete", &["prefix"])?,
    };
    let (_, json) = spec::<CommandSpec>(fields)?;
    Ok(Registration {
        kind: Kind::Command,
        name: name.to_owned(),
        spec: json,
        handler: Arc::new(command),
    })
}

impl Handler for Command {
    fn run(&self, op: &str, payload: &[u8], running: &Running<'_>) -> Result<Vec<u8>, Error> {
        let argument = convert::from_json(payload)?;
        match op {
            "run" => {
                let ctx = running.ctx("", None);
                // A command shows what it has to say; its value means nothing.
                let _ = running.run(&self.run, [argument, ctx])?;
                Ok(b"null".to_vec())
            }
            "complete" => match &self.complete {
                Some(complete) => {
                    let found = running.run(complete, [argument])?;
                    answer(&completions("`complete`", &found, running)?)
                }
                None => Ok(b"[]".to_vec()),
            },
            _ => Err(unsupported("command", op)),
        }
    }
}

/// A list of texts and of maps with `value`; nothing is an empty list.
pub(super) fn completions(
    who: &str,
    found: &Dynamic,
    running: &Running<'_>,
) -> Result<Vec<Completion>, Error> {
    if found.is_unit() {
        return Ok(Vec::new());
    }
    let list = found
        .as_array_ref()
        .map_err(|_| running.wrong_answer(who, "a list of texts or of maps with `value`", found))?;
    list.iter()
        .map(|entry| one_completion(entry).map_err(|error| running.error(error)))
        .collect()
}

fn one_completion(entry: &Dynamic) -> ScriptResult<Completion> {
    let mut completion: Completion = match entry.as_immutable_string_ref() {
        Ok(text) => Completion {
            value: text.to_string(),
            ..Completion::default()
        },
        Err(_) => convert::to_typed(entry)?,
    };
    if completion.label.is_empty() {
        completion.label.clone_from(&completion.value);
    }
    Ok(completion)
}
