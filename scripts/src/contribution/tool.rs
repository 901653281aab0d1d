//! `register_tool(#{name, description, parameters, execute: |args, ctx| …})`.

use std::sync::Arc;

use pliant_kernel::registry::Kind;
use pliant_sdk::Error;
use pliant_sdk::message::Content;
use pliant_sdk::tool::{ToolExecute, ToolResult, ToolSpec};
use rhai::{Dynamic, Map};
use serde_json::{Value, json};

use super::renderer::render_tool;
use super::{
    Handler, Registration, Running, answer, function, optional_function, spec, unsupported,
};
use crate::call::{ScriptResult, fail};
use crate::convert;
use crate::error::Thrown;
use crate::program::{Callback, Program};

/// The longest name that all services take.
const MAX_NAME: usize = 64;

struct Tool {
    execute: Callback,
    prepare: Option<Callback>,
    render_call: Option<Callback>,
    render_result: Option<Callback>,
}

/// Reads a tool's declaration.
pub(crate) fn declare(
    program: &Program,
    name: &str,
    mut fields: Map,
) -> ScriptResult<Registration> {
    check_name(name)?;
    let tool = Tool {
        execute: function(program, &mut fields, "execute", &["args", "ctx"])?,
        prepare: optional_function(program, &mut fields, "prepare", &["args"])?,
        render_call: optional_function(program, &mut fields, "renderCall", &["args", "options"])?,
        render_result: optional_function(
            program,
            &mut fields,
            "renderResult",
            &["result", "options"],
        )?,
    };
    let renders = tool.render_call.is_some() || tool.render_result.is_some();
    fields.insert("renders".into(), renders.into());
    fields.insert("prepares".into(), tool.prepare.is_some().into());
    let label = fields.entry("label".into()).or_default();
    if label.is_unit() {
        *label = name.into();
    }
    let schema = fields.entry("parameters".into()).or_default();
    if schema.is_unit() {
        *schema = convert::to_dynamic(json!({"type": "object", "properties": {}}))?;
    }
    let (declared, json) = spec::<ToolSpec>(fields)?;
    if declared.description.is_empty() {
        return Err(fail(
            "`description` is missing: say what the tool does, for the model",
        ));
    }
    if declared.parameters.get("type").and_then(Value::as_str) != Some("object") {
        return Err(fail(
            "`parameters` has to be a JSON Schema with type \"object\"",
        ));
    }
    Ok(Registration {
        kind: Kind::Tool,
        name: name.to_owned(),
        spec: json,
        handler: Arc::new(tool),
    })
}

fn check_name(name: &str) -> ScriptResult<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..=MAX_NAME).contains(&name.len()) && name.chars().all(fits) {
        return Ok(());
    }
    Err(fail(format!(
        "\"{name}\" cannot be a tool's name: 1 to {MAX_NAME} of the characters A-Z a-z 0-9 _ -"
    )))
}

impl Handler for Tool {
    fn run(&self, op: &str, payload: &[u8], running: &Running<'_>) -> Result<Vec<u8>, Error> {
        match op {
            "execute" => self.execute(payload, running),
            "prepare" => self.prepare(payload, running),
            "render" => {
                let (call, result) = (self.render_call.as_ref(), self.render_result.as_ref());
                render_tool(call, result, payload, running)
            }
            _ => Err(unsupported("tool", op)),
        }
    }
}

impl Tool {
    fn execute(&self, payload: &[u8], running: &Running<'_>) -> Result<Vec<u8>, Error> {
        let ToolExecute {
            tool_call_id,
            input,
            scene,
        } = serde_json::from_slice(payload)?;
        let input = convert::to_dynamic(input).map_err(|error| running.error(error))?;
        let ctx = running.ctx(&tool_call_id, Some(&scene.cwd));
        match running.try_call(&self.execute, [input, ctx]) {
            Ok(value) => answer(&to_result(&value).map_err(|error| running.error(error))?),
            Err(failure) => match failure.thrown() {
                Some(thrown) => answer(&thrown_result(thrown)),
                None => Err(running.error(failure)),
            },
        }
    }

    fn prepare(&self, payload: &[u8], running: &Running<'_>) -> Result<Vec<u8>, Error> {
        let Some(prepare) = &self.prepare else {
            return Ok(payload.to_vec());
        };
        let arguments = convert::from_json(payload)?;
        running.json(&running.run(prepare, [arguments])?)
    }
}

/// What a closure answered, or shows in between, as a result: a text, a map with `content`, or any
/// value, which becomes JSON for the model and structured content for programs.
pub(crate) fn to_result(value: &Dynamic) -> ScriptResult<ToolResult> {
    if value.is_unit() {
        return Ok(ToolResult::text("(no output)"));
    }
    if let Ok(text) = value.as_immutable_string_ref() {
        return Ok(ToolResult::text(text.as_str()));
    }
    let full = value
        .as_map_ref()
        .is_ok_and(|map| map.contains_key("content"));
    if !full {
        let json: Value = convert::to_typed(value)?;
        return Ok(ToolResult::text(json.to_string()).with_structured(json));
    }
    let mut json: Value = convert::to_typed(value)?;
    if let Some(text) = json["content"].as_str().map(str::to_owned) {
        json["content"] = json!([Content::text(text)]);
    }
    serde_json::from_value(json).map_err(|error| fail(format!("the tool's result: {error}")))
}

/// `throw` is how a tool says that it failed; the model reads the message.
fn thrown_result(thrown: Thrown) -> ToolResult {
    ToolResult {
        details: thrown.details,
        ..ToolResult::error(thrown.message)
    }
}
