//! Tool declarations, with constrained sampling where the service has it (`providers.md` §3.8).

use std::collections::BTreeMap;

use pliant_sdk::message::Tool;
use pliant_sdk::wire::tools::strict_parameters;
use serde_json::{Value, json};

use crate::quirks::Quirks;

/// Grammar tools: name → the one property that the model's text becomes.
pub(crate) type Grammars = BTreeMap<String, String>;

/// One entry of the body's `tools`.
///
/// # Errors
/// A tool that requires a strict schema and cannot have one.
pub(crate) fn declare(tool: &Tool, quirks: &Quirks) -> Result<Value, String> {
    if let Some((grammar, _)) = grammar(tool, quirks) {
        return Ok(json!({"type": "custom", "custom": {
            "name": tool.name,
            "description": tool.description,
            "format": {"type": "grammar", "grammar": grammar},
        }}));
    }
    let strict = match quirks.strict_tools {
        true => strict_parameters(tool, |_, _| false)?,
        false => None,
    };
    let is_strict = strict.is_some();
    let mut function = json!({
        "name": tool.name,
        "description": tool.description,
        "parameters": strict.unwrap_or_else(|| object_schema(&tool.parameters)),
    });
    if quirks.strict_tools {
        function["strict"] = json!(is_strict);
    }
    Ok(json!({"type": "function", "function": function}))
}

/// The parameters as a schema of an object, which is all that services take.
fn object_schema(parameters: &Value) -> Value {
    match (parameters, parameters.get("type")) {
        (Value::Object(_), Some(kind)) if kind == "object" => parameters.clone(),
        (Value::Object(_), None) => {
            let mut parameters = parameters.clone();
            parameters["type"] = json!("object");
            parameters
        }
        _ => json!({"type": "object", "properties": {}}),
    }
}

/// The grammar tools among the declared ones.
pub(crate) fn grammars(tools: &[Tool], quirks: &Quirks) -> Grammars {
    tools
        .iter()
        .filter_map(|tool| Some((tool.name.clone(), grammar(tool, quirks)?.1)))
        .collect()
}

/// The grammar of a tool and its one property; Lark before regular expressions.
fn grammar(tool: &Tool, quirks: &Quirks) -> Option<(Value, String)> {
    let constraint = tool.constrained_sampling.as_ref()?;
    if !quirks.grammar_tools || constraint.get("type")?.as_str()? != "grammar" {
        return None;
    }
    let variants = constraint.get("variants")?;
    let syntaxes = [("lark", "openai_lark"), ("regex", "openai_regex")];
    let grammar = syntaxes.into_iter().find_map(|(syntax, name)| {
        let definition = variants.get(name)?.as_str()?;
        Some(json!({"syntax": syntax, "definition": definition}))
    })?;
    Some((grammar, only_property(&tool.parameters)?))
}

fn only_property(schema: &Value) -> Option<String> {
    let [only] = schema.get("required")?.as_array()?.as_slice() else {
        return None;
    };
    let name = only.as_str()?;
    let is_object = schema.get("type")?.as_str()? == "object";
    let is_text = schema.get("properties")?.get(name)?.get("type")?.as_str()? == "string";
    (is_object && is_text).then(|| name.to_owned())
}
