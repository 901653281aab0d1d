//! That the user is being asked something (`ui_prompt_start`, `ui_prompt_end`; `extensions.md` §2.8).
//! Questions that overlap are one span, and nobody waits for the handlers.

use std::sync::{Arc, Mutex};

use pliant_sdk::ui::Dialog;
use serde_json::{Value, json};

use super::{Shared, lock};
use crate::registry::HookPoint;

/// The dialogs that are open.
#[derive(Default)]
pub(super) struct OpenPrompts(Mutex<Span>);

#[derive(Default)]
struct Span {
    open: usize,
    /// What the first of them was told as.
    told: Option<Value>,
}

/// One of them; it is closed when this is dropped.
pub(super) struct OpenPrompt(Arc<Shared>);

impl Shared {
    /// The user is asked something.
    pub(super) fn prompt_opens(self: Arc<Self>, dialog: &Dialog) -> OpenPrompt {
        let (kind, title) = match dialog {
            Dialog::Select { title, .. } => ("select", title),
            Dialog::Confirm { title, .. } => ("confirm", title),
            Dialog::Input { title, .. } => ("input", title),
            Dialog::Editor { title, .. } => ("editor", title),
        };
        let mut span = lock(&self.prompts.0);
        span.open += 1;
        if span.open == 1 {
            let event = json!({"reason": "ui_prompt", "kind": kind, "title": title});
            span.told = Some(event.clone());
            self.tell_prompt(HookPoint::UiPromptStart, event);
        }
        drop(span);
        OpenPrompt(self)
    }

    fn tell_prompt(self: &Arc<Self>, point: HookPoint, mut event: Value) {
        event["type"] = point.name().into();
        self.tell_beside(point, event);
    }
}

impl Drop for OpenPrompt {
    fn drop(&mut self) {
        let Self(session) = self;
        let mut span = lock(&session.prompts.0);
        span.open = span.open.saturating_sub(1);
        if span.open == 0
            && let Some(event) = span.told.take()
        {
            session.tell_prompt(HookPoint::UiPromptEnd, event);
        }
    }
}
