//! What of a session file could not be read, as sentences for the user (`kernel.md` S16).

use std::fmt;

use super::EntryId;

/// Part of a session file that could not be read. It stays in the file (S16).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Counted from 1.
    pub line: usize,
    /// Size of the unreadable part.
    pub bytes: usize,
    /// What is wrong with it.
    pub reason: &'static str,
    /// The entry behind which the record is taken to have stood, where that was guessed.
    pub behind: Option<EntryId>,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            bytes,
            reason,
            behind,
        } = self;
        match bytes {
            0 => write!(f, "Before line {line} of the session file {reason}.")?,
            _ => write!(
                f,
                "Line {line} of the session file was skipped: {bytes} bytes are {reason}. They stay \
                 in the file."
            )?,
        }
        match behind {
            Some(id) => write!(
                f,
                " The conversation is led over it as if it had followed entry {id}."
            ),
            None => Ok(()),
        }
    }
}

/// Damage as sentences: the first few places of it, and how many more there are.
#[must_use]
pub fn tell_damage(damage: &[Damage]) -> Vec<String> {
    const SHOWN: usize = 3;
    let mut told: Vec<String> = damage.iter().take(SHOWN).map(ToString::to_string).collect();
    if let Some(more @ 1..) = damage.len().checked_sub(SHOWN) {
        told.push(format!(
            "{more} more places of the session's file could not be read."
        ));
    }
    told
}
