//! Ids of calls and names of tools, as services take them.

use std::borrow::Cow;

use crate::message::AssistantMessage;

/// Longest name of a tool that services take.
const MAX_TOOL_NAME_CHARS: usize = 64;

/// The ids of tool calls that a service takes.
pub trait IdRule {
    /// The id under which a call of another model is sent. Also asked for an id of the same model
    /// that [`IdRule::accepts`] refuses, and for made-up ones (`call_` and some base-36 digits).
    fn foreign(&self, id: &str, from: &AssistantMessage) -> String;

    /// Whether the service takes an id as it is. Ids of the same model are left alone then.
    fn accepts(&self, id: &str) -> bool;
}

/// Takes every id there is. What remains is that each call has an id, and no two the same: the least
/// that whoever gets a transcript may rely on.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnyId;

impl IdRule for AnyId {
    fn foreign(&self, id: &str, _from: &AssistantMessage) -> String {
        id.to_owned()
    }

    fn accepts(&self, id: &str) -> bool {
        !id.is_empty()
    }
}

/// A name that every service takes: other characters become `_`, what is too long is cut.
#[must_use]
pub fn tool_name(name: &str) -> Cow<'_, str> {
    if name.is_empty() {
        return Cow::Borrowed("unnamed");
    }
    if name.len() <= MAX_TOOL_NAME_CHARS && name.chars().all(is_id_char) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(sanitize_id(name, MAX_TOOL_NAME_CHARS))
}

/// Replaces what is not of `[A-Za-z0-9_-]` by `_` and cuts after `max_chars`.
#[must_use]
pub fn sanitize_id(id: &str, max_chars: usize) -> String {
    id.chars()
        .take(max_chars)
        .map(|ch| if is_id_char(ch) { ch } else { '_' })
        .collect()
}

fn is_id_char(ch: char) -> bool {
    ch.is_ascii_alphanumeric() || matches!(ch, '_' | '-')
}

/// The 64-bit hash of `providers.md` §6 in base 36, for ids that must not be long. The same as
/// pi's, so that a history has the same bytes in both.
#[must_use]
pub fn short_hash(text: &str) -> String {
    let (mut a, mut b) = (0xdead_beef_u32, 0x41c6_ce57_u32);
    for unit in text.encode_utf16() {
        a = (a ^ u32::from(unit)).wrapping_mul(2_654_435_761);
        b = (b ^ u32::from(unit)).wrapping_mul(1_597_334_677);
    }
    let mix = |x: u32, y: u32| {
        (x ^ (x >> 16)).wrapping_mul(2_246_822_507) ^ (y ^ (y >> 13)).wrapping_mul(3_266_489_909)
    };
    a = mix(a, b);
    b = mix(b, a);
    base36(b) + &base36(a)
}

pub(super) fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}
