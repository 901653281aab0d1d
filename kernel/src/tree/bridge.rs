//! Leading a branch over records that are gone, so that it loses them and not everything before
//! them (reports S05). An entry without content takes the place of each.

use std::collections::{HashMap, HashSet};

use pliant_sdk::message::Message;

use super::damage::Damage;
use super::{Entry, EntryId};

/// Damage between entries, and what is needed to lead a branch over it.
pub(super) struct Gap {
    pub(super) damage: Damage,
    /// Entries before it.
    pub(super) before: usize,
    /// Not even a record; one without a name was nobody's parent.
    pub(super) torn: bool,
    /// Who the record was, if that much can be read.
    pub(super) was: Option<Lost>,
}

/// A record that is gone.
#[derive(Clone)]
pub(super) struct Lost {
    pub(super) id: EntryId,
    pub(super) parent: Option<EntryId>,
    pub(super) timestamp: Box<str>,
}

/// Parents that no entry is, with the place of the first child that names each.
type Missing = HashMap<EntryId, usize>;

/// Puts an entry without content in the place of every missing parent whose place is known. That it is, says the
/// head of a damaged record, or a damaged record directly before the child; or, where no damage is
/// left, the entry before the child: behind a call or a result there was something. What else names
/// a missing parent begins a branch of its own (S20). Answers the gaps that no damage shows; those
/// of which the place was guessed say so.
pub(super) fn bridge(entries: &mut Vec<Entry>, gaps: &mut [Gap]) -> Vec<Damage> {
    let mut missing = missing(entries);
    if missing.is_empty() {
        return Vec::new();
    }
    let ids: HashSet<&EntryId> = match gaps {
        [] => HashSet::new(),
        _ => entries.iter().map(Entry::id).collect(),
    };
    let mut bridges: Vec<(usize, Lost)> = Vec::new();
    // The parent that is missing at a place, of the entry or the bridge that comes next there.
    let mut sought: HashMap<usize, EntryId> = HashMap::new();
    for gap in gaps.iter_mut().rev() {
        let next = sought.get(&gap.before).cloned().or_else(|| {
            let parent = entries.get(gap.before)?.parent()?;
            (missing.get(parent) == Some(&gap.before)).then(|| parent.clone())
        });
        let Some((lost, guessed)) = gap.record(entries, &missing, next) else {
            continue;
        };
        // Before its first child: the last entry of the file is one that has a line (S21).
        let child = missing.remove(&lost.id).unwrap_or(gap.before);
        let at = gap.before.min(child);
        sought.remove(&gap.before);
        if let Some(parent) = lost.parent.as_ref().filter(|id| !ids.contains(id)) {
            missing.entry(parent.clone()).or_insert(at);
            sought.insert(at, parent.clone());
        }
        if guessed {
            gap.damage.behind.clone_from(&lost.parent);
        }
        bridges.push((at, lost));
    }
    let mut unseen = Vec::new();
    for (id, at) in missing {
        if let Some(before) = at.checked_sub(1).and_then(|at| entries.get(at))
            && is_followed(before)
        {
            unseen.push(Damage {
                line: entries[at].at_line as usize,
                bytes: 0,
                reason: "a record is missing",
                behind: Some(before.id().clone()),
            });
            bridges.push((at, Lost::behind(id, before)));
        }
    }
    bridges.reverse();
    bridges.sort_by_key(|(at, _)| *at);
    let mut bridges = bridges.into_iter().peekable();
    let mut bridged = Vec::with_capacity(entries.len() + bridges.len());
    for (at, entry) in std::mem::take(entries).into_iter().enumerate() {
        while let Some((_, lost)) = bridges.next_if(|(before, _)| *before <= at) {
            bridged.push(Entry::gone(lost.id, lost.parent, &lost.timestamp));
        }
        bridged.push(entry);
    }
    *entries = bridged;
    unseen
}

fn missing(entries: &[Entry]) -> Missing {
    let mut missing = Missing::new();
    for (at, entry) in entries.iter().enumerate() {
        let Some(parent) = entry.parent() else {
            continue;
        };
        // Nearly every parent is the entry before.
        let before = at.checked_sub(1).map(|at| entries[at].id());
        if before != Some(parent) {
            missing.entry(parent.clone()).or_insert(at);
        }
    }
    if !missing.is_empty() {
        for entry in entries {
            missing.remove(entry.id());
        }
    }
    missing
}

/// Whether something certainly came after it on its branch.
fn is_followed(entry: &Entry) -> bool {
    match entry.message().map(|message| &**message) {
        Some(Message::Assistant(answer)) => answer.tool_calls().next().is_some(),
        Some(Message::ToolResult(_)) => true,
        _ => false,
    }
}

impl Lost {
    fn behind(id: EntryId, before: &Entry) -> Self {
        Self {
            id,
            parent: Some(before.id().clone()),
            timestamp: before.timestamp().into(),
        }
    }
}

impl Gap {
    /// The record that was here, if it is one of the missing ones, and whether that is a guess.
    /// `next`: the missing parent of what comes directly behind.
    fn record(
        &self,
        entries: &[Entry],
        missing: &Missing,
        next: Option<EntryId>,
    ) -> Option<(Lost, bool)> {
        if let Some(was) = self
            .was
            .as_ref()
            .filter(|was| missing.contains_key(&was.id))
        {
            return Some((was.clone(), false));
        }
        let id = next.filter(|_| self.torn)?;
        // Damage may have eaten the end of one record and the head of the next.
        if let Some(was) = &self.was {
            let lost = Lost { id, ..was.clone() };
            return Some((lost, true));
        }
        let before = self.before.checked_sub(1).and_then(|at| entries.get(at));
        let lost = match before {
            Some(before) => Lost::behind(id, before),
            None => Lost {
                id,
                parent: None,
                timestamp: entries.get(self.before)?.timestamp().into(),
            },
        };
        Some((lost, true))
    }
}
