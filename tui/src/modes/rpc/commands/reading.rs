//! How the session stands: `get_state` and what else only looks.

use pliant_kernel::session::{Delivery, Session};
use pliant_kernel::settings::QueueMode;
use pliant_sdk::Model;
use pliant_sdk::message::ThinkingLevel;
use serde::Serialize;
use serde_json::json;

use super::{Entry, quick};
use crate::modes::rpc::request::Data;

pub(super) const COMMANDS: &[Entry] = &[
    quick("get_state", |call| {
        Box::pin(async move { Data::of(&State::of(&call.session())) })
    }),
    quick("get_messages", |call| {
        Box::pin(async move { Data::of(&json_of_messages(&call.session())) })
    }),
    quick("get_session_stats", |call| {
        Box::pin(async move { Data::of(&call.session().stats().await) })
    }),
    quick("get_last_assistant_text", |call| {
        Box::pin(async move {
            let text = call.session().last_assistant_text();
            Data::of(&json!({ "text": text }))
        })
    }),
];

#[derive(Serialize)]
struct Messages<T> {
    messages: T,
}

fn json_of_messages(session: &Session) -> impl Serialize {
    Messages {
        messages: session.messages(),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct State {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<Model>,
    thinking_level: ThinkingLevel,
    is_streaming: bool,
    is_compacting: bool,
    steering_mode: QueueMode,
    follow_up_mode: QueueMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_file: Option<String>,
    session_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_name: Option<String>,
    auto_compaction_enabled: bool,
    message_count: usize,
    pending_message_count: usize,
}

impl State {
    fn of(session: &Session) -> Self {
        let (steering, follow_up) = session.queued();
        Self {
            model: session.model().map(super::model::shown),
            thinking_level: session.thinking_level(),
            is_streaming: session.is_running(),
            is_compacting: session.is_compacting(),
            steering_mode: session.queue_mode(Delivery::Steer),
            follow_up_mode: session.queue_mode(Delivery::FollowUp),
            session_file: session.file().map(|file| file.display().to_string()),
            session_id: session.header().id.to_string(),
            session_name: session.name(),
            auto_compaction_enabled: session.auto_compaction(),
            message_count: session.messages().len(),
            pending_message_count: steering.len() + follow_up.len(),
        }
    }
}
