//! `pliant script docs`: everything a script can call.

use clap::Args;
use pliant_scripts::{callables, definitions, reference};

use crate::session_command::print;

/// Show what scripts can call, as Markdown.
#[derive(Args)]
pub struct Docs {
    /// Only what has this word in it.
    word: Option<String>,
    /// As JSON: for each its group, how it is written, name, parameters and text.
    #[arg(long, conflicts_with = "definitions")]
    json: bool,
    /// As definitions for Rhai's language server, to be saved as pliant.d.rhai.
    #[arg(long, conflicts_with = "word")]
    definitions: bool,
}

impl Docs {
    pub fn run(&self) -> anyhow::Result<u8> {
        if self.definitions {
            return print(&definitions());
        }
        let word = self.word.as_deref();
        let text = match self.json {
            true => as_json(word)?,
            false => reference(word),
        };
        if text.is_empty() {
            let word = word.unwrap_or_default();
            anyhow::bail!(
                "Nothing that scripts can call has \"{word}\" in it. `pliant script docs` shows everything."
            );
        }
        print(&text)?;
        Ok(0)
    }
}

/// Nothing when nothing has the word.
fn as_json(word: Option<&str>) -> anyhow::Result<String> {
    let mut all = callables();
    all.retain(|one| word.is_none_or(|word| one.written.contains(word) || one.text.contains(word)));
    if all.is_empty() {
        return Ok(String::new());
    }
    Ok(format!("{}\n", serde_json::to_string_pretty(&all)?))
}
