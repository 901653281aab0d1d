//! What handlers are called with, in one list with the events that subscribers were sent before.

use std::sync::{Arc, Mutex};

use pliant_kernel::session::{Session, Subscription};
use pliant_sdk::Plugin;
use serde_json::Value;

use crate::support::word;

/// The list. Clones share it.
#[derive(Clone, Default)]
pub struct Heard {
    words: Arc<Mutex<Vec<String>>>,
    payloads: Arc<Mutex<Vec<Value>>>,
    events: Arc<Mutex<Option<Subscription>>>,
}

impl Heard {
    /// Listens to the events of a session too.
    pub fn listen(&self, session: &Session) {
        *self.events.lock().unwrap() = Some(session.subscribe());
    }

    /// A handler of `event` that answers the same every time.
    pub fn answering(&self, plugin: Plugin, event: &'static str, answer: Value) -> Plugin {
        let heard = self.clone();
        plugin.on_event(event, move |payload, ctx| {
            let (heard, answer) = (heard.clone(), answer.clone());
            async move {
                let idle = ctx.host().session().is_idle().await?;
                heard.note(event, payload, idle);
                Ok(answer)
            }
        })
    }

    /// Handlers of these events that only listen.
    pub fn hearing(&self, plugin: Plugin, events: &[&'static str]) -> Plugin {
        let hear = |plugin, event: &&'static str| self.answering(plugin, event, Value::Null);
        events.iter().fold(plugin, hear)
    }

    fn note(&self, event: &str, payload: Value, idle: bool) {
        self.take_events();
        let idle = if idle { " idle" } else { "" };
        let mut words = self.words.lock().unwrap();
        words.push(format!("<{event}{idle}>"));
        self.payloads.lock().unwrap().push(payload);
    }

    fn take_events(&self) {
        let mut events = self.events.lock().unwrap();
        let Some(events) = &mut *events else { return };
        while let Ok(event) = events.try_recv() {
            self.words.lock().unwrap().extend(word(&event));
        }
    }

    /// What came since the last time and begins with one of these words; handlers are in `<>`.
    pub fn told(&self, kinds: &[&str]) -> Vec<String> {
        self.take_events();
        let mut words = std::mem::take(&mut *self.words.lock().unwrap());
        words.retain(|word| word.starts_with('<') || kinds.iter().any(|k| word.starts_with(k)));
        words
    }

    /// What the handlers were called with since the last time.
    pub fn payloads(&self) -> Vec<Value> {
        std::mem::take(&mut *self.payloads.lock().unwrap())
    }
}
