//! `register_flag("name", #{description, kind: "boolean" or "string", default_value})`.

use std::sync::Arc;

use pliant_kernel::registry::Kind;
use pliant_sdk::Error;
use pliant_sdk::flag::FlagSpec;
use rhai::Map;

use super::{Handler, Registration, Running, spec, unsupported};
use crate::call::{ScriptResult, fail};
use crate::program::Program;

struct Flag;

/// Reads a flag's declaration. `default` is a word of the language, so the fields have other names
/// than in JSON.
pub(crate) fn declare(_: &Program, name: &str, mut fields: Map) -> ScriptResult<Registration> {
    for (own, json) in [("kind", "type"), ("default_value", "default")] {
        if let Some(value) = fields.remove(own).filter(|value| !value.is_unit()) {
            fields.insert(json.into(), value);
        }
    }
    let (flag, json) = spec::<FlagSpec>(fields)?;
    flag.check().map_err(|error| fail(error.message))?;
    Ok(Registration {
        kind: Kind::Flag,
        name: name.to_owned(),
        spec: json,
        handler: Arc::new(Flag),
    })
}

impl Handler for Flag {
    fn run(&self, op: &str, _: &[u8], _: &Running<'_>) -> Result<Vec<u8>, Error> {
        Err(unsupported("flag", op))
    }
}
