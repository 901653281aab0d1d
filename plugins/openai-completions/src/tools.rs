//! Tool declarations, with constrained sampling where the service has it (`providers.md` §3.8).

use std::collections::BTreeMap;

use pliant_sdk::history;
use pliant_sdk::message::Tool;
use serde_json::{Map, Value, json};

use crate::quirks::Quirks;

/// Grammar tools: name → the one property that the model's text becomes.
pub(crate) type Grammars = BTreeMap<String, String>;

/// Whether services take the tool's name. They refuse the whole request for one they do not take.
pub(crate) fn is_declarable(tool: &Tool) -> bool {
    history::tool_name(&tool.name) == tool.name
}

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
    let strict = strict_parameters(tool, quirks)?;
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

fn strict_parameters(tool: &Tool, quirks: &Quirks) -> Result<Option<Value>, String> {
    let constraint = tool.constrained_sampling.as_ref();
    let field = |name| constraint.and_then(|constraint| constraint.get(name)?.as_str());
    if !quirks.strict_tools || field("type") != Some("json_schema") {
        return Ok(None);
    }
    match strict_schema(&tool.parameters) {
        Ok(schema) => Ok(Some(schema)),
        Err(_) if field("strict") != Some("require") => Ok(None),
        Err(reason) => Err(format!(
            "The tool \"{}\" requires a strict schema, but its parameters cannot be one: {reason}",
            tool.name
        )),
    }
}

const REFUSED: &[&str] = &[
    "$ref",
    "$defs",
    "definitions",
    "allOf",
    "oneOf",
    "patternProperties",
    "dependentSchemas",
    "dependentRequired",
    "dependencies",
    "unevaluatedProperties",
    "propertyNames",
    "contains",
    "prefixItems",
    "not",
    "if",
    "then",
    "else",
];

/// The same schema in the strict subset: objects are closed, every property is required, and an
/// optional one may be null instead.
fn strict_schema(schema: &Value) -> Result<Value, String> {
    let node = schema.as_object().ok_or("a schema is not an object")?;
    if let Some(keyword) = REFUSED.iter().find(|keyword| node.contains_key(**keyword)) {
        return Err(format!("it uses {keyword}"));
    }
    if let Some(choices) = node.get("anyOf") {
        return strict_union(node, choices);
    }
    match node.get("type") {
        Some(Value::String(kind)) if kind == "object" => strict_object(node),
        Some(Value::String(kind)) if kind == "array" => strict_array(node),
        Some(Value::String(_)) => Ok(schema.clone()),
        Some(Value::Array(kinds)) if !kinds.iter().any(is_container) => Ok(schema.clone()),
        Some(_) => Err("it has a union of objects or arrays".to_owned()),
        None => Err("a schema has no type".to_owned()),
    }
}

fn is_container(kind: &Value) -> bool {
    matches!(kind.as_str(), Some("object" | "array"))
}

fn strict_union(node: &Map<String, Value>, choices: &Value) -> Result<Value, String> {
    let choices = choices.as_array().ok_or("anyOf is not a list")?;
    let real = choices
        .iter()
        .filter(|choice| choice.get("type") != Some(&json!("null")));
    let has_container = |choice: &Value| choice.get("type").is_some_and(is_container);
    if real.clone().count() > 1 && real.clone().any(has_container) {
        return Err("it has a union of objects or arrays".to_owned());
    }
    let strict: Result<Vec<Value>, String> = choices.iter().map(strict_schema).collect();
    let mut node = node.clone();
    node.insert("anyOf".to_owned(), Value::Array(strict?));
    Ok(Value::Object(node))
}

fn strict_array(node: &Map<String, Value>) -> Result<Value, String> {
    let items = node.get("items").ok_or("an array has no item schema")?;
    let mut node = node.clone();
    node.insert("items".to_owned(), strict_schema(items)?);
    Ok(Value::Object(node))
}

fn strict_object(node: &Map<String, Value>) -> Result<Value, String> {
    if !matches!(
        node.get("additionalProperties"),
        None | Some(Value::Bool(false))
    ) {
        return Err("an object is open".to_owned());
    }
    let properties = node.get("properties").and_then(Value::as_object);
    let properties = properties.ok_or("an object is open")?;
    let required = node.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
    let mut strict = Map::new();
    for (name, property) in properties {
        let schema = strict_schema(property)?;
        let schema = match is_required(name) || allows_null(&schema) {
            true => schema,
            false => json!({"anyOf": [schema, {"type": "null"}]}),
        };
        strict.insert(name.clone(), schema);
    }
    let mut node = node.clone();
    let names = strict.keys().cloned().collect::<Vec<_>>();
    node.insert("required".to_owned(), json!(names));
    node.insert("properties".to_owned(), Value::Object(strict));
    node.insert("additionalProperties".to_owned(), json!(false));
    Ok(Value::Object(node))
}

fn allows_null(schema: &Value) -> bool {
    match (schema.get("type"), schema.get("anyOf")) {
        (Some(Value::String(kind)), _) => kind == "null",
        (Some(Value::Array(kinds)), _) => kinds.iter().any(|kind| kind == "null"),
        (_, Some(Value::Array(choices))) => choices.iter().any(allows_null),
        _ => false,
    }
}
