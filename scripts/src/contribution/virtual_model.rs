//! `register_virtual_model(#{provider, id, name, thinkingLevels, route: |request, ctx| …})`.

use std::sync::Arc;

use pliant_kernel::registry::Kind;
use pliant_sdk::Error;
use pliant_sdk::virtual_model::{Route, VirtualModelSpec};
use rhai::{Dynamic, Map};

use super::{Handler, Registration, Running, answer, function, spec, unsupported};
use crate::call::ScriptResult;
use crate::convert;
use crate::program::{Callback, Program};

struct VirtualModel {
    route: Callback,
}

/// Reads a virtual model's declaration; `name` is `provider/id`.
pub(crate) fn declare(
    program: &Program,
    name: &str,
    mut fields: Map,
) -> ScriptResult<Registration> {
    let route = function(program, &mut fields, "route", &["request", "ctx"])?;
    let (_, json) = spec::<VirtualModelSpec>(fields)?;
    Ok(Registration {
        kind: Kind::VirtualModel,
        name: name.to_owned(),
        spec: json,
        handler: Arc::new(VirtualModel { route }),
    })
}

impl Handler for VirtualModel {
    fn run(&self, op: &str, payload: &[u8], running: &Running<'_>) -> Result<Vec<u8>, Error> {
        if op != "route" {
            return Err(unsupported("virtual model", op));
        }
        let request = convert::from_json(payload)?;
        let said = running.run(&self.route, [request, running.ctx("", None)])?;
        let route = read(&said).map_err(|_| {
            let wanted = "\"provider/id\", a model, or a map with `model`, and `thinkingLevel` and \
                          `state` if wanted";
            running.wrong_answer("`route`", wanted, &said)
        })?;
        answer(&route)
    }
}

/// A name, a model, or a map that holds one of them in `model`.
fn read(said: &Dynamic) -> ScriptResult<Route> {
    if let Ok(name) = said.as_immutable_string_ref() {
        return Ok(Route::to(name.as_str()));
    }
    let is_model = said
        .as_map_ref()
        .is_ok_and(|map| map.contains_key("id") && !map.contains_key("model"));
    match is_model {
        true => convert::to_typed(&Map::from([("model".into(), said.clone())]).into()),
        false => convert::to_typed(said),
    }
}
