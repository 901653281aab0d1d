//! What is queued is shown, delivered when its time has come, and not lost.

use std::collections::HashSet;

use pliant_kernel::session::Disposition;
use pliant_sdk::Event;

use super::{Broken, require, user_begins};
use crate::record::{Prompted, Record};
use crate::script::{Script, Way};

/// Invariants 23, 25 and 26.
pub fn check(script: &Script, record: &Record) -> Broken {
    // An input handler gives several prompts one text.
    let mut texts = HashSet::new();
    let queued = |prompt: &&Prompted| prompt.told() == [Disposition::Queued];
    let queued: Vec<&Prompted> = record.prompts.iter().filter(queued).collect();
    let mut queues = Queues {
        one_steering: !script.setting.all_steering,
        follow_ups: queued
            .iter()
            .filter(|prompt| prompt.way == Some(Way::FollowUp))
            .map(|prompt| prompt.text.clone())
            .collect(),
        steering: queued
            .iter()
            .filter(|prompt| prompt.way == Some(Way::Steer))
            .map(|prompt| prompt.text.clone())
            .collect(),
        ..Queues::default()
    };
    for (at, event) in record.events.iter().enumerate() {
        queues
            .see(event)
            .map_err(|rule| format!("event {at}: {rule}"))?;
    }
    for prompt in queued {
        require(texts.insert(&prompt.text), "the script has a text twice")?;
        let places = [
            queues.delivered.contains(&prompt.text),
            record.cleared.contains(&prompt.text),
            queues.shown().any(|text| *text == prompt.text),
        ];
        require(
            places.iter().filter(|there| **there).count() == 1,
            format!(
                "{:?} was queued, and is now delivered, cleared, shown: {places:?}",
                prompt.text
            ),
        )?;
    }
    Ok(())
}

#[derive(Default)]
struct Queues {
    one_steering: bool,
    follow_ups: HashSet<String>,
    steering: HashSet<String>,
    /// As shown last.
    shown: (Vec<String>, Vec<String>),
    delivered: HashSet<String>,
    /// Steering that was shown when the last turn ended.
    left: Vec<String>,
    /// This turn, and the last one, had calls that do not end the run.
    calls: bool,
    pending_calls: bool,
    /// Steering messages since the turn began.
    entered: usize,
}

impl Queues {
    fn see(&mut self, event: &Event) -> Broken {
        match event {
            Event::QueueUpdate {
                steering,
                follow_up,
            } => {
                self.shown = (steering.clone(), follow_up.clone());
                // Both lists empty: what the user took back overtakes nobody, nor is it overtaken.
                if steering.is_empty() && follow_up.is_empty() {
                    self.left.clear();
                }
                for text in steering.iter().chain(follow_up) {
                    require(
                        !self.delivered.contains(text),
                        format!("{text:?} is shown as queued after it was delivered"),
                    )?;
                }
            }
            Event::AgentStart => {
                self.pending_calls = false;
            }
            Event::TurnStart => self.entered = 0,
            Event::ToolExecutionEnd {
                result,
                parent_tool_call_id: None,
                ..
            } => self.calls |= !result.terminate,
            Event::TurnEnd { .. } => {
                self.pending_calls = std::mem::take(&mut self.calls);
                self.left.clone_from(&self.shown.0);
            }
            _ => {
                if let Some(text) = user_begins(event) {
                    self.begins(text)?;
                }
            }
        }
        Ok(())
    }

    fn begins(&mut self, text: String) -> Broken {
        require(
            self.shown().all(|shown| *shown != text),
            format!("{text:?} begins and is shown as queued"),
        )?;
        if self.steering.contains(&text) {
            self.entered += 1;
            require(
                !self.one_steering || self.entered == 1,
                "two steering messages enter one turn, and one at a time is wanted",
            )?;
        }
        if self.follow_ups.contains(&text) {
            let left = self
                .left
                .iter()
                .find(|left| !self.delivered.contains(*left));
            require(
                left.is_none(),
                format!("the follow-up {text:?} overtakes the steering {left:?}"),
            )?;
            require(
                !self.pending_calls,
                format!("the follow-up {text:?} enters though calls are pending"),
            )?;
        }
        self.delivered.insert(text);
        Ok(())
    }

    fn shown(&self) -> impl Iterator<Item = &String> {
        self.shown.0.iter().chain(&self.shown.1)
    }
}
