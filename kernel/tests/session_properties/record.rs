//! What was seen of a script.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pliant_kernel::session::Disposition;
use pliant_sdk::{Event, Message};
use tempfile::TempDir;

use crate::extension::Called;
use crate::model::Request;
use crate::script::Way;

pub struct Record {
    /// Everything a subscriber heard, in order.
    pub events: Vec<Arc<Event>>,
    pub prompts: Vec<Prompted>,
    pub aborts: Vec<Aborted>,
    /// Messages of the extension that may have started a run.
    pub triggering: usize,
    /// Texts that were taken out of the queues.
    pub cleared: Vec<String>,
    pub requests: Vec<Request>,
    pub called: Vec<Called>,
    /// Commands of the user whose results were recorded, in order.
    pub commands: Vec<String>,
    /// The file at different times.
    pub files: Vec<Vec<u8>>,
    /// The projection at the end.
    pub messages: Vec<Arc<Message>>,
    pub file: Option<PathBuf>,
    /// The file is in it.
    pub _folder: TempDir,
}

/// What became of a prompt.
#[derive(Debug)]
pub struct Prompted {
    pub text: String,
    pub way: Option<Way>,
    /// What the observer was told.
    pub told: Arc<Mutex<Vec<Disposition>>>,
    /// It was put off while a run settled.
    pub deferred: bool,
    /// The refusal.
    pub refused: Option<String>,
    /// The session could not be stored.
    pub failed: Option<String>,
}

impl Prompted {
    pub fn told(&self) -> Vec<Disposition> {
        self.told.lock().unwrap().clone()
    }
}

/// How things were when an abort had returned.
#[derive(Debug)]
pub struct Aborted {
    /// Nobody had started anything since.
    pub idle: bool,
    pub requests_alive: usize,
    pub tools_alive: usize,
}

/// An event in a few words.
pub fn word(event: &Event) -> String {
    let json = serde_json::to_value(event).unwrap();
    let kind = json["type"].as_str().unwrap_or_default();
    let message = &json["message"];
    let short = |value: &serde_json::Value| {
        let text = value.to_string();
        text.chars().take(160).collect::<String>()
    };
    match event {
        Event::MessageUpdate {
            assistant_message_event,
            ..
        } => {
            let update = serde_json::to_value(assistant_message_event).unwrap();
            format!("{kind} {}", update["type"])
        }
        Event::MessageStart { .. } | Event::MessageEnd { .. } => format!(
            "{kind} {} {} {}",
            message["role"],
            short(&message["content"]),
            message["stopReason"]
        ),
        Event::ToolExecutionStart { .. }
        | Event::ToolExecutionUpdate { .. }
        | Event::ToolExecutionEnd { .. } => format!("{kind} {}", json["toolCallId"]),
        Event::AgentEnd { will_retry, .. } => format!("{kind} {will_retry}"),
        Event::TurnEnd { .. } => kind.to_owned(),
        _ => short(&json),
    }
}
