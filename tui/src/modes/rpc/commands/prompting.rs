//! `prompt`, `steer`, `follow_up`, `abort`, `abort_retry`.

use std::sync::{Arc, Mutex};

use pliant_kernel::pipeline::{Origin, Prompt, PromptError, WhenActive};
use pliant_kernel::session::{Disposition, PromptEnd};
use pliant_sdk::Event;
use pliant_sdk::message::Content;
use serde_json::json;

use super::{Answer, Call, Entry, Running, Work, long, said};
use crate::modes::rpc::request::{Data, Fields, Reply};
use crate::say;

pub(super) const COMMANDS: &[Entry] = &[
    Entry {
        name: "prompt",
        is_quick: false,
        work: Work::Goes(prompt),
    },
    long("steer", |call| {
        Box::pin(async move {
            let (text, images) = spoken(call.fields())?;
            let queued = call.session().steer(text, images).await;
            disposition(queued.map_err(said)?)
        })
    }),
    long("follow_up", |call| {
        Box::pin(async move {
            let (text, images) = spoken(call.fields())?;
            let queued = call.session().follow_up(text, images).await;
            disposition(queued.map_err(said)?)
        })
    }),
    long("abort", |call| {
        Box::pin(async move {
            call.session().abort().await;
            Ok(Data::none())
        })
    }),
    super::quick("abort_retry", |call| {
        Box::pin(async move {
            call.session().abort_retry();
            Ok(Data::none())
        })
    }),
];

/// Answers what becomes of the prompt, and runs it to its end, of which events tell.
fn prompt(call: Call, reply: Reply) -> Running {
    Box::pin(async move {
        let prompt = match read(call.fields()) {
            Ok(prompt) => prompt,
            Err(error) => return reply.failure(&error),
        };
        // Given back by a prompt that is refused, whose sentence is known here only.
        let reply = Arc::new(Mutex::new(Some(reply)));
        let first = Arc::clone(&reply);
        let take = |reply: &Mutex<Option<Reply>>| reply.lock().ok()?.take();
        let preflight = move |became: Disposition| {
            if became == Disposition::Rejected {
                return;
            }
            let Some(reply) = take(&first) else { return };
            match disposition(became) {
                Ok(data) => reply.success(data),
                Err(error) => reply.failure(&error),
            }
        };
        let ended = call.session().prompt(prompt, preflight).await;
        match ended {
            Ok(PromptEnd {
                failure: Some(failure),
                ..
            }) => tell(&call, failure.to_string()),
            Ok(_) => {}
            Err(refusal) => {
                if let Some(reply) = take(&reply) {
                    reply.failure(&refused(refusal));
                }
            }
        }
    })
}

/// A run stopped because the session could not be stored, which no message of it can say (S04).
fn tell(call: &Call, message: String) {
    say::error(&message);
    if let Ok(mut line) = serde_json::to_vec(&Event::Notice { message }) {
        line.push(b'\n');
        call.rpc.records.put(line);
    }
}

/// Why a prompt is refused, in the words of the protocol.
fn refused(refusal: PromptError) -> String {
    match refusal {
        PromptError::Busy => "The agent is already processing a prompt. Say by streamingBehavior whether \
             it is to hear this one at its next request (\"steer\") or when it would stop (\"followUp\")."
            .to_owned(),
        refusal => said(refusal),
    }
}

fn read(fields: &Fields) -> Result<Prompt, String> {
    let (text, images) = spoken(fields)?;
    let when_active = match fields.optional::<String>("streamingBehavior")?.as_deref() {
        None => None,
        Some("steer") => Some(WhenActive::Steer),
        Some("followUp") => Some(WhenActive::FollowUp),
        Some(other) => {
            return Err(format!(
                "The streamingBehavior \"{other}\" is neither \"steer\" nor \"followUp\"."
            ));
        }
    };
    Ok(Prompt {
        images,
        when_active,
        origin: Origin::Rpc,
        ..Prompt::text(text)
    })
}

fn spoken(fields: &Fields) -> Result<(String, Vec<Content>), String> {
    let text = fields.required("message")?;
    let images: Vec<Content> = fields.optional("images")?.unwrap_or_default();
    if let Some(at) = images.iter().position(|image| match image {
        Content::Image(image) => image.data.is_empty() || image.mime_type.is_empty(),
        _ => true,
    }) {
        return Err(format!(
            "Number {} of the images is none. An image is {{\"type\":\"image\",\"data\":base64,\"mimeType\":text}}.",
            at + 1
        ));
    }
    Ok((text, images))
}

fn disposition(became: Disposition) -> Answer {
    let word = match became {
        Disposition::Started => "started",
        Disposition::Queued => "queued",
        Disposition::Handled => "handled",
        Disposition::Rejected => "rejected",
    };
    Data::of(&json!({ "disposition": word }))
}
