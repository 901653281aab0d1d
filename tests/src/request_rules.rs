//! Rules that the requests of a conversation must satisfy, whatever the test is about; what a service
//! wants of each is in [`crate::wires`]. Requests come in as chat-completions messages; what is wrong
//! with them goes out as sentences.

use serde_json::Value;

use crate::reply::Said;

/// What is wrong with a request that any service would take: pliant always says who it is.
pub(crate) fn lead(messages: &[Value]) -> Option<String> {
    let leads = messages.first().is_some_and(is_system);
    (!leads).then(|| "the first message is no system message".to_owned())
}

/// The conversations that a server holds, to see that none loses or changes a message.
///
/// System messages are left out: a new set of tools may rewrite them.
#[derive(Debug, Default)]
pub(crate) struct Conversations(Vec<Conversation>);

#[derive(Debug)]
struct Conversation {
    messages: Vec<Value>,
    said: Option<Said>,
}

impl Conversations {
    /// Places a request in its conversation; answers the conversation and what is wrong.
    ///
    /// A request that continues none opens one, unless it holds replies and one with the same
    /// first message is known: then something was lost.
    pub(crate) fn place(&mut self, messages: &[Value]) -> (usize, Option<String>) {
        let messages: Vec<Value> = messages.iter().filter(|m| !is_system(m)).cloned().collect();
        let fresh = !messages.iter().any(|m| role(m) == "assistant");
        let mut lost = None;
        for at in (0..self.0.len()).rev() {
            let known = &self.0[at];
            if known.messages.first() != messages.first() {
                continue;
            }
            match known.continued_by(&messages) {
                Ok(()) => {
                    self.0[at] = Conversation {
                        messages,
                        said: None,
                    };
                    return (at, None);
                }
                Err(wrong) => lost = lost.or(Some(wrong)),
            }
        }
        self.0.push(Conversation {
            messages,
            said: None,
        });
        (self.0.len() - 1, lost.filter(|_| !fresh))
    }

    /// The reply that the conversation's next request must hold.
    pub(crate) fn said(&mut self, conversation: usize, said: Option<Said>) {
        self.0[conversation].said = said;
    }
}

impl Conversation {
    fn continued_by(&self, later: &[Value]) -> Result<(), String> {
        if let Some(at) =
            (0..self.messages.len()).find(|at| self.messages.get(*at) != later.get(*at))
        {
            let now = later
                .get(at)
                .map_or_else(|| "nothing".to_owned(), ToString::to_string);
            return Err(format!(
                "message {at} (system messages not counted) was {} and is now {now}",
                self.messages[at]
            ));
        }
        match (&self.said, later.get(self.messages.len())) {
            (Some(said), Some(message)) if !repeats(message, said) => Err(format!(
                "the model said {said:?} and the next request has {message} in its place"
            )),
            _ => Ok(()),
        }
    }
}

fn repeats(message: &Value, said: &Said) -> bool {
    let calls = calls(message);
    role(message) == "assistant"
        && text(message) == said.text
        && calls.len() == said.calls.len()
        && calls
            .iter()
            .zip(&said.calls)
            .all(|(call, (id, name, arguments))| {
                // Arguments that were no JSON object cannot be repeated as they were.
                let wanted = serde_json::from_str(arguments)
                    .ok()
                    .filter(Value::is_object);
                let sent = call["function"]["arguments"].as_str().unwrap_or_default();
                call["id"] == **id
                    && call["function"]["name"] == **name
                    && wanted.is_none_or(|wanted| serde_json::from_str(sent).ok() == Some(wanted))
            })
}

/// Role of a message.
pub(crate) fn role(message: &Value) -> &str {
    message["role"].as_str().unwrap_or_default()
}

/// Whether it is a system message, under either name.
pub(crate) fn is_system(message: &Value) -> bool {
    matches!(role(message), "system" | "developer")
}

/// The text of a message, its parts joined.
pub(crate) fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}

fn calls(message: &Value) -> &[Value] {
    message["tool_calls"].as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn system() -> Value {
        json!({"role": "system", "content": "s"})
    }
    fn user(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }
    fn says(text: &str) -> Value {
        json!({"role": "assistant", "content": text})
    }
    fn calls(ids: &[&str], arguments: &str) -> Value {
        let call = |id: &&str| {
            json!({"id": id, "type": "function",
                "function": {"name": "read", "arguments": arguments}})
        };
        json!({"role": "assistant", "content": null,
            "tool_calls": ids.iter().map(call).collect::<Vec<_>>()})
    }
    fn result(id: &str) -> Value {
        json!({"role": "tool", "tool_call_id": id, "content": "r"})
    }

    #[test]
    fn a_prompt_leads() {
        assert_eq!(lead(&[system(), user("u")]), None);
        assert!(lead(&[user("u")]).is_some());
        assert!(lead(&[]).is_some());
    }

    #[test]
    fn a_conversation_only_grows() {
        let said = |text: &str| {
            let text = text.to_owned();
            Some(Said {
                text,
                calls: Vec::new(),
            })
        };
        let mut all = Conversations::default();
        assert_eq!(all.place(&[system(), user("1")]), (0, None));
        all.said(0, said("x"));
        // The prompt may change, the conversation may not.
        let prompt = json!({"role": "system", "content": "another"});
        let grown = [prompt, user("1"), says("x"), user("2")];
        assert_eq!(all.place(&grown), (0, None));
        assert_eq!(all.place(&grown), (0, None), "a retry repeats the request");
        let (_, lost) = all.place(&[system(), user("1"), says("x")]);
        assert!(lost.expect("a message was lost").contains("is now nothing"));
        let (_, changed) = all.place(&[system(), user("1"), says("y"), user("2")]);
        assert!(changed.expect("a message changed").contains("message 1"));
        assert_eq!(
            all.place(&[system(), user("1")]).1,
            None,
            "a second run of the same prompt"
        );
        assert_eq!(all.place(&[system(), user("other"), says("z")]).1, None);
    }

    #[test]
    fn the_models_own_words_come_back_in_the_next_request() {
        let mut all = Conversations::default();
        let call = |arguments: &str| {
            let call = ("a".to_owned(), "read".to_owned(), arguments.to_owned());
            Some(Said {
                text: String::new(),
                calls: vec![call],
            })
        };
        let next = |arguments| [system(), user("1"), calls(&["a"], arguments), result("a")];
        let (at, _) = all.place(&[system(), user("1")]);
        all.said(at, call("{\"path\": \"x\"}"));
        assert!(all.place(&next("{}")).1.is_some());
        let (at, _) = all.place(&[system(), user("1")]);
        all.said(at, call("{\"path\": \"x\"}"));
        assert_eq!(all.place(&next("{\"path\":\"x\"}")).1, None);
    }
}
