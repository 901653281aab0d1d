//! Arguments of a tool call against the tool's schema: lenient coercion first, then validation
//! (`kernel.md` §4.3). Pure values, no state but the compiled schema.

use std::sync::OnceLock;

use jsonschema::Validator;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::{Map, Number, Value, json};

/// Schemas nest at most this deep for coercion; deeper values are left to validation.
const MAX_DEPTH: usize = 64;

/// The schema of a tool's arguments, compiled on first use.
#[derive(Debug)]
pub struct ArgumentSchema {
    schema: Value,
    compiled: OnceLock<Result<Validator, String>>,
}

impl ArgumentSchema {
    /// Takes a JSON Schema (2020-12 or draft 7). References that name nothing reject only the values
    /// at their place (T10).
    #[must_use]
    pub fn new(mut schema: Value) -> Self {
        let root = schema.clone();
        close_dangling(&mut schema, &root, MAX_DEPTH);
        Self {
            schema,
            compiled: OnceLock::new(),
        }
    }

    /// Coerces and validates the arguments of one call.
    ///
    /// # Errors
    /// A text for the model: each problem with its path, then what was received (T12).
    pub fn check(&self, tool: &str, arguments: Value) -> Result<Map<String, Value>, String> {
        let coerced = coerce(&self.schema, &self.schema, arguments.clone());
        let validator = match self.compiled.get_or_init(|| compile(&self.schema)) {
            Ok(validator) => validator,
            Err(problem) => {
                return Err(format!(
                    "The schema of the tool \"{tool}\" cannot be used: {problem}"
                ));
            }
        };
        let problems: Vec<String> = validator
            .iter_errors(&coerced)
            .flat_map(|error| describe(&error))
            .collect();
        match coerced {
            Value::Object(map) if problems.is_empty() => Ok(map),
            _ => Err(rejection(tool, &problems, &arguments)),
        }
    }
}

fn compile(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .build(schema)
        .map_err(|error| error.to_string())
}

fn rejection(tool: &str, problems: &[String], received: &Value) -> String {
    let list = if problems.is_empty() {
        "  - root: expected object".to_owned()
    } else {
        problems.join("\n")
    };
    let received = serde_json::to_string_pretty(received).unwrap_or_default();
    format!("Validation failed for tool \"{tool}\":\n{list}\n\nReceived arguments:\n{received}")
}

fn describe(error: &jsonschema::ValidationError<'_>) -> Vec<String> {
    let path = dotted(&error.instance_path().to_string());
    let line = |path: &str, text: &str| {
        format!(
            "  - {}: {text}",
            if path.is_empty() { "root" } else { path }
        )
    };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let path = if path.is_empty() {
                name.to_owned()
            } else {
                format!("{path}.{name}")
            };
            vec![line(&path, "missing")]
        }
        ValidationErrorKind::Type { kind } => {
            let expected = match kind {
                TypeKind::Single(one) => one.to_string(),
                TypeKind::Multiple(set) => set
                    .iter()
                    .map(|t| t.to_string())
                    .collect::<Vec<_>>()
                    .join(" or "),
            };
            vec![line(
                &path,
                &format!("expected {expected}, got {}", type_name(error.instance())),
            )]
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => unexpected
            .iter()
            .map(|name| {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                line(&path, "unknown property")
            })
            .collect(),
        _ => vec![line(&path, &error.to_string())],
    }
}

/// `/edits/0/oldText` → `edits.0.oldText`.
fn dotted(pointer: &str) -> String {
    pointer
        .trim_start_matches('/')
        .replace('/', ".")
        .replace("~1", "/")
        .replace("~0", "~")
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Brings a value nearer to its schema without inventing anything; what cannot be coerced stays
/// (T11). `root` resolves local references.
#[must_use]
pub fn coerce(schema: &Value, root: &Value, value: Value) -> Value {
    coerce_at(schema, root, value, MAX_DEPTH)
}

fn coerce_at(schema: &Value, root: &Value, value: Value, depth: usize) -> Value {
    let Some(schema) = resolve(schema, root, depth) else {
        return value;
    };
    let Some(depth) = depth.checked_sub(1) else {
        return value;
    };
    let mut value = value;
    for union in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = schema.get(union) {
            value = coerce_union(branches, root, value, depth);
        }
    }
    if let Some(Value::Array(all)) = schema.get("allOf") {
        value = all
            .iter()
            .fold(value, |value, part| coerce_at(part, root, value, depth));
    }
    match to_type(schema, value) {
        Value::Object(map) => Value::Object(coerce_object(schema, root, map, depth)),
        Value::Array(items) => {
            let items = items.into_iter().enumerate();
            let coerced = items.map(|(at, item)| match item_schema(schema, at) {
                Some(inner) => coerce_at(inner, root, item, depth),
                None => item,
            });
            Value::Array(coerced.collect())
        }
        other => other,
    }
}

/// The schema of the item at a place: of a tuple, or of all items behind it.
fn item_schema(schema: &Value, at: usize) -> Option<&Value> {
    let items = schema.get("items");
    let tuple = schema
        .get("prefixItems")
        .or(items)
        .and_then(Value::as_array);
    match tuple.and_then(|tuple| tuple.get(at)) {
        Some(inner) => Some(inner),
        None => items
            .filter(|items| !items.is_array())
            .or_else(|| schema.get("additionalItems")),
    }
}

/// The first branch that the value passes as it is, else the first it passes once coerced.
fn coerce_union(branches: &[Value], root: &Value, value: Value, depth: usize) -> Value {
    let passes = |branch: &Value, value: &Value| {
        resolve(branch, root, depth).is_some_and(|schema| passes(schema, root, value))
    };
    if branches.iter().any(|branch| passes(branch, &value)) {
        return value;
    }
    for branch in branches {
        let coerced = coerce_at(branch, root, value.clone(), depth);
        if passes(branch, &coerced) {
            return coerced;
        }
    }
    value
}

/// Whether a part of a schema, taken for itself, lets the value pass. One that cannot be used lets
/// nothing pass.
fn passes(part: &Value, root: &Value, value: &Value) -> bool {
    let mut whole = json!({"allOf": [part]});
    for shared in ["$schema", "$defs", "definitions"] {
        if let Some(definitions) = root.get(shared) {
            whole[shared] = definitions.clone();
        }
    }
    compile(&whole).is_ok_and(|validator| validator.is_valid(value))
}

fn coerce_object(
    schema: &Value,
    root: &Value,
    map: Map<String, Value>,
    depth: usize,
) -> Map<String, Value> {
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.unwrap_or(&none);
    let others = schema.get("additionalProperties");
    let required = |name: &str| {
        let list = schema.get("required").and_then(Value::as_array);
        list.is_some_and(|names| names.iter().any(|required| required == name))
    };
    let mut coerced = Map::with_capacity(map.len());
    for (name, value) in map {
        match properties.get(&name) {
            Some(inner)
                if value.is_null() && !required(&name) && !allows_null(inner, root, depth) => {}
            Some(inner) => {
                let value = coerce_at(inner, root, value, depth);
                coerced.insert(name, value);
            }
            None => {
                let value = match others {
                    Some(inner) => coerce_at(inner, root, value, depth),
                    None => value,
                };
                coerced.insert(name, value);
            }
        }
    }
    coerced
}

fn allows_null(schema: &Value, root: &Value, depth: usize) -> bool {
    let Some(schema) = resolve(schema, root, depth) else {
        return true;
    };
    if types(schema).is_empty() {
        let branches = |key: &str| {
            schema
                .get(key)
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default()
        };
        let union: Vec<Value> = branches("anyOf")
            .into_iter()
            .chain(branches("oneOf"))
            .collect();
        let constrained = schema.get("enum").is_some() || schema.get("const").is_some();
        if !union.is_empty() {
            return depth > 0
                && union
                    .iter()
                    .any(|branch| allows_null(branch, root, depth - 1));
        }
        return !constrained;
    }
    types(schema).contains(&"null")
}

/// The types a schema names.
fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn to_type(schema: &Value, value: Value) -> Value {
    let types = types(schema);
    if types.is_empty() || types.iter().any(|wanted| is_of_type(&value, wanted)) {
        // JSON has one kind of number: `20.0` is the integer 20 for whoever asks for an integer.
        return if types == ["integer"] {
            integral(value)
        } else {
            value
        };
    }
    types
        .iter()
        .find_map(|wanted| convert(&value, wanted))
        .unwrap_or(value)
}

fn is_of_type(value: &Value, wanted: &str) -> bool {
    match wanted {
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        other => type_name(value) == other,
    }
}

fn convert(value: &Value, wanted: &str) -> Option<Value> {
    match (wanted, value) {
        ("number", Value::String(text)) => parse_number(text).map(integral),
        ("integer", Value::String(text)) => truncated(&parse_number(text)?),
        ("integer", Value::Number(_)) => truncated(value),
        ("boolean", Value::String(text)) => match text.trim() {
            "true" | "1" => Some(Value::Bool(true)),
            "false" | "0" => Some(Value::Bool(false)),
            _ => None,
        },
        ("boolean", Value::Number(number)) => match number.as_i64() {
            Some(0) => Some(Value::Bool(false)),
            Some(1) => Some(Value::Bool(true)),
            _ => None,
        },
        ("string", Value::Number(number)) => Some(Value::String(number.to_string())),
        ("string", Value::Bool(flag)) => Some(Value::String(flag.to_string())),
        ("string", Value::Null) => Some(Value::String("null".to_owned())),
        ("array", single) if !single.is_null() => Some(Value::Array(vec![single.clone()])),
        _ => None,
    }
}

fn parse_number(text: &str) -> Option<Value> {
    let text = text.trim();
    match serde_json::from_str::<Number>(text) {
        Ok(number) => Some(Value::Number(number)),
        Err(_) => text
            .parse::<f64>()
            .ok()
            .and_then(Number::from_f64)
            .map(Value::Number),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "saturating keeps an absurd number absurd"
)]
fn truncated(value: &Value) -> Option<Value> {
    match value.as_i64() {
        Some(_) => Some(value.clone()),
        None => value
            .as_f64()
            .map(|number| Value::from(number.trunc() as i64)),
    }
}

fn integral(value: Value) -> Value {
    match value.as_f64() {
        Some(number)
            if !value.is_i64()
                && !value.is_u64()
                && number.fract() == 0.0
                && number.abs() < 9e15 =>
        {
            truncated(&value).unwrap_or(value)
        }
        _ => value,
    }
}

/// Follows local references; `None` when one names nothing or goes round in circles.
fn resolve<'a>(mut schema: &'a Value, root: &'a Value, depth: usize) -> Option<&'a Value> {
    for _ in 0..=depth.min(16) {
        match schema.get("$ref").and_then(Value::as_str) {
            None => return Some(schema),
            Some(reference) => schema = root.pointer(reference.strip_prefix('#')?)?,
        }
    }
    None
}

/// Replaces references that name nothing by `false`, which rejects every value at that place.
fn close_dangling(schema: &mut Value, root: &Value, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    match schema {
        Value::Object(map) => {
            let dangling = map
                .get("$ref")
                .and_then(Value::as_str)
                .is_some_and(|reference| {
                    reference
                        .strip_prefix('#')
                        .is_none_or(|pointer| root.pointer(pointer).is_none())
                });
            if dangling {
                *schema = Value::Bool(false);
                return;
            }
            map.values_mut()
                .for_each(|inner| close_dangling(inner, root, depth));
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|inner| close_dangling(inner, root, depth)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: Value, arguments: Value) -> Result<Value, String> {
        ArgumentSchema::new(schema)
            .check("t", arguments)
            .map(Value::Object)
    }

    fn object(properties: Value, required: &[&str]) -> Value {
        json!({"type": "object", "properties": properties, "required": required})
    }

    #[test]
    fn scalars_are_coerced_as_pi_does() {
        // T11, both measured rows
        let schema = object(
            json!({"a": {"type": "string"}, "n": {"type": "number"}, "l": {"type": "array", "items": {"type": "string"}}}),
            &["a"],
        );
        assert_eq!(
            check(schema.clone(), json!({"a": 3, "n": "4", "l": "x"})),
            Ok(json!({"a": "3", "n": 4, "l": ["x"]}))
        );
        assert_eq!(
            check(schema, json!({"a": null, "n": null})),
            Ok(json!({"a": "null"}))
        );
    }

    #[test]
    fn integers_truncate_and_booleans_read_their_spellings() {
        let schema = object(
            json!({"i": {"type": "integer"}, "b": {"type": "boolean"}, "c": {"type": "boolean"}}),
            &[],
        );
        assert_eq!(
            check(schema.clone(), json!({"i": "3.5", "b": "true", "c": 0})),
            Ok(json!({"i": 3, "b": true, "c": false}))
        );
        assert_eq!(
            check(schema, json!({"i": 20.0})).unwrap()["i"].as_u64(),
            Some(20)
        );
    }

    #[test]
    fn a_union_takes_the_first_branch_that_passes() {
        let schema = object(
            json!({"v": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]}}),
            &[],
        );
        assert_eq!(
            check(schema.clone(), json!({"v": "7"})),
            Ok(json!({"v": 7}))
        );
        assert_eq!(
            check(schema, json!({"v": "seven"})),
            Ok(json!({"v": ["seven"]}))
        );
    }

    #[test]
    fn a_rejection_lists_paths_and_what_was_received() {
        // T12
        let schema = object(
            json!({"path": {"type": "string"}, "edits": {"type": "array", "items": object(json!({"n": {"type": "number"}}), &["n"])}}),
            &["path"],
        );
        let mut closed = schema.clone();
        closed["additionalProperties"] = json!(false);
        assert_eq!(
            check(closed, json!({"edits": [{"n": {}}, {}], "x": 1})).unwrap_err(),
            "Validation failed for tool \"t\":\n  - edits.0.n: expected number, got object\n  \
             - edits.1.n: missing\n  - x: unknown property\n  - path: missing\n\nReceived arguments:\n{\n  \"edits\": [\n    {\n      \"n\": {}\n    },\n    {}\n  ],\n  \"x\": 1\n}"
        );
    }

    #[test]
    fn a_dangling_reference_rejects_only_its_place() {
        // T10
        let schema = object(
            json!({"a": {"$ref": "#/nowhere"}, "b": {"$ref": "#/$defs/n"}}),
            &[],
        );
        let mut schema = schema;
        schema["$defs"] = json!({"n": {"type": "number"}});
        assert_eq!(
            check(schema.clone(), json!({"b": "2"})),
            Ok(json!({"b": 2}))
        );
        assert!(check(schema, json!({"a": 1})).is_err());
    }

    #[test]
    fn a_circular_schema_leaves_the_value_as_it_is() {
        let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
        assert_eq!(coerce(&schema, &schema, json!({"x": 1})), json!({"x": 1}));
    }

    #[test]
    fn what_stands_beside_a_union_counts_too() {
        // T11
        let mut schema = object(
            json!({"n": {"type": "number"}, "a": {"type": "string"}}),
            &[],
        );
        schema["anyOf"] = json!([{"required": ["n"]}, {"required": ["a"]}]);
        schema["allOf"] = json!([object(json!({"b": {"type": "boolean"}}), &[])]);
        assert_eq!(
            check(schema, json!({"n": "4", "b": "true"})),
            Ok(json!({"n": 4, "b": true}))
        );
    }

    #[test]
    fn other_properties_and_places_of_a_tuple_have_schemas_of_their_own() {
        // T11
        let schema = json!({"type": "object", "additionalProperties": {"type": "integer"}});
        assert_eq!(check(schema, json!({"x": "5"})), Ok(json!({"x": 5})));
        let tuple = json!({"type": "array", "prefixItems": [{"type": "number"}], "items": {"type": "boolean"}});
        let schema = object(json!({"t": tuple}), &[]);
        assert_eq!(
            check(schema, json!({"t": ["1", "true", 0]})),
            Ok(json!({"t": [1, true, false]}))
        );
    }

    #[test]
    fn a_branch_that_is_no_schema_lets_nothing_pass_and_harms_nobody() {
        // T10
        let branches = json!([{"type": 5}, {"$ref": "#/properties/nowhere"}, {"type": "integer"}]);
        let schema = json!({"anyOf": branches});
        assert_eq!(coerce(&schema, &schema, json!("7")), json!(7));
        let inner = object(json!({"x": {"$ref": "#/$defs/n"}}), &["x"]);
        let mut schema = object(json!({"v": {"anyOf": [{"type": "string"}, inner]}}), &[]);
        schema["$defs"] = json!({"n": {"type": "number"}});
        assert_eq!(
            check(schema, json!({"v": {"x": "1"}})),
            Ok(json!({"v": {"x": 1}}))
        );
        let broken =
            ArgumentSchema::new(json!({"type": "object", "properties": {"a": {"type": 5}}}));
        assert!(
            broken
                .check("t", json!({}))
                .unwrap_err()
                .contains("cannot be used")
        );
    }
}
