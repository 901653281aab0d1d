//! The system messages of a request: as they stand in the session, without hidden tools, or all as
//! one message.

use std::collections::BTreeSet;
use std::sync::Arc;

use pliant_sdk::history::replay;
use pliant_sdk::message::{Message, MessageContent, SystemMessage};

use super::RequestView;

/// Made messages, kept so that the next request gets the same values.
#[derive(Debug, Default)]
pub(super) struct SystemMessages {
    hidden: Arc<BTreeSet<String>>,
    /// A system message, and what is left of it without the hidden tools.
    shown: Vec<(Arc<Message>, Option<Arc<Message>>)>,
    state: Option<Arc<Message>>,
    forced: Option<Arc<Message>>,
}

impl SystemMessages {
    /// The messages as the view shows them.
    pub(super) fn show(
        &mut self,
        messages: &[Arc<Message>],
        view: &RequestView,
    ) -> Vec<Arc<Message>> {
        let shown = if view.hidden_tools.is_empty() {
            messages.to_vec()
        } else {
            self.without(messages, &view.hidden_tools)
        };
        match &view.forced_prompt {
            None => shown,
            Some(prompt) => self.force(&shown, prompt),
        }
    }

    /// Prompt and tools that the messages add up to (M10).
    pub(super) fn state(&mut self, messages: &[Arc<Message>]) -> Option<Arc<Message>> {
        let state = replay(messages.iter().filter_map(system))?;
        Some(keep(&mut self.state, state))
    }

    /// One message with this prompt and the tools in force, and then the conversation (P42).
    fn force(&mut self, messages: &[Arc<Message>], prompt: &str) -> Vec<Arc<Message>> {
        let state = replay(messages.iter().filter_map(system)).unwrap_or_default();
        let forced = SystemMessage {
            content: MessageContent::Text(prompt.to_owned()),
            sections: None,
            ..state
        };
        let said = messages.iter().filter(|message| system(message).is_none());
        let head = keep(&mut self.forced, forced);
        std::iter::once(head).chain(said.cloned()).collect()
    }

    fn without(
        &mut self,
        messages: &[Arc<Message>],
        hidden: &Arc<BTreeSet<String>>,
    ) -> Vec<Arc<Message>> {
        if self.hidden != *hidden {
            self.shown.clear();
            self.hidden = Arc::clone(hidden);
        }
        let mut nth = 0;
        let show = |message: &Arc<Message>| {
            let Some(patch) = system(message) else {
                return Some(Arc::clone(message));
            };
            let known = self.shown.get(nth).map(|(of, _)| Arc::ptr_eq(of, message));
            if known != Some(true) {
                self.shown.truncate(nth);
                let left = without_tools(message, patch, hidden);
                self.shown.push((Arc::clone(message), left));
            }
            nth += 1;
            self.shown[nth - 1].1.clone()
        };
        messages.iter().filter_map(show).collect()
    }
}

/// The message without what it says of the hidden tools; `None` when that was all it said.
fn without_tools(
    message: &Arc<Message>,
    patch: &SystemMessage,
    hidden: &BTreeSet<String>,
) -> Option<Arc<Message>> {
    let added = patch.tools_added.iter().flatten().map(|tool| &tool.name);
    let removed = patch.tools_removed.iter().flatten().map(|tool| &tool.name);
    if !added.chain(removed).any(|name| hidden.contains(name)) {
        return Some(Arc::clone(message));
    }
    let mut left = patch.clone();
    if let Some(added) = &mut left.tools_added {
        added.retain(|tool| !hidden.contains(&tool.name));
    }
    if let Some(removed) = &mut left.tools_removed {
        removed.retain(|tool| !hidden.contains(&tool.name));
    }
    left.tools_added = left.tools_added.filter(|tools| !tools.is_empty());
    left.tools_removed = left.tools_removed.filter(|tools| !tools.is_empty());
    let says_something = left.tools_added.is_some()
        || left.tools_removed.is_some()
        || left.sections.is_some()
        || !left.content.joined_text("").is_empty();
    says_something.then(|| Arc::new(Message::System(left)))
}

fn system(message: &Arc<Message>) -> Option<&SystemMessage> {
    match &**message {
        Message::System(message) => Some(message),
        _ => None,
    }
}

/// The message of the last time if it says the same.
fn keep(kept: &mut Option<Arc<Message>>, made: SystemMessage) -> Arc<Message> {
    let made = Message::System(made);
    match kept {
        Some(kept) if **kept == made => Arc::clone(kept),
        _ => Arc::clone(kept.insert(Arc::new(made))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages() -> Vec<Arc<Message>> {
        let tool = |name: &str| json!({"name": name, "description": "", "parameters": {}});
        [
            json!({"role": "system", "content": "p", "sections": {"rules": "r"}, "timestamp": 7,
                "toolsAdded": [tool("a"), tool("b")]}),
            json!({"role": "user", "content": "1"}),
            json!({"role": "system", "content": "", "toolsRemoved": [{"name": "b"}]}),
            json!({"role": "user", "content": "2"}),
            json!({"role": "system", "content": "q", "toolsAdded": [tool("b"), tool("c")]}),
        ]
        .map(|value| Arc::new(Message::from(value)))
        .to_vec()
    }

    fn tools(message: &Message) -> Vec<&str> {
        let Message::System(message) = message else {
            panic!("a system message");
        };
        let added = message.tools_added.iter().flatten();
        added.map(|tool| tool.name.as_str()).collect()
    }

    fn same(one: &[Arc<Message>], other: &[Arc<Message>]) -> bool {
        one.len() == other.len() && one.iter().zip(other).all(|(a, b)| Arc::ptr_eq(a, b))
    }

    #[test]
    fn hidden_tools_are_not_declared_and_what_says_nothing_else_is_left_out() {
        let (mut system, messages) = (SystemMessages::default(), messages());
        let view = RequestView {
            hidden_tools: Arc::new(BTreeSet::from(["b".to_owned()])),
            ..RequestView::default()
        };
        let shown = system.show(&messages, &view);
        assert_eq!(shown.len(), 4);
        assert_eq!((tools(&shown[0]), tools(&shown[3])), (vec!["a"], vec!["c"]));
        assert!(Arc::ptr_eq(&shown[1], &messages[1]) && Arc::ptr_eq(&shown[2], &messages[3]));
        assert!(same(&shown, &system.show(&messages, &view)));
    }

    #[test]
    fn a_forced_prompt_stands_for_all_system_messages_and_keeps_the_tools() {
        // P42
        let (mut system, messages) = (SystemMessages::default(), messages());
        let view = RequestView {
            hidden_tools: Arc::new(BTreeSet::from(["a".to_owned()])),
            forced_prompt: Some("Be brief.".into()),
        };
        let shown = system.show(&messages, &view);
        let Message::System(head) = &*shown[0] else {
            panic!("a system message");
        };
        assert_eq!(head.content, MessageContent::Text("Be brief.".into()));
        assert_eq!((head.sections.as_ref(), head.timestamp), (None, 7));
        assert_eq!(tools(&shown[0]), ["b", "c"]);
        assert!(same(
            &shown[1..],
            &[messages[1].clone(), messages[3].clone()]
        ));
        assert!(same(&shown, &system.show(&messages, &view)));
        // Without any system message there is one all the same.
        assert_eq!(system.show(&messages[1..2], &view).len(), 2);
    }

    #[test]
    fn the_state_is_one_message_and_the_same_value_while_it_says_the_same() {
        // M10
        let (mut system, mut messages) = (SystemMessages::default(), messages());
        let state = system.state(&messages).unwrap();
        assert_eq!(tools(&state), ["a", "b", "c"]);
        messages.push(Arc::new(Message::user("3", 0)));
        assert!(Arc::ptr_eq(&state, &system.state(&messages).unwrap()));
        assert_eq!(system.state(&messages[1..2]), None);
    }
}
