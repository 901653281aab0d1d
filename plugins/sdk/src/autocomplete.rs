//! Completions of what the user types into the editor (`extensions.md` §4.10).

use std::future::Future;

use serde::{Deserialize, Serialize};

use crate::command::Completion;
use crate::error::Error;
use crate::plugin::CallCtx;

/// Completes words.
///
/// ```
/// use pliant_sdk::autocomplete::{Autocomplete, AutocompleteSpec, Typed};
/// use pliant_sdk::command::Completion;
/// use pliant_sdk::plugin::CallCtx;
/// use pliant_sdk::{Error, Plugin};
///
/// /// `#` and the beginning of the title of an issue.
/// struct Issues;
///
/// impl Autocomplete for Issues {
///     fn spec(&self) -> AutocompleteSpec {
///         AutocompleteSpec::new("#")
///     }
///
///     async fn suggest(&self, typed: Typed, _ctx: CallCtx) -> Result<Vec<Completion>, Error> {
///         let titles = ["#1 It crashes", "#2 It is slow"];
///         let fitting = titles.into_iter().filter(|title| title.starts_with(&typed.word));
///         Ok(fitting.map(|title| Completion { value: title.into(), ..Completion::default() }).collect())
///     }
/// }
///
/// let plugin = Plugin::new().autocomplete(Issues);
/// ```
pub trait Autocomplete: Send + Sync + 'static {
    /// When it is asked.
    fn spec(&self) -> AutocompleteSpec;

    /// What the word could become; nothing when it has no idea. Has to be quick: what takes longer than a
    /// glance is left out.
    fn suggest(
        &self,
        typed: Typed,
        ctx: CallCtx,
    ) -> impl Future<Output = Result<Vec<Completion>, Error>> + Send;
}

/// An autocompletion as the registry keeps it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AutocompleteSpec {
    /// Its name in its plugin; the trigger, if nothing else is said.
    pub name: String,
    /// What a word has to begin with; empty = any word.
    pub trigger: String,
}

impl AutocompleteSpec {
    /// For words that begin so.
    pub fn new(trigger: impl Into<String>) -> Self {
        let trigger = trigger.into();
        let name = match trigger.is_empty() {
            true => "word".to_owned(),
            false => trigger.clone(),
        };
        Self { name, trigger }
    }
}

/// What stands in the editor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Typed {
    /// The line with the cursor.
    pub line: String,
    /// How many characters of it stand before the cursor.
    pub column: usize,
    /// The word that ends at the cursor, its trigger included.
    pub word: String,
}

impl Typed {
    /// A line with the cursor behind so many characters; at its end, if it has fewer.
    #[must_use]
    pub fn at(line: &str, column: usize) -> Self {
        let before: String = line.chars().take(column).collect();
        let word = before.rsplit(char::is_whitespace).next();
        Self {
            word: word.unwrap_or_default().to_owned(),
            column: before.chars().count(),
            line: line.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_ends_at_the_cursor() {
        let word = |line: &str, column: usize| Typed::at(line, column).word;
        assert_eq!(word("see #12 now", 7), "#12");
        assert_eq!(word("see #12 now", 6), "#1");
        assert_eq!(word("see ", 4), "");
        assert_eq!(word("äö #é", 5), "#é");
        assert_eq!(Typed::at("ab", 99).column, 2);
    }
}
