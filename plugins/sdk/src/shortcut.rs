//! Shortcuts: what a key does in a terminal interface (`extensions.md` §4.5).

use std::future::Future;

use serde::{Deserialize, Serialize};

use crate::command::CommandCtx;
use crate::error::Error;

/// Something that a key does.
///
/// ```
/// use pliant_sdk::command::CommandCtx;
/// use pliant_sdk::shortcut::{Shortcut, ShortcutSpec};
/// use pliant_sdk::testing::Bench;
/// use pliant_sdk::{Error, Plugin};
///
/// struct Stand;
///
/// impl Shortcut for Stand {
///     fn spec(&self) -> ShortcutSpec {
///         ShortcutSpec::new("Ctrl+Alt+S", "Show how things stand.")
///     }
///
///     async fn press(&self, ctx: CommandCtx) -> Result<(), Error> {
///         let _ = ctx.ui().notify("All is well.", Default::default()).await;
///         Ok(())
///     }
/// }
///
/// let bench = Bench::new(Plugin::new().shortcut(Stand));
/// assert!(bench.press("ctrl+alt+s").is_ok());
/// ```
pub trait Shortcut: Send + Sync + 'static {
    /// Key and description.
    fn spec(&self) -> ShortcutSpec;

    /// The key was pressed. What a command may do, this may do.
    fn press(&self, ctx: CommandCtx) -> impl Future<Output = Result<(), Error>> + Send;
}

/// A shortcut as the registry keeps it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShortcutSpec {
    /// The key, as [`normal`] writes it.
    pub name: String,
    /// One line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl ShortcutSpec {
    /// A shortcut with a one-line description. A key that there is not stays as it is written, and is
    /// refused when it is registered.
    pub fn new(key: &str, description: impl Into<String>) -> Self {
        Self {
            name: normal(key).unwrap_or_else(|_| key.to_owned()),
            description: Some(description.into()),
        }
    }
}

/// The modifiers, in the order in which they are written.
const MODIFIERS: [&str; 4] = ["ctrl", "alt", "shift", "super"];

/// Keys with names (`tui.md` §10) and what they are written as.
const NAMED: [(&str, &str); 18] = [
    ("escape", "escape"),
    ("esc", "escape"),
    ("enter", "enter"),
    ("return", "enter"),
    ("tab", "tab"),
    ("space", "space"),
    ("backspace", "backspace"),
    ("delete", "delete"),
    ("insert", "insert"),
    ("clear", "clear"),
    ("home", "home"),
    ("end", "end"),
    ("pageup", "pageup"),
    ("pagedown", "pagedown"),
    ("up", "up"),
    ("down", "down"),
    ("left", "left"),
    ("right", "right"),
];

/// A key in the one way it is compared in: lower case, the modifiers `ctrl`, `alt`, `shift`, `super` in
/// this order, `esc` as `escape` and `return` as `enter`.
///
/// # Errors
/// `invalid`, when there is no such key.
///
/// ```
/// use pliant_sdk::shortcut::normal;
///
/// assert_eq!(normal("Shift+Ctrl+Esc").unwrap(), "ctrl+shift+escape");
/// assert_eq!(normal("ctrl++").unwrap(), "ctrl++");
/// assert!(normal("ctrl").is_err());
/// ```
pub fn normal(key: &str) -> Result<String, Error> {
    let unknown = || {
        Error::invalid(format!(
            "\"{key}\" is no key: write modifiers (ctrl, alt, shift, super) and one key, joined by +, such as \"ctrl+g\" or \"alt+f2\""
        ))
    };
    let lower = key.trim().to_ascii_lowercase();
    // The key itself may be a plus.
    let (modifiers, name) = match lower.strip_suffix('+') {
        Some("") => ("", "+"),
        Some(rest) => (rest.strip_suffix('+').ok_or_else(unknown)?, "+"),
        None => lower.rsplit_once('+').unwrap_or(("", &lower)),
    };
    let mut held = [false; MODIFIERS.len()];
    for modifier in modifiers.split('+').filter(|_| !modifiers.is_empty()) {
        let at = MODIFIERS.iter().position(|known| *known == modifier);
        let at = at.ok_or_else(unknown)?;
        if std::mem::replace(&mut held[at], true) {
            return Err(unknown());
        }
    }
    let named = NAMED.iter().find(|(known, _)| *known == name);
    let name = match named {
        Some((_, written)) => written,
        None if is_character(name) || is_function_key(name) => name,
        None => return Err(unknown()),
    };
    let held = MODIFIERS.iter().zip(held).filter(|(_, held)| *held);
    let parts: Vec<&str> = held.map(|(modifier, _)| *modifier).chain([name]).collect();
    Ok(parts.join("+"))
}

fn is_character(name: &str) -> bool {
    matches!(name.as_bytes(), [byte] if byte.is_ascii_graphic())
}

fn is_function_key(name: &str) -> bool {
    let number = name
        .strip_prefix('f')
        .and_then(|number| number.parse().ok());
    number.is_some_and(|number: u8| (1..=12).contains(&number)) && !name.starts_with("f0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_same_however_it_is_written() {
        // extensions §4.5, tui §10
        let same = [
            ("ctrl+g", "ctrl+g"),
            ("CTRL+G", "ctrl+g"),
            (" shift+alt+ctrl+super+x ", "ctrl+alt+shift+super+x"),
            ("pageUp", "pageup"),
            ("F12", "f12"),
            ("return", "enter"),
            ("ctrl+]", "ctrl+]"),
            ("+", "+"),
            ("alt++", "alt++"),
            ("ctrl+-", "ctrl+-"),
        ];
        for (written, key) in same {
            assert_eq!(normal(written).unwrap(), key, "{written}");
        }
        let none = [
            "",
            "ctrl",
            "ctrl+",
            "hyper+a",
            "ctrl+ctrl+a",
            "f13",
            "f0",
            "f01",
            "ab",
            "ä",
            "ctrl a",
            "a+b",
            "++a",
            "ctrl+++",
        ];
        for written in none {
            assert!(normal(written).is_err(), "{written}");
        }
    }
}
