//! `ctx.ui`: notices and dialogs. Where there is nobody to ask (print mode), a notice does nothing,
//! `confirm` is false, and `select` and `input` answer `()`.

use std::sync::Arc;

use pliant_sdk::Error;
use pliant_sdk::error::code;
use rhai::{Array, Dynamic, Engine, Map};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::{Call, ScriptResult, fail, throw};
use crate::convert;

/// The dialogs of one call.
#[derive(Clone)]
pub(crate) struct Ui {
    call: Arc<Call>,
}

/// The last argument of dialogs, `#{timeout}` in milliseconds.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Options {
    timeout: Option<u64>,
}

impl Ui {
    pub(super) fn new(call: Arc<Call>) -> Self {
        Self { call }
    }

    fn notify(&self, message: &str, level: &str) -> ScriptResult<()> {
        // Scripts say what pi says; the service has the log's levels.
        let level = match level {
            "info" | "error" => level,
            "warning" | "warn" => "warn",
            other => {
                return Err(fail(format!(
                    "notify has no level \"{other}\"; it takes info, warning, error"
                )));
            }
        };
        let payload = json!({"message": message, "level": level});
        self.call.ensure_open()?;
        let sent = self.call.host().call::<Value>("ui.notify", &payload);
        available(self.call.wait_for(sent)?).map(drop)
    }

    /// Asks, and answers null where nobody can be asked or the dialog was closed.
    fn ask(&self, service: &str, mut question: Value, options: Map) -> ScriptResult<Value> {
        let Options { timeout } = super::options("a dialog", options, &["timeout"])?;
        if let Some(timeout_ms) = timeout {
            question["timeoutMs"] = timeout_ms.into();
        }
        let asked = self.call.host().call::<Value>(service, &question);
        available(self.call.wait_for_user(asked)?)
    }

    fn confirm(&self, title: &str, message: &str, options: Map) -> ScriptResult<bool> {
        let question = json!({"title": title, "message": message});
        Ok(self.ask("ui.confirm", question, options)? == Value::Bool(true))
    }

    fn select(&self, title: &str, choices: Array, options: Map) -> ScriptResult<Dynamic> {
        let choices: Vec<String> = choices.iter().map(convert::display).collect();
        let question = json!({"title": title, "options": choices});
        convert::to_dynamic(self.ask("ui.select", question, options)?)
    }

    fn input(&self, title: &str, placeholder: &str, options: Map) -> ScriptResult<Dynamic> {
        let question = json!({"title": title, "placeholder": placeholder});
        convert::to_dynamic(self.ask("ui.input", question, options)?)
    }
}

/// A host without dialogs is an answer, not a failure.
fn available(answer: Result<Value, Error>) -> ScriptResult<Value> {
    match answer {
        Err(error) if error.is(code::UNAVAILABLE) || error.is(code::UNSUPPORTED) => Ok(Value::Null),
        Err(error) => Err(throw(&error)),
        Ok(value) => Ok(value),
    }
}

pub(super) fn install(engine: &mut Engine) {
    engine.register_type_with_name::<Ui>("Ui");
    engine.register_fn("notify", |ui: &mut Ui, message: &str| {
        ui.notify(message, "info")
    });
    engine.register_fn("notify", |ui: &mut Ui, message: &str, level: &str| {
        ui.notify(message, level)
    });
    engine.register_fn("confirm", |ui: &mut Ui, title: &str, message: &str| {
        ui.confirm(title, message, Map::new())
    });
    engine.register_fn(
        "confirm",
        |ui: &mut Ui, title: &str, message: &str, options: Map| ui.confirm(title, message, options),
    );
    engine.register_fn("select", |ui: &mut Ui, title: &str, choices: Array| {
        ui.select(title, choices, Map::new())
    });
    engine.register_fn(
        "select",
        |ui: &mut Ui, title: &str, choices: Array, options: Map| ui.select(title, choices, options),
    );
    engine.register_fn("input", |ui: &mut Ui, title: &str| {
        ui.input(title, "", Map::new())
    });
    engine.register_fn("input", |ui: &mut Ui, title: &str, placeholder: &str| {
        ui.input(title, placeholder, Map::new())
    });
    engine.register_fn(
        "input",
        |ui: &mut Ui, title: &str, placeholder: &str, options: Map| {
            ui.input(title, placeholder, options)
        },
    );
}
