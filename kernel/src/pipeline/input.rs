//! Input handlers: each sees what the one before it made of the text; one that says `handled`
//! consumes it (P15–P18).

use std::ops::ControlFlow;

use pliant_sdk::Error;
use serde_json::{Value, json};

use super::{Prompt, Scene};
use crate::registry::{Dispatcher, HookPoint};

/// The prompt as the handlers leave it; `None` when one consumed it.
pub(super) async fn handle(scene: &Scene<'_>, prompt: Prompt) -> Option<Prompt> {
    let dispatcher = Dispatcher::new(scene.snapshot, HookPoint::Input, scene.callers.clone());
    let Some(dispatcher) = dispatcher else {
        return Some(prompt);
    };
    let mut state = Some(prompt);
    let payload = |state: &Option<Prompt>| state.as_ref().map_or(Value::Null, event);
    // The point does not fail closed: a failing handler was reported and passed by.
    let _ = dispatcher.each(&mut state, payload, take).await;
    state
}

fn event(prompt: &Prompt) -> Value {
    let mut event = json!({"type": "input", "text": prompt.text, "source": prompt.origin.as_str()});
    if !prompt.images.is_empty() {
        event["images"] = json!(prompt.images);
    }
    event
}

fn take(state: &mut Option<Prompt>, mut answer: Value) -> Result<ControlFlow<()>, Error> {
    match answer.get("action").and_then(Value::as_str) {
        Some("handled") => {
            *state = None;
            return Ok(ControlFlow::Break(()));
        }
        Some("transform") => {
            let text = answer
                .get("text")
                .and_then(Value::as_str)
                .map(str::to_owned);
            let images = answer
                .get_mut("images")
                .map(Value::take)
                .and_then(|v| serde_json::from_value(v).ok());
            if let Some(prompt) = state {
                prompt.text = text.unwrap_or_else(|| std::mem::take(&mut prompt.text));
                prompt.images = images.unwrap_or_else(|| std::mem::take(&mut prompt.images));
            }
        }
        _ => {}
    }
    Ok(ControlFlow::Continue(()))
}
