//! The messages of a request, made in one place (L20): the projection, then what handlers make of it,
//! then hidden tools and a forced prompt, then conversion and repair. The session is not changed by
//! any of it.
//!
//! What stays the same from request to request stays the same value, so that a turn costs what it
//! adds; with nobody listening nothing is copied.

mod system;

use std::collections::BTreeSet;
use std::sync::Arc;

use pliant_sdk::{Message, Model};
use tokio_util::sync::CancellationToken;

use super::repair::Transcript;
use super::{RunHost, hooks};
use system::SystemMessages;

/// What a request shows of the prompt and the tools that the session declares. The default shows
/// them as they are.
#[derive(Debug, Clone, Default)]
pub struct RequestView {
    /// Tools that can be called but that the model is not told of.
    pub hidden_tools: Arc<BTreeSet<String>>,
    /// Takes the place of the whole system prompt; tools stay declared (P42).
    pub forced_prompt: Option<Arc<str>>,
}

impl RequestView {
    fn is_plain(&self) -> bool {
        self.hidden_tools.is_empty() && self.forced_prompt.is_none()
    }
}

/// What is kept of one conversation from request to request.
#[derive(Debug, Default)]
pub struct Assembly {
    transcript: Transcript,
    system: SystemMessages,
}

impl Assembly {
    /// The messages to send, from messages of the session.
    fn messages(
        &mut self,
        messages: &[Arc<Message>],
        view: &RequestView,
        images_blocked: bool,
        model: &Model,
    ) -> Arc<Vec<Arc<Message>>> {
        self.transcript.block_images(images_blocked);
        if view.is_plain() {
            return self.transcript.update(messages, model);
        }
        let shown = self.system.show(messages, view);
        self.transcript.update(&shown, model)
    }

    /// The prompt and tools that messages add up to, as one message (M10).
    pub(super) fn system_state(&mut self, messages: &[Arc<Message>]) -> Option<Arc<Message>> {
        self.system.state(messages)
    }
}

/// Makes the messages of the next request of a run.
pub(super) async fn messages<H: RunHost>(
    host: &H,
    cancel: &CancellationToken,
    view: &RequestView,
    model: &Model,
) -> Arc<Vec<Arc<Message>>> {
    let changed = hooks::context(host, cancel).await;
    let images_blocked = host.images_blocked();
    host.assemble(|projection, assembly| {
        let messages = changed.as_deref().unwrap_or(projection);
        assembly.messages(messages, view, images_blocked, model)
    })
}
