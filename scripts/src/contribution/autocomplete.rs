//! `register_autocomplete(#{trigger: "#", suggest: |line, column, word| […]})`.

use std::sync::Arc;

use pliant_kernel::registry::Kind;
use pliant_sdk::Error;
use pliant_sdk::autocomplete::{AutocompleteSpec, Typed};
use rhai::{Dynamic, Map};

use super::command::completions;
use super::{Handler, Registration, Running, answer, function, spec, unsupported};
use crate::call::ScriptResult;
use crate::program::{Callback, Program};

struct Autocomplete {
    suggest: Callback,
}

/// Reads an autocompletion's declaration; it is named by its trigger.
pub(crate) fn declare(
    program: &Program,
    name: &str,
    mut fields: Map,
) -> ScriptResult<Registration> {
    let offered = ["line", "column", "word"];
    let suggest = function(program, &mut fields, "suggest", &offered)?;
    let (_, json) = spec::<AutocompleteSpec>(fields)?;
    Ok(Registration {
        kind: Kind::Autocomplete,
        name: name.to_owned(),
        spec: json,
        handler: Arc::new(Autocomplete { suggest }),
    })
}

impl Handler for Autocomplete {
    fn run(&self, op: &str, payload: &[u8], running: &Running<'_>) -> Result<Vec<u8>, Error> {
        if op != "suggest" {
            return Err(unsupported("autocomplete", op));
        }
        let Typed { line, column, word } = serde_json::from_slice(payload)?;
        let column = i64::try_from(column).unwrap_or(i64::MAX);
        let arguments = [line.into(), Dynamic::from_int(column), word.into()];
        let found = running.run(&self.suggest, arguments)?;
        answer(&completions("`suggest`", &found, running)?)
    }
}
