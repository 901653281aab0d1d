//! Input handlers: each sees what the one before it made of the text; one that says `handled`
//! consumes it (P15–P18).

use std::ops::ControlFlow;

use pliant_sdk::Error;
use pliant_sdk::message::Content;
use serde_json::{Value, json};

use super::{Prompt, PromptError, Scene};
use crate::registry::{Dispatcher, HookPoint};

/// The prompt as the handlers leave it; `None` when one consumed it.
///
/// # Errors
/// When the user gave up while a handler worked on it. What that would have made of it is not known, so
/// it is not sent as it was typed.
pub(super) async fn handle(
    scene: &Scene<'_>,
    prompt: Prompt,
) -> Result<Option<Prompt>, PromptError> {
    let dispatcher = Dispatcher::new(scene.snapshot, HookPoint::Input, scene.callers.clone());
    let Some(dispatcher) = dispatcher else {
        return Ok(Some(prompt));
    };
    let mut state = Some(prompt);
    let payload = |state: &Option<Prompt>| {
        let event = |prompt| event(prompt, (scene.run_active)());
        state.as_ref().map_or(Value::Null, event)
    };
    // The point does not fail closed: a failing handler was reported and passed by.
    let passed = dispatcher.each(&mut state, payload, take).await;
    passed.map_err(|kept_from| PromptError::Stopped {
        extension: kept_from.source.name,
    })?;
    Ok(state)
}

/// What becomes of a prompt while a run is active is told only then.
fn event(prompt: &Prompt, run_active: bool) -> Value {
    let mut event = json!({"type": "input", "text": prompt.text, "source": prompt.origin.as_str()});
    if !prompt.images.is_empty() {
        event["images"] = json!(prompt.images);
    }
    if let Some(how) = prompt.when_active
        && run_active
    {
        event["streamingBehavior"] = json!(how.as_str());
    }
    event
}

fn take(state: &mut Option<Prompt>, mut answer: Value) -> Result<ControlFlow<()>, Error> {
    match answer.get("action").and_then(Value::as_str) {
        Some("continue") => {}
        Some("handled") => {
            *state = None;
            return Ok(ControlFlow::Break(()));
        }
        Some("transform") => {
            let text = match answer.get_mut("text").map(Value::take) {
                Some(Value::String(text)) => text,
                _ => return Err(Error::invalid("its \"transform\" has no \"text\"")),
            };
            let images = answer.get_mut("images").map(Value::take);
            let images = images.filter(|images| !images.is_null());
            let images = images.map(images_of).transpose()?;
            if let Some(prompt) = state {
                prompt.text = text;
                prompt.images = images.unwrap_or_else(|| std::mem::take(&mut prompt.images));
            }
        }
        _ => {
            return Err(Error::invalid(
                "its answer has no \"action\"; that is \"continue\", \"transform\" or \"handled\"",
            ));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Images in place of the prompt's own; anything else beside them is a mistake of the handler.
fn images_of(images: Value) -> Result<Vec<Content>, Error> {
    let unfit = || Error::invalid("the \"images\" of its \"transform\" are no list of images");
    let images: Vec<Content> = serde_json::from_value(images).map_err(|_| unfit())?;
    let all = images
        .iter()
        .all(|block| matches!(block, Content::Image(_)));
    all.then_some(images).ok_or_else(unfit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::WhenActive;

    fn prompt() -> Prompt {
        let image = serde_json::from_value(
            json!({"type": "image", "data": "QQ==", "mimeType": "image/png"}),
        );
        Prompt {
            images: vec![image.unwrap()],
            when_active: Some(WhenActive::FollowUp),
            ..Prompt::text("a")
        }
    }

    /// The text and the number of images after an answer, or what is wrong with it.
    fn after(answer: Value) -> Result<Option<(String, usize)>, String> {
        let mut state = Some(prompt());
        match take(&mut state, answer) {
            Ok(_) => Ok(state.map(|prompt| (prompt.text, prompt.images.len()))),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn images_are_kept_where_an_answer_names_none() {
        // P16
        let kept = Ok(Some(("b".to_owned(), 1)));
        assert_eq!(after(json!({"action": "transform", "text": "b"})), kept);
        let null = json!({"action": "transform", "text": "b", "images": null});
        assert_eq!(after(null), kept);
        let none = json!({"action": "transform", "text": "b", "images": []});
        assert_eq!(after(none), Ok(Some(("b".to_owned(), 0))));
        let unchanged = Ok(Some(("a".to_owned(), 1)));
        assert_eq!(after(json!({"action": "continue"})), unchanged);
        assert_eq!(after(json!({"action": "handled"})), Ok(None));
    }

    #[test]
    fn an_answer_of_a_wrong_type_is_an_error_and_changes_nothing() {
        // P16, P17
        for answer in [
            json!(true),
            json!("handled"),
            json!({}),
            json!({"action": "vanish"}),
            json!({"action": "transform"}),
            json!({"action": "transform", "text": 5}),
            json!({"action": "transform", "text": "b", "images": "x"}),
            json!({"action": "transform", "text": "b", "images": [{"type": "text", "text": "x"}]}),
        ] {
            let mut state = Some(prompt());
            assert!(take(&mut state, answer.clone()).is_err(), "{answer}");
            assert_eq!(state, Some(prompt()), "{answer}");
        }
    }

    #[test]
    fn handlers_learn_how_a_prompt_will_wait_only_while_a_run_is_active() {
        // extensions §3.2
        assert_eq!(event(&prompt(), true)["streamingBehavior"], "followUp");
        assert_eq!(event(&prompt(), false).get("streamingBehavior"), None);
    }
}
