//! Tool declarations: names, and the strict subset of JSON Schema (`providers.md` §3.8).

use serde_json::{Map, Value, json};

use crate::history;
use crate::message::Tool;

/// A keyword of a schema, with its value, that a service refuses beyond those that all do.
pub type Refuses = fn(&str, &Value) -> bool;

/// Whether services take the tool's name. They refuse the whole request for one they do not take.
#[must_use]
pub fn is_declarable(tool: &Tool) -> bool {
    history::tool_name(&tool.name) == tool.name
}

/// How a tool wants its arguments to be held to its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// Not at all, or by a grammar.
    None,
    /// Where the service can.
    Preferred,
    /// Always.
    Required,
}

impl Strictness {
    /// What the tool says.
    #[must_use]
    pub fn of(tool: &Tool) -> Self {
        let constraint = tool.constrained_sampling.as_ref();
        let field = |name| constraint.and_then(|constraint| constraint.get(name)?.as_str());
        match (field("type"), field("strict")) {
            (Some("json_schema"), Some("require")) => Self::Required,
            (Some("json_schema"), _) => Self::Preferred,
            _ => Self::None,
        }
    }
}

/// The tool's parameters in the strict subset, if it wants that and they can be.
///
/// # Errors
/// A sentence for a tool that requires a strict schema and cannot have one.
pub fn strict_parameters(tool: &Tool, refuses: Refuses) -> Result<Option<Value>, String> {
    let strictness = Strictness::of(tool);
    if strictness == Strictness::None {
        return Ok(None);
    }
    match (strict_schema(&tool.parameters, refuses), strictness) {
        (Ok(schema), _) => Ok(Some(schema)),
        (Err(reason), Strictness::Required) => Err(format!(
            "The tool \"{}\" requires a strict schema, but its parameters cannot be one: {reason}",
            tool.name
        )),
        (Err(_), _) => Ok(None),
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
fn strict_schema(schema: &Value, refuses: Refuses) -> Result<Value, String> {
    let node = schema.as_object().ok_or("a schema is not an object")?;
    if let Some(keyword) = REFUSED.iter().find(|keyword| node.contains_key(**keyword)) {
        return Err(format!("it uses {keyword}"));
    }
    if let Some((keyword, _)) = node.iter().find(|(keyword, value)| refuses(keyword, value)) {
        return Err(format!("it uses {keyword}"));
    }
    if let Some(choices) = node.get("anyOf") {
        return strict_union(node, choices, refuses);
    }
    match node.get("type") {
        Some(Value::String(kind)) if kind == "object" => strict_object(node, refuses),
        Some(Value::String(kind)) if kind == "array" => strict_array(node, refuses),
        Some(Value::String(_)) => Ok(schema.clone()),
        Some(Value::Array(kinds)) if !kinds.iter().any(is_container) => Ok(schema.clone()),
        Some(_) => Err("it has a union of objects or arrays".to_owned()),
        None => Err("a schema has no type".to_owned()),
    }
}

fn is_container(kind: &Value) -> bool {
    matches!(kind.as_str(), Some("object" | "array"))
}

fn strict_union(
    node: &Map<String, Value>,
    choices: &Value,
    refuses: Refuses,
) -> Result<Value, String> {
    let choices = choices.as_array().ok_or("anyOf is not a list")?;
    let real = choices
        .iter()
        .filter(|choice| choice.get("type") != Some(&json!("null")));
    let has_container = |choice: &Value| choice.get("type").is_some_and(is_container);
    if real.clone().count() > 1 && real.clone().any(has_container) {
        return Err("it has a union of objects or arrays".to_owned());
    }
    let strict: Result<Vec<Value>, String> = choices
        .iter()
        .map(|choice| strict_schema(choice, refuses))
        .collect();
    let mut node = node.clone();
    node.insert("anyOf".to_owned(), Value::Array(strict?));
    Ok(Value::Object(node))
}

fn strict_array(node: &Map<String, Value>, refuses: Refuses) -> Result<Value, String> {
    let items = node.get("items").ok_or("an array has no item schema")?;
    let mut node = node.clone();
    node.insert("items".to_owned(), strict_schema(items, refuses)?);
    Ok(Value::Object(node))
}

fn strict_object(node: &Map<String, Value>, refuses: Refuses) -> Result<Value, String> {
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
        let schema = strict_schema(property, refuses)?;
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
