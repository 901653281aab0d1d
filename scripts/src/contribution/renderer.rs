//! `register_message_renderer("type", |message, options| …)`, `register_entry_renderer` likewise,
//! `register_tool_renderer(|name, next, shown| …)`, `register_markdown_transformer(|markdown, info| …)`.
//!
//! A renderer answers a view: a text, a list, a map with a `type`; nothing leaves it to the next one.

use std::sync::Arc;

use pliant_kernel::registry::Kind;
use pliant_sdk::Error;
use pliant_sdk::display::{
    EntryShown, MarkdownShown, MessageShown, NEXT_VIEW, ToolPart, ToolShown,
};
use pliant_sdk::error::code;
use pliant_sdk::message::joined_text;
use pliant_sdk::view::View;
use rhai::{Dynamic, Map};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Handler, Registration, Running, answer, function, unsupported};
use crate::api::host_function;
use crate::call::{Call, ScriptResult};
use crate::convert;
use crate::program::{Callback, Program};

struct Renderer {
    kind: Kind,
    render: Callback,
}

/// Reads the declaration of a renderer of messages, `#{render}`; it is named by the type of the messages.
pub(crate) fn declare_message(
    program: &Program,
    custom_type: &str,
    fields: Map,
) -> ScriptResult<Registration> {
    let offered = ["message", "options"];
    declare(
        program,
        Kind::MessageRenderer,
        custom_type,
        fields,
        &offered,
    )
}

/// The same of entries.
pub(crate) fn declare_entry(
    program: &Program,
    custom_type: &str,
    fields: Map,
) -> ScriptResult<Registration> {
    let offered = ["entry", "options"];
    declare(program, Kind::EntryRenderer, custom_type, fields, &offered)
}

/// The same of calls of tools.
pub(crate) fn declare_tool(
    program: &Program,
    name: &str,
    fields: Map,
) -> ScriptResult<Registration> {
    let offered = ["name", "next", "shown"];
    declare(program, Kind::ToolRenderer, name, fields, &offered)
}

/// The same of what changes Markdown.
pub(crate) fn declare_markdown(
    program: &Program,
    name: &str,
    fields: Map,
) -> ScriptResult<Registration> {
    let offered = ["markdown", "info"];
    declare(program, Kind::MarkdownTransformer, name, fields, &offered)
}

fn declare(
    program: &Program,
    kind: Kind,
    name: &str,
    mut fields: Map,
    offered: &[&str],
) -> ScriptResult<Registration> {
    let render = function(program, &mut fields, "render", offered)?;
    Ok(Registration {
        kind,
        name: name.to_owned(),
        spec: json!({"name": name}),
        handler: Arc::new(Renderer { kind, render }),
    })
}

impl Handler for Renderer {
    fn run(&self, op: &str, payload: &[u8], running: &Running<'_>) -> Result<Vec<u8>, Error> {
        match (self.kind, op) {
            (Kind::MessageRenderer, "render") => {
                let MessageShown { message, options } = serde_json::from_slice(payload)?;
                self.show(
                    [value(&message, running)?, value(&options, running)?],
                    running,
                )
            }
            (Kind::EntryRenderer, "render") => {
                let EntryShown { entry, options } = serde_json::from_slice(payload)?;
                self.show(
                    [value(&entry, running)?, value(&options, running)?],
                    running,
                )
            }
            (Kind::ToolRenderer, "render") => {
                let shown: ToolShown = serde_json::from_slice(payload)?;
                let call = Arc::clone(running.call());
                let next = host_function("next", move || next_view(&call));
                let next = next.map_err(|error| running.error(error))?;
                let name = shown.tool_name.clone().into();
                let arguments = [name, Dynamic::from(next), tool_call(&shown, running)?];
                self.show(arguments, running)
            }
            (Kind::MarkdownTransformer, "transform") => {
                let MarkdownShown { markdown, surface } = serde_json::from_slice(payload)?;
                let info = value(&json!({"surface": surface}), running)?;
                let said = running.run(&self.render, [markdown.into(), info])?;
                match said.as_immutable_string_ref() {
                    Ok(text) => answer(&text.as_str()),
                    Err(_) => Err(running.wrong_answer("the transformer", "a text", &said)),
                }
            }
            _ => Err(unsupported("renderer", op)),
        }
    }
}

impl Renderer {
    fn show<const N: usize>(
        &self,
        arguments: [Dynamic; N],
        running: &Running<'_>,
    ) -> Result<Vec<u8>, Error> {
        let said = running.run(&self.render, arguments)?;
        answer(&view(&said, "the renderer", running)?)
    }
}

/// Shows half of a call by closures of the tool itself: `renderCall: |args, options| …`,
/// `renderResult: |result, options| …`.
pub(super) fn render_tool(
    call: Option<&Callback>,
    result: Option<&Callback>,
    payload: &[u8],
    running: &Running<'_>,
) -> Result<Vec<u8>, Error> {
    let shown: ToolShown = serde_json::from_slice(payload)?;
    let (callback, argument) = match shown.part {
        ToolPart::Call => (call, value(&shown.input, running)?),
        ToolPart::Result => (result, result_of(&shown, running)?),
    };
    let Some(callback) = callback else {
        return Ok(b"null".to_vec());
    };
    let options = options_of(&shown, running)?;
    let said = running.run(callback, [argument, options])?;
    answer(&view(&said, "the tool's renderer", running)?)
}

/// What a closure answered, as a view.
fn view(said: &Dynamic, who: &str, running: &Running<'_>) -> Result<Option<View>, Error> {
    if said.is_unit() {
        return Ok(None);
    }
    let json: Value = convert::to_typed(said).map_err(|error| running.error(error))?;
    let view = serde_json::from_value::<View>(json);
    let view = view.map_err(|error| Error::invalid(error.to_string()));
    let checked = view.and_then(|view| view.check().map(|()| view));
    checked.map(Some).map_err(|error| {
        let (file, message) = (running.call().program().name(), error.message);
        Error::new(
            code::INVALID,
            format!("{file}: {who} answered no view: {message}"),
        )
    })
}

fn value(value: &impl Serialize, running: &Running<'_>) -> Result<Dynamic, Error> {
    convert::to_dynamic(value).map_err(|error| running.error(error))
}

/// The call as a map: its fields, and the text of its result in `result.text`.
fn tool_call(shown: &ToolShown, running: &Running<'_>) -> Result<Dynamic, Error> {
    let mut call = json!(shown);
    if let (Some(result), Some(text)) = (call.get_mut("result"), text_of(shown)) {
        result["text"] = text.into();
    }
    value(&call, running)
}

fn result_of(shown: &ToolShown, running: &Running<'_>) -> Result<Dynamic, Error> {
    let mut result = json!(shown.result);
    if let Some(text) = text_of(shown) {
        result["text"] = text.into();
    }
    value(&result, running)
}

fn text_of(shown: &ToolShown) -> Option<String> {
    let result = shown.result.as_ref()?;
    Some(joined_text(&result.content, "\n"))
}

fn options_of(shown: &ToolShown, running: &Running<'_>) -> Result<Dynamic, Error> {
    let mut options = json!(shown.options);
    options["isPartial"] = shown.is_partial.into();
    options["toolCallId"] = shown.tool_call_id.clone().into();
    value(&options, running)
}

/// What would be shown without this renderer.
fn next_view(call: &Call) -> ScriptResult<Dynamic> {
    call.ensure_open()?;
    let host = call.host().clone();
    let view: Value = call.wait(async move { host.call(NEXT_VIEW, &Value::Null).await })?;
    convert::to_dynamic(view)
}
