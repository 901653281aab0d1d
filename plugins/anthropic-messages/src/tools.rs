//! Tool declarations (`providers.md` §3.1, §3.8).

use pliant_sdk::message::Tool;
use pliant_sdk::wire::tools::{Strictness, strict_parameters};
use serde_json::{Map, Value, json};

/// How tools are declared to one service.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Style {
    pub(crate) eager_input_streaming: bool,
    pub(crate) strict: bool,
    /// A service said that it has too many strict tools: those that need not be are not.
    pub(crate) only_required_strict: bool,
}

/// A declaration.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) value: Value,
    /// It is strict, and need not be.
    pub(crate) prefers_strict: bool,
}

/// One entry of the body's `tools`.
///
/// # Errors
/// A tool that requires a strict schema and cannot have one.
pub(crate) fn declare(tool: &Tool, style: Style) -> Result<Declared, String> {
    let strictness = Strictness::of(tool);
    let prefers = strictness == Strictness::Preferred;
    let strict = match style.strict && !(prefers && style.only_required_strict) {
        true => strict_parameters(tool, is_refused)?,
        false => None,
    };
    let mut value = json!({"name": tool.name, "description": tool.description});
    if style.eager_input_streaming {
        value["eager_input_streaming"] = json!(true);
    }
    let prefers_strict = prefers && strict.is_some();
    value["input_schema"] = match strict {
        Some(Value::Object(mut schema)) => {
            value["strict"] = json!(true);
            schema.extend(object_schema(&Value::Object(schema.clone())));
            Value::Object(schema)
        }
        _ => Value::Object(object_schema(&tool.parameters)),
    };
    Ok(Declared {
        value,
        prefers_strict,
    })
}

/// The parameters as a schema of an object. Services refuse the whole request for `anyOf` and its
/// like at the root.
fn object_schema(parameters: &Value) -> Map<String, Value> {
    let field = |name| parameters.get(name);
    let mut schema = Map::new();
    let mut set = |name: &str, value: Value| drop(schema.insert(name.to_owned(), value));
    set("type", json!("object"));
    let properties = field("properties").filter(|value| value.is_object());
    set("properties", properties.cloned().unwrap_or(json!({})));
    let required = field("required").filter(|value| is_list_of_words(value));
    set("required", required.cloned().unwrap_or(json!([])));
    let kept = [
        ("additionalProperties", true),
        ("$defs", false),
        ("definitions", false),
    ];
    for (name, may_be_bool) in kept {
        let is_schema = |value: &&Value| value.is_object() || (may_be_bool && value.is_boolean());
        if let Some(value) = field(name).filter(is_schema) {
            set(name, value.clone());
        }
    }
    schema
}

fn is_list_of_words(value: &Value) -> bool {
    let list = value.as_array();
    list.is_some_and(|list| list.iter().all(Value::is_string))
}

/// Keywords that make a service refuse a strict tool, beyond those that all refuse.
fn is_refused(keyword: &str, value: &Value) -> bool {
    const FORMATS: [&str; 10] = [
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "uri",
        "ipv4",
        "ipv6",
        "uuid",
    ];
    match keyword {
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf"
        | "maxItems" | "uniqueItems" | "minContains" | "maxContains" | "minProperties"
        | "maxProperties" => true,
        "minItems" => !matches!(value.as_u64(), Some(0 | 1)),
        "format" => !value
            .as_str()
            .is_some_and(|format| FORMATS.contains(&format)),
        _ => false,
    }
}
