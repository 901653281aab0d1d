//! `register_provider("name", #{label, models, env, keyless, stream: |request, out, ctx| …})`.

use std::sync::Arc;

use pliant_kernel::registry::Kind;
use pliant_sdk::Error;
use pliant_sdk::model::Model;
use pliant_sdk::provider::{Conversations, ProviderSpec, StreamPayload};
use rhai::{Dynamic, Map};

use super::{
    Handler, Registration, Running, answer, function, optional_function, spec, unsupported,
};
use crate::api::{Out, Request};
use crate::call::{ScriptResult, fail};
use crate::convert;
use crate::program::{Callback, Program};

/// What models of a provider that streams by itself carry as their wire.
const API: &str = "script";

struct Provider {
    spec: ProviderSpec,
    models: Option<Callback>,
    stream: Option<Callback>,
    conversations: Conversations,
}

/// Reads a provider's declaration.
pub(crate) fn declare(
    program: &Program,
    name: &str,
    mut fields: Map,
) -> ScriptResult<Registration> {
    if name.is_empty() || name.contains(['/', ' ']) {
        return Err(fail(format!(
            "\"{name}\" cannot be a provider's name: one word without a slash"
        )));
    }
    let stream = optional_function(program, &mut fields, "stream", &["request", "out", "ctx"])?;
    let asked = fields.get("models").is_some_and(Dynamic::is_fnptr);
    let models = match asked {
        true => Some(function(program, &mut fields, "models", &[])?),
        false => None,
    };
    let listed = fields.remove("models").unwrap_or_default();
    let (mut declared, _) = spec::<ProviderSpec>(fields)?;
    declared.streams = stream.is_some();
    if declared.label.is_empty() {
        name.clone_into(&mut declared.label);
    }
    if declared.streams && declared.api.is_empty() {
        API.clone_into(&mut declared.api);
    }
    if declared.api.is_empty() {
        return Err(fail(
            "a provider needs a `stream` function, or the name of a wire in `api`, such as \
             \"openai-completions\"",
        ));
    }
    declared.models = read_models(&listed, &declared)?;
    let json = serde_json::to_value(&declared).map_err(|error| fail(error.to_string()))?;
    Ok(Registration {
        kind: Kind::Provider,
        name: name.to_owned(),
        spec: json,
        handler: Arc::new(Provider {
            spec: declared,
            models,
            stream,
            conversations: Conversations::default(),
        }),
    })
}

/// A list of ids and of maps with `id`. What a model leaves out it takes from its provider.
fn read_models(list: &Dynamic, provider: &ProviderSpec) -> ScriptResult<Vec<Model>> {
    if list.is_unit() {
        return Ok(Vec::new());
    }
    let list = list.as_array_ref().map_err(|kind| {
        fail(format!(
            "`models` has to be a list or a function, not a {kind}"
        ))
    })?;
    list.iter()
        .map(|entry| read_model(entry, provider))
        .collect()
}

fn read_model(entry: &Dynamic, provider: &ProviderSpec) -> ScriptResult<Model> {
    let mut model: Model = match entry.as_immutable_string_ref() {
        Ok(id) => Model {
            id: id.to_string(),
            ..Model::default()
        },
        Err(_) => convert::to_typed(entry)?,
    };
    if model.id.is_empty() {
        return Err(fail("a model needs an `id`"));
    }
    let inherit = |own: &mut String, from: &str| {
        if own.is_empty() {
            from.clone_into(own);
        }
    };
    inherit(&mut model.name, &model.id.clone());
    inherit(&mut model.api, &provider.api);
    inherit(&mut model.base_url, &provider.base_url);
    model.provider.clone_from(&provider.name);
    Ok(model)
}

impl Handler for Provider {
    fn run(&self, op: &str, payload: &[u8], running: &Running<'_>) -> Result<Vec<u8>, Error> {
        match op {
            "models" => answer(&self.models(running)?),
            "stream" => self.stream(payload, running),
            _ => Err(unsupported("provider", op)),
        }
    }
}

impl Provider {
    fn models(&self, running: &Running<'_>) -> Result<Vec<Model>, Error> {
        let Some(models) = &self.models else {
            return Ok(self.spec.models.clone());
        };
        let list = running.run(models, [])?;
        read_models(&list, &self.spec).map_err(|error| running.error(error))
    }

    fn stream(&self, payload: &[u8], running: &Running<'_>) -> Result<Vec<u8>, Error> {
        let Some(stream) = &self.stream else {
            return Err(unsupported("provider", "stream"));
        };
        let payload: StreamPayload = serde_json::from_slice(payload)?;
        let request = self.conversations.request(payload)?;
        let out = Out::new(Arc::clone(running.call()), &request);
        let arguments = [
            Dynamic::from(Request::new(request)),
            Dynamic::from(out.clone()),
            running.ctx("", None),
        ];
        // The answer is what was written to `out`, whatever the closure's last value is.
        let _ = running.run(stream, arguments)?;
        answer(&out.into_message().map_err(|error| running.error(error))?)
    }
}
