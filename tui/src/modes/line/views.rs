//! What extensions show in place of what the plain prompt would: their views, as plain text.

use std::collections::HashMap;

use pliant_kernel::session::Session;
use pliant_sdk::Event;
use pliant_sdk::display::{ToolPart, ToolShown, ViewOptions};
use pliant_sdk::message::Message;
use serde_json::Value;

/// What has to be remembered between two events.
#[derive(Default)]
pub(super) struct Views {
    /// Arguments of the calls that run, by id.
    inputs: HashMap<String, Value>,
}

impl Views {
    /// The lines for an event that an extension shows, and for its messages that nobody shows otherwise.
    pub(super) async fn of(&mut self, session: &Session, event: &Event) -> Option<String> {
        let options = ViewOptions::default();
        let view = match event {
            Event::MessageEnd { message } => {
                let Message::Custom(message) = &**message else {
                    return None;
                };
                if !message.display {
                    return None;
                }
                let view = session.view_message(message, options).await;
                let text = || {
                    let (label, text) = (&message.custom_type, message.content.joined_text("\n"));
                    format!("[{label}] {text}")
                };
                return Some(view.map_or_else(text, |view| view.to_plain()));
            }
            Event::EntryAppended { entry } => session.view_entry(entry, options).await,
            Event::ToolExecutionStart {
                tool_call_id,
                tool_name,
                args,
                ..
            } => {
                self.inputs.insert(tool_call_id.clone(), args.clone());
                let shown = ToolShown {
                    part: ToolPart::Call,
                    tool_name: tool_name.clone(),
                    tool_call_id: tool_call_id.clone(),
                    input: args.clone(),
                    result: None,
                    is_partial: true,
                    options,
                };
                session.view_tool(&shown).await
            }
            Event::ToolExecutionEnd {
                tool_call_id,
                tool_name,
                result,
                ..
            } => {
                let shown = ToolShown {
                    part: ToolPart::Result,
                    tool_name: tool_name.clone(),
                    tool_call_id: tool_call_id.clone(),
                    input: self.inputs.remove(tool_call_id).unwrap_or_default(),
                    result: Some(result.clone()),
                    is_partial: false,
                    options,
                };
                session.view_tool(&shown).await
            }
            _ => None,
        };
        view.map(|view| view.to_plain())
    }
}
