//! `register_shortcut("ctrl+g", #{description, run: |ctx| …})`.

use std::sync::Arc;

use pliant_kernel::registry::Kind;
use pliant_sdk::Error;
use pliant_sdk::shortcut::{ShortcutSpec, normal};
use rhai::Map;

use super::{Handler, Registration, Running, function, spec, unsupported};
use crate::call::{ScriptResult, fail};
use crate::program::{Callback, Program};

struct Shortcut {
    run: Callback,
}

/// Reads a shortcut's declaration. Two ways of writing a key are one shortcut.
pub(crate) fn declare(program: &Program, key: &str, mut fields: Map) -> ScriptResult<Registration> {
    let key = normal(key).map_err(|error| fail(error.message))?;
    let run = function(program, &mut fields, "run", &["ctx"])?;
    fields.insert("name".into(), key.clone().into());
    let (_, json) = spec::<ShortcutSpec>(fields)?;
    Ok(Registration {
        kind: Kind::Shortcut,
        name: key,
        spec: json,
        handler: Arc::new(Shortcut { run }),
    })
}

impl Handler for Shortcut {
    fn run(&self, op: &str, _: &[u8], running: &Running<'_>) -> Result<Vec<u8>, Error> {
        if op != "press" {
            return Err(unsupported("shortcut", op));
        }
        let _ = running.run(&self.run, [running.ctx("", None)])?;
        Ok(b"null".to_vec())
    }
}
