//! The transcript as every provider gets it, wires and scripts alike: converted, then made sendable
//! whatever the session holds (M18). Wires repair once more by rules of their own; what comes from
//! here stays as it is under them. Nothing is written back into the session.

use std::sync::Arc;

use pliant_sdk::Model;
use pliant_sdk::history::{self, AnyId, Preparer};
use pliant_sdk::message::Message;

use super::convert::{Converted, convert};

/// The transcript, kept from request to request: a turn costs what it adds, and a message that stays
/// the same value is sent as the same value.
#[derive(Debug, Default)]
pub struct Transcript {
    converted: Converted,
    reader: Option<Reader>,
    /// How many of the converted messages are prepared.
    taken: usize,
    preparer: Preparer,
    /// Shared with the request that is sent; by the next one it is held here alone.
    prepared: Arc<Vec<Arc<Message>>>,
}

/// What the repair depends on besides the messages.
#[derive(Debug, PartialEq)]
struct Reader {
    provider: String,
    api: String,
    model: String,
    images: bool,
}

impl Transcript {
    /// From the next update on with or without a text in place of every image (M17).
    pub fn block_images(&mut self, blocked: bool) {
        self.converted.block_images(blocked);
    }

    /// Brings the transcript up to date with the projection and answers what to send to the model.
    pub fn update(&mut self, projection: &[Arc<Message>], model: &Model) -> Arc<Vec<Arc<Message>>> {
        let kept = self.converted.update(projection);
        let reader = Reader {
            provider: model.provider.clone(),
            api: model.api.clone(),
            model: model.id.clone(),
            images: model.takes_images(),
        };
        let grows = kept >= self.taken && self.reader.as_ref() == Some(&reader);
        if !grows || !self.take_new(model) {
            self.reader = Some(reader);
            self.taken = 0;
            self.preparer = Preparer::default();
            self.prepared = Arc::default();
            // Nothing stands before it that it could change.
            self.take_new(model);
        }
        Arc::clone(&self.prepared)
    }

    /// Prepares what was added; false when that changes what was sent before.
    fn take_new(&mut self, model: &Model) -> bool {
        let messages = self.converted.messages();
        let new = &messages[self.taken..];
        let Some(mut prepared) = self.preparer.extend(new, model, &AnyId) else {
            return false;
        };
        self.taken = messages.len();
        Arc::make_mut(&mut self.prepared).append(&mut prepared);
        true
    }
}

/// What is repaired of a projection, for the user; `None` when nothing is.
#[must_use]
pub fn repair_notice(projection: &[Arc<Message>]) -> Option<String> {
    const SHOWN: usize = 3;
    let messages: Vec<Arc<Message>> = projection.iter().filter_map(convert).collect();
    let repairs = history::repairs(&messages);
    if repairs.is_empty() {
        return None;
    }
    let mut text =
        "The conversation is repaired for the model; the session itself stays as it is.".to_owned();
    for repair in repairs.iter().take(SHOWN) {
        text.push_str(&format!(" {repair}"));
    }
    let rest: usize = repairs.iter().skip(SHOWN).map(|repair| repair.count).sum();
    match rest {
        0 => {}
        1 => text.push_str(" There is one more repair of another kind."),
        rest => text.push_str(&format!(" There are {rest} more repairs of other kinds.")),
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use pliant_tests::histories::{self, Dice};
    use serde_json::{Value, json};

    use super::*;

    fn message(value: Value) -> Arc<Message> {
        Arc::new(Message::from(value))
    }

    fn user(text: &str) -> Arc<Message> {
        message(json!({"role": "user", "content": text}))
    }

    fn calls(ids: &[&str]) -> Arc<Message> {
        let call = |id: &&str| json!({"type": "toolCall", "id": id, "name": "t", "arguments": {}});
        let calls: Vec<Value> = ids.iter().map(call).collect();
        message(
            json!({"role": "assistant", "content": calls, "provider": "p", "api": "a",
            "model": "m", "stopReason": "toolUse"}),
        )
    }

    fn result(id: &str) -> Arc<Message> {
        message(
            json!({"role": "toolResult", "toolCallId": id, "toolName": "t",
            "content": [{"type": "text", "text": "r"}]}),
        )
    }

    fn model(id: &str) -> Model {
        Model {
            provider: "p".into(),
            api: "a".into(),
            id: id.into(),
            ..Model::default()
        }
    }

    fn roles(messages: &[Arc<Message>]) -> Vec<&str> {
        messages.iter().map(|message| message.role()).collect()
    }

    #[test]
    fn a_turn_leaves_the_messages_before_it_the_same_values() {
        let mut transcript = Transcript::default();
        // The first call has no result, the second an empty id: both are repaired.
        let mut projection = vec![
            user("1"),
            calls(&["x"]),
            user("2"),
            calls(&[""]),
            result(""),
        ];
        let mut before = transcript.update(&projection, &model("m"));
        assert_eq!(
            roles(&before),
            [
                "user",
                "assistant",
                "toolResult",
                "user",
                "assistant",
                "toolResult"
            ]
        );
        for turn in ["y", "z", "x"] {
            projection.extend([user("on"), calls(&[turn]), result(turn)]);
            let after = transcript.update(&projection, &model("m"));
            assert_eq!(after.len(), before.len() + 3);
            let mut pairs = before.iter().zip(after.iter());
            assert!(pairs.all(|(a, b)| Arc::ptr_eq(a, b)));
            before = after;
        }
        assert!(Arc::ptr_eq(&before[0], &projection[0]));
    }

    #[test]
    fn what_changes_earlier_messages_is_seen() {
        let mut transcript = Transcript::default();
        let mut projection = vec![user("1"), calls(&["x"]), user("2")];
        transcript.update(&projection, &model("m"));
        // A late result.
        projection.push(result("x"));
        let late = transcript.update(&projection, &model("m"));
        assert_eq!(roles(&late), ["user", "assistant", "toolResult", "user"]);
        assert!(Arc::ptr_eq(&late[2], &projection[3]));
        // Another branch, shorter than before.
        let other = transcript.update(&projection[..1], &model("m"));
        assert_eq!(roles(&other), ["user"]);
    }

    #[test]
    fn a_damaged_history_in_parts_is_sent_as_the_whole() {
        let model = {
            let [provider, api, id] = histories::SPEAKER.map(str::to_owned);
            Model {
                provider,
                api,
                ..model(&id)
            }
        };
        for seed in 0..500 {
            let mut dice = Dice::new(seed);
            let history: Vec<_> = histories::damaged(&mut dice)
                .into_iter()
                .map(message)
                .collect();
            let mut transcript = Transcript::default();
            for _ in 0..3 {
                let until = dice.roll(history.len() + 1);
                let kept = transcript.update(&history[..until], &model);
                let whole = Transcript::default().update(&history[..until], &model);
                assert_eq!(kept, whole, "seed {seed}");
                assert_eq!(repair_notice(&kept), None, "seed {seed}");
            }
        }
    }

    #[test]
    fn another_model_gets_its_own_transcript() {
        // reports P10: there and back again.
        let thinking = message(json!({"role": "assistant", "provider": "p", "api": "a",
            "model": "m", "stopReason": "stop", "content": [{"type": "thinking", "thinking": "t",
            "thinkingSignature": "s"}, {"type": "text", "text": "x"}]}));
        let projection = [user("1"), thinking];
        let mut transcript = Transcript::default();
        let blocks = |messages: Arc<Vec<Arc<Message>>>| {
            let answer = messages[1]
                .as_assistant()
                .map(|answer| answer.content.len());
            answer.unwrap_or_default()
        };
        assert_eq!(blocks(transcript.update(&projection, &model("m"))), 2);
        assert_eq!(blocks(transcript.update(&projection, &model("n"))), 1);
        assert_eq!(blocks(transcript.update(&projection, &model("m"))), 2);
    }

    #[test]
    fn repairs_are_told_in_one_notice() {
        let again = [calls(&["x"]), result("x"), user("1")];
        let again = [&again[..], &again].concat();
        // P09: the same id in a later answer is another call.
        assert_eq!(repair_notice(&again), None);
        let notice = repair_notice(&[user("1"), calls(&["x"]), user("2")]).unwrap();
        assert!(notice.contains("One tool call has no result"), "{notice}");
        let many = [
            calls(&["x"]),
            user("1"),
            result("y"),
            calls(&["z"]),
            result("z"),
            result("z"),
            calls(&["", ""]),
            result(""),
            message(json!({"role": "custom", "content": [null], "customType": "c"})),
        ];
        let notice = repair_notice(&many).unwrap();
        assert!(
            notice.ends_with("There are 3 more repairs of other kinds."),
            "{notice}"
        );
        let bash = message(json!({"role": "bashExecution", "command": "ls", "output": ""}));
        let injected = [calls(&["x"]), bash, result("x")];
        let notice = repair_notice(&injected).unwrap();
        assert!(notice.contains("stands apart from the call"), "{notice}");
    }
}
