//! Damage: what had to be repaired of a history, counted and told.
//!
//! What is normal is no damage: failed answers that are left out with their calls and results,
//! thinking and ids of another model, images that a model cannot see, and system messages that wait
//! for results.

use std::collections::BTreeMap;
use std::fmt;

/// What was wrong with a part of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Damage {
    /// A call that nothing answers; an error result stands for the missing one.
    CallWithoutResult,
    /// A result of no call; left out.
    ResultWithoutCall,
    /// A result with something other than results between it and its call, or before its call;
    /// moved behind the call.
    DisplacedResult,
    /// A result of a call that another result answers; left out.
    SurplusResult,
    /// A call with an id that is missing, ill-formed, or that of another call of the same answer; renamed
    /// with its result.
    UnusableId,
    /// A call that repeats another of the same answer word for word; left out.
    RepeatedCall,
    /// A call of a tool whose name no service takes; the name is changed.
    UnusableToolName,
    /// A block of no known kind, or of one that its message cannot hold; left out.
    UnreadableBlock,
    /// An image without proper data, or of a kind that services do not take; a text stands for it.
    UnusableImage,
}

/// One kind of damage that was repaired, and how often. Its text is a sentence for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repair {
    /// What was wrong.
    pub damage: Damage,
    /// How often; at least once.
    pub count: usize,
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (one, many, rest) = words(self.damage);
        match self.count {
            1 => write!(f, "One {one} {rest}"),
            count => write!(f, "{count} {many} {rest}"),
        }
    }
}

/// The subject and verb for one, the same for many, and what is said of both.
fn words(damage: Damage) -> (&'static str, &'static str, &'static str) {
    match damage {
        Damage::CallWithoutResult => (
            "tool call has",
            "tool calls have",
            "no result, as after an interruption: an error result stands in its place.",
        ),
        Damage::ResultWithoutCall => (
            "tool result belongs",
            "tool results belong",
            "to no tool call: nothing of them is sent.",
        ),
        Damage::DisplacedResult => (
            "tool result stands",
            "tool results stand",
            "apart from the call it answers: it is sent directly behind the call.",
        ),
        Damage::SurplusResult => (
            "tool result answers",
            "tool results answer",
            "a call that another result answers: only the first is sent.",
        ),
        Damage::UnusableId => (
            "tool call has",
            "tool calls have",
            "an id that is missing, ill-formed, or that of another call of the same answer: another is used for the call and its result.",
        ),
        Damage::RepeatedCall => (
            "tool call repeats",
            "tool calls repeat",
            "another of the same answer word for word: only the first is sent.",
        ),
        Damage::UnusableToolName => (
            "tool call names",
            "tool calls name",
            "a tool in a way that no service takes: a similar name is sent.",
        ),
        Damage::UnreadableBlock => (
            "part of a message is",
            "parts of messages are",
            "of a kind that cannot be read or sent there: it is left out.",
        ),
        Damage::UnusableImage => (
            "image is",
            "images are",
            "damaged or of a kind that models do not take: a note stands in its place.",
        ),
    }
}

/// Damage as it is found.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally(BTreeMap<Damage, usize>);

impl Tally {
    pub(super) fn add(&mut self, damage: Damage) {
        *self.0.entry(damage).or_default() += 1;
    }

    pub(super) fn repairs(&self) -> Vec<Repair> {
        let counts = self.0.iter();
        counts
            .map(|(damage, count)| Repair {
                damage: *damage,
                count: *count,
            })
            .collect()
    }
}
