//! `pliant script docs`: everything a script can call.

use clap::Args;
use pliant_scripts::reference;

use crate::session_command::print;

/// Show what scripts can call, as Markdown.
#[derive(Args)]
pub struct Docs {
    /// Only what has this word in it.
    word: Option<String>,
}

impl Docs {
    pub fn run(&self) -> anyhow::Result<u8> {
        let text = reference(self.word.as_deref());
        if text.is_empty() {
            let word = self.word.as_deref().unwrap_or_default();
            anyhow::bail!(
                "Nothing that scripts can call has \"{word}\" in it. `pliant script docs` shows everything."
            );
        }
        print(&text)?;
        Ok(0)
    }
}
