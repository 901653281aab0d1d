//! `json_parse(text)`, `json_stringify(value)` and, for people, `json_pretty(value)`.

use pliant_sdk::Error;
use pliant_sdk::error::code;
use rhai::{Dynamic, Engine};

use crate::call::{ScriptResult, fail, throw};
use crate::convert::{self, Json};

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("json_parse", |text: &str| {
        convert::from_json(text.as_bytes())
            .map_err(|error| throw(&Error::new(code::FAILED, format!("json_parse: {error}"))))
    });
    engine.register_fn("json_stringify", |value: Dynamic| {
        written("json_stringify", serde_json::to_string(&Json::new(&value)))
    });
    engine.register_fn("json_pretty", |value: Dynamic| {
        written(
            "json_pretty",
            serde_json::to_string_pretty(&Json::new(&value)),
        )
    });
}

fn written(function: &str, json: serde_json::Result<String>) -> ScriptResult<String> {
    json.map_err(|error| fail(format!("{function}: {error}")))
}
