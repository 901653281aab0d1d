//! Names for sessions and entries (`kernel.md` S2, S6), and where their time and chance come from.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::TreeError;

/// Name of an entry, unique in its file.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntryId(Arc<str>);

impl EntryId {
    /// The name as it stands in the file.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for EntryId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl From<String> for EntryId {
    fn from(id: String) -> Self {
        Self(id.into())
    }
}

impl std::borrow::Borrow<str> for EntryId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// Name of a session. Files written by others may hold any text; [`SessionId::parse`] checks what
/// a caller supplies.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(String);

impl SessionId {
    /// Letters, digits, `.`, `_` and `-`, with a letter or digit at both ends (S2).
    ///
    /// # Errors
    /// [`TreeError::InvalidSessionId`] for any other text.
    pub fn parse(id: &str) -> Result<Self, TreeError> {
        let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
        let bytes = id.as_bytes();
        if ends(bytes.first()) && ends(bytes.last()) && bytes.iter().copied().all(inner) {
            Ok(Self(id.to_owned()))
        } else {
            Err(TreeError::InvalidSessionId { id: id.to_owned() })
        }
    }

    /// A name read from a file, unchecked.
    pub(super) fn stored(id: &str) -> Self {
        Self(id.to_owned())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The clock and the dice that a tree uses; a test brings its own.
#[derive(Clone)]
pub struct Ids {
    now_ms: Arc<dyn Fn() -> i64 + Send + Sync>,
    random: Arc<dyn Fn() -> u128 + Send + Sync>,
}

impl fmt::Debug for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ids")
    }
}

impl Ids {
    /// Uses the given clock (Unix milliseconds) and source of randomness.
    pub fn new(
        now_ms: impl Fn() -> i64 + Send + Sync + 'static,
        random: impl Fn() -> u128 + Send + Sync + 'static,
    ) -> Self {
        Self {
            now_ms: Arc::new(now_ms),
            random: Arc::new(random),
        }
    }

    /// Uses the system's clock and the process's hash seeds, which the system draws at random.
    #[must_use]
    pub fn system() -> Self {
        Self::new(system_now_ms, system_random)
    }

    /// Unix milliseconds.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        (self.now_ms)()
    }

    /// A UUID of version 7: time first, so that names sort by age.
    #[must_use]
    pub fn session_id(&self) -> SessionId {
        let time = u128::from(self.now_ms().max(0).unsigned_abs()) & 0xffff_ffff_ffff;
        let chance = (self.random)() & !(0xffff_ffff_ffff << 80);
        SessionId(uuid(time << 80 | chance, 7))
    }

    /// The first eight digits of a random UUID, drawn again while taken, then a whole one (S6).
    #[must_use]
    pub fn entry_id(&self, taken: impl Fn(&str) -> bool) -> EntryId {
        for _ in 0..100 {
            let id = format!("{:08x}", (self.random)() >> 96);
            if !taken(&id) {
                return EntryId::from(id);
            }
        }
        EntryId::from(uuid((self.random)(), 4))
    }
}

fn uuid(bits: u128, version: u128) -> String {
    let bits = bits & !(0xf << 76) & !(0b11 << 62) | version << 76 | 0b10 << 62;
    let hex = format!("{bits:032x}");
    let (a, rest) = hex.split_at(8);
    let (b, rest) = rest.split_at(4);
    let (c, rest) = rest.split_at(4);
    let (d, e) = rest.split_at(4);
    format!("{a}-{b}-{c}-{d}-{e}")
}

fn system_now_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Every `RandomState` has other keys, so its hash of nothing is a fresh number. The process id and
/// the time go in as well: a forked process starts with its parent's keys.
fn system_random() -> u128 {
    let draw = || {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        hasher.write_i64(system_now_ms());
        u128::from(hasher.finish())
    };
    draw() << 64 | draw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_are_time_ordered_uuids_of_version_7() {
        // S2
        let at = |ms: i64, chance: u128| {
            Ids::new(move || ms, move || chance)
                .session_id()
                .to_string()
        };
        assert_eq!(
            at(0x0199_0000_0001, u128::MAX),
            "01990000-0001-7fff-bfff-ffffffffffff"
        );
        assert_eq!(
            at(0x0199_0000_0002, 0),
            "01990000-0002-7000-8000-000000000000"
        );
        let (a, b) = (Ids::system().session_id(), Ids::system().session_id());
        assert_ne!(a, b);
        assert!(SessionId::parse(a.as_str()).is_ok());
    }

    #[test]
    fn a_taken_entry_id_is_drawn_again_and_in_the_end_a_whole_uuid() {
        // S6
        let ids = Ids::new(|| 0, || 0xdead_beef << 96);
        assert_eq!(ids.entry_id(|_| false).as_str(), "deadbeef");
        assert_eq!(
            ids.entry_id(|id| id == "deadbeef").as_str(),
            "deadbeef-0000-4000-8000-000000000000"
        );
    }

    #[test]
    fn a_callers_session_id_is_alphanumeric_with_dots_dashes_and_underscores_inside() {
        // S2
        for good in ["a", "job-42", "A.b_c-9", "7"] {
            assert!(SessionId::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "-x", "end-", "a b", "a/b", "..", "é", "a\n"] {
            assert!(SessionId::parse(bad).is_err(), "{bad}");
        }
    }
}
