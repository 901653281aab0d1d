//! A run is being prepared: handlers add messages to it and edit what its prompt is built from
//! (`kernel.md` P39, P40; `extensions.md` §3.6).

use std::cell::RefCell;
use std::ops::ControlFlow;

use pliant_sdk::message::{Content, CustomMessage, MessageContent};
use pliant_sdk::session::MessageDraft;
use pliant_sdk::{Error, Message};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::with_handlers;
use crate::prompt::{PromptEdits, PromptInputs, rendered, sections};
use crate::registry::HookPoint;
use crate::run::RunHost;

/// What handlers made of a run's start.
#[derive(Default)]
pub(in crate::run) struct Start {
    /// Enter after the prompt.
    pub(in crate::run) messages: Vec<Message>,
    /// Changes to what the prompt is built from.
    pub(in crate::run) edits: PromptEdits,
}

/// `before_agent_start`: each handler sees what the ones before it made. An answer that cannot be used
/// is reported, and none of it counts.
pub(in crate::run) async fn before_agent_start<H: RunHost>(
    host: &H,
    cancel: &CancellationToken,
    trigger: &Message,
) -> Start {
    let point = HookPoint::BeforeAgentStart;
    with_handlers(
        host,
        cancel,
        point,
        Start::default(),
        async |dispatcher, start| {
            let mut draft = Draft {
                start,
                shown: RefCell::default(),
                now_ms: host.now_ms(),
            };
            let payload = |draft: &Draft| {
                host.note_prompt(draft.start.edits.clone());
                // Afresh for each handler: one may have changed the active tools themselves.
                let loadout = host.loadout(&host.registry().snapshot());
                draft.payload(trigger, loadout.inputs())
            };
            let take = |draft: &mut Draft, answer: Value| {
                draft.take(answer)?;
                Ok(ControlFlow::Continue(()))
            };
            // The point does not fail closed, so the dispatch has no failure of its own.
            let _ = dispatcher.each(&mut draft, payload, take).await;
            draft.start
        },
    )
    .await
}

/// The start as the handlers so far left it.
struct Draft {
    start: Start,
    /// What the handler that is called was shown.
    shown: RefCell<PromptInputs>,
    now_ms: i64,
}

impl Draft {
    fn payload(&self, trigger: &Message, inputs: &PromptInputs) -> Value {
        let inputs = self.start.edits.applied_to(inputs.clone());
        let forced = inputs.force_system_prompt.clone();
        let mut event = event_of(trigger);
        event["systemPrompt"] = forced
            .unwrap_or_else(|| rendered(&sections(&inputs)))
            .into();
        event["systemPromptOptions"] = json!(inputs);
        self.shown.replace(inputs);
        event
    }

    fn take(&mut self, answer: Value) -> Result<(), Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Answer {
            #[serde(default)]
            message: Option<MessageDraft>,
            #[serde(default)]
            system_prompt: Option<String>,
            #[serde(default)]
            event: Option<Edited>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Edited {
            #[serde(default)]
            system_prompt_options: Option<Map<String, Value>>,
        }
        let unfit = |error| Error::invalid(format!("its answer cannot be used: {error}"));
        let answer: Answer = serde_json::from_value(answer).map_err(unfit)?;
        let options = answer.event.and_then(|event| event.system_prompt_options);
        if let Some(options) = options {
            self.start.edits.take(self.shown.get_mut(), options)?;
        }
        if let Some(prompt) = answer.system_prompt {
            self.start.edits.force(prompt);
        }
        let message = answer.message.map(|message| CustomMessage {
            timestamp: self.now_ms,
            ..message.into()
        });
        self.start.messages.extend(message.map(Message::Custom));
        Ok(())
    }
}

fn event_of(trigger: &Message) -> Value {
    let kind = HookPoint::BeforeAgentStart.name();
    let Message::User(user) = trigger else {
        return json!({"type": kind, "messageType": "custom", "message": trigger});
    };
    let mut event = json!({
        "type": kind, "messageType": "user", "prompt": user.content.joined_text("\n"),
    });
    if let MessageContent::Blocks(blocks) = &user.content {
        let images: Vec<_> = blocks
            .iter()
            .filter(|block| matches!(block, Content::Image(_)))
            .collect();
        if !images.is_empty() {
            event["images"] = json!(images);
        }
    }
    event
}
