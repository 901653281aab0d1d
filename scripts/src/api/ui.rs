//! `ctx.ui`: displays and dialogs. Where there is nobody to ask (print mode), a display does nothing,
//! `confirm` is false, and `select`, `input` and `editor` answer `()`.

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

/// The last argument of `set_widget`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WidgetOptions {
    placement: Option<String>,
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
        let level = match level {
            "info" | "error" | "warning" => level,
            "warn" => "warning",
            other => {
                return Err(fail(format!(
                    "notify has no level \"{other}\"; it takes info, warning, error"
                )));
            }
        };
        self.show(&json!({"method": "notify", "message": message, "notifyType": level}))
    }

    fn show(&self, display: &Value) -> ScriptResult<()> {
        self.call.ensure_open()?;
        let sent = self.call.host().call::<Value>("ui.show", display);
        available(self.call.wait_for(sent)?).map(drop)
    }

    /// `()` takes the text away.
    fn set_status(&self, key: &str, text: &Dynamic) -> ScriptResult<()> {
        let mut display = json!({"method": "setStatus", "statusKey": key});
        if !text.is_unit() {
            display["statusText"] = convert::display(text).into();
        }
        self.show(&display)
    }

    /// `()` takes the lines away.
    fn set_widget(&self, key: &str, lines: &Dynamic, options: Map) -> ScriptResult<()> {
        let WidgetOptions { placement } = super::options("set_widget", options, &["placement"])?;
        let mut display = json!({"method": "setWidget", "widgetKey": key});
        if !lines.is_unit() {
            let lines = match lines.clone().into_array() {
                Ok(lines) => lines.iter().map(convert::display).collect(),
                Err(_) => vec![convert::display(lines)],
            };
            display["widgetLines"] = json!(lines);
        }
        if let Some(placement) = placement {
            if !["aboveEditor", "belowEditor"].contains(&placement.as_str()) {
                return Err(fail(format!(
                    "set_widget has no placement \"{placement}\"; it takes aboveEditor, belowEditor"
                )));
            }
            display["widgetPlacement"] = placement.into();
        }
        self.show(&display)
    }

    /// Asks, and answers null where nobody can be asked or the dialog was closed.
    fn ask(&self, mut question: Value, options: Map) -> ScriptResult<Value> {
        self.call.ensure_open()?;
        let Options { timeout } = super::options("a dialog", options, &["timeout"])?;
        if let Some(timeout_ms) = timeout {
            question["timeoutMs"] = timeout_ms.into();
        }
        let asked = self.call.host().call::<Value>("ui.ask", &question);
        available(self.call.wait_for_user(asked)?)
    }

    /// A kernel without themes has none.
    fn themes(&self, service: &str, question: &Value) -> ScriptResult<Result<Value, Error>> {
        self.call.ensure_open()?;
        let asked = self.call.host().call::<Value>(service, question);
        self.call.wait_for(asked)
    }

    fn get_all_themes(&self) -> ScriptResult<Array> {
        let themes = available(self.themes("theme.list", &Value::Null)?)?;
        let themes = themes.as_array().cloned().unwrap_or_default();
        themes.into_iter().map(convert::to_dynamic).collect()
    }

    fn get_theme(&self, name: &str) -> ScriptResult<Dynamic> {
        let theme = available(self.themes("theme.get", &json!({"name": name}))?)?;
        convert::to_dynamic(theme)
    }

    /// That there is no such theme, or nothing that is drawn with one, is an answer.
    fn set_theme(&self, name: &str) -> ScriptResult<Dynamic> {
        let answer = match self.themes("theme.set", &json!({"name": name}))? {
            Ok(_) => json!({"success": true}),
            Err(error) => json!({"success": false, "error": error.message}),
        };
        convert::to_dynamic(answer)
    }

    fn confirm(&self, title: &str, message: &str, options: Map) -> ScriptResult<bool> {
        let question = json!({"method": "confirm", "title": title, "message": message});
        Ok(self.ask(question, options)? == Value::Bool(true))
    }

    fn select(&self, title: &str, choices: Array, options: Map) -> ScriptResult<Dynamic> {
        let choices: Vec<String> = choices.iter().map(convert::display).collect();
        let question = json!({"method": "select", "title": title, "options": choices});
        convert::to_dynamic(self.ask(question, options)?)
    }

    fn input(&self, title: &str, placeholder: Option<&str>, options: Map) -> ScriptResult<Dynamic> {
        let question = json!({"method": "input", "title": title, "placeholder": placeholder});
        convert::to_dynamic(self.ask(question, options)?)
    }

    fn editor(&self, title: &str, prefill: Option<&str>, options: Map) -> ScriptResult<Dynamic> {
        let question = json!({"method": "editor", "title": title, "prefill": prefill});
        convert::to_dynamic(self.ask(question, options)?)
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
        ui.input(title, None, Map::new())
    });
    engine.register_fn("input", |ui: &mut Ui, title: &str, placeholder: &str| {
        ui.input(title, Some(placeholder), Map::new())
    });
    engine.register_fn(
        "input",
        |ui: &mut Ui, title: &str, placeholder: &str, options: Map| {
            ui.input(title, Some(placeholder), options)
        },
    );
    engine.register_fn("editor", |ui: &mut Ui, title: &str| {
        ui.editor(title, None, Map::new())
    });
    engine.register_fn("editor", |ui: &mut Ui, title: &str, prefill: &str| {
        ui.editor(title, Some(prefill), Map::new())
    });
    engine.register_fn(
        "editor",
        |ui: &mut Ui, title: &str, prefill: &str, options: Map| {
            ui.editor(title, Some(prefill), options)
        },
    );
    displays(engine);
}

fn displays(engine: &mut Engine) {
    engine.register_fn("set_status", |ui: &mut Ui, key: &str, text: Dynamic| {
        ui.set_status(key, &text)
    });
    engine.register_fn("set_widget", |ui: &mut Ui, key: &str, lines: Dynamic| {
        ui.set_widget(key, &lines, Map::new())
    });
    engine.register_fn(
        "set_widget",
        |ui: &mut Ui, key: &str, lines: Dynamic, options: Map| ui.set_widget(key, &lines, options),
    );
    engine.register_fn("get_all_themes", |ui: &mut Ui| ui.get_all_themes());
    engine.register_fn("get_theme", |ui: &mut Ui, name: &str| ui.get_theme(name));
    engine.register_fn("set_theme", |ui: &mut Ui, name: &str| ui.set_theme(name));
    engine.register_fn("set_title", |ui: &mut Ui, title: &str| {
        ui.show(&json!({"method": "setTitle", "title": title}))
    });
    engine.register_fn("set_editor_text", |ui: &mut Ui, text: &str| {
        ui.show(&json!({"method": "set_editor_text", "text": text}))
    });
}
