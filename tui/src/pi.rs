//! Taking things over from pi: where its files are, and telling what was done with them. Only names are
//! told, never values: keys and passwords are among them.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::bail;

use crate::modes::unwritable;
use crate::say::printable;

/// Pi's directory: the one that was named, else the usual one.
///
/// # Errors
/// When there is no home.
pub fn directory(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    match (named, std::env::home_dir()) {
        (Some(named), _) => Ok(std::path::absolute(named)?),
        (None, Some(home)) => Ok(home.join(".pi/agent")),
        (None, None) => bail!("There is no home directory. Name pi's directory with --from."),
    }
}

/// What became of each thing.
#[derive(Default)]
pub struct Report {
    copied: Vec<String>,
    kept: Vec<String>,
    left_out: Vec<(String, String)>,
}

impl Report {
    /// It is pliant's now.
    pub fn copied(&mut self, name: String) {
        self.copied.push(name);
    }

    /// Pliant has one of its own.
    pub fn kept(&mut self, name: String) {
        self.kept.push(name);
    }

    /// It was not copied.
    pub fn left_out(&mut self, name: String, why: impl Into<String>) {
        self.left_out.push((name, why.into()));
    }

    /// Says it all on stdout.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn print(&self) -> anyhow::Result<u8> {
        let mut out = std::io::stdout().lock();
        let text = printable(&self.text());
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => Ok(0),
            Err(error) => unwritable(&error),
        }
    }

    fn text(&self) -> String {
        let mut text = match self.copied.as_slice() {
            [] => "Nothing was copied.\n".to_owned(),
            copied => format!("Copied: {}.\n", copied.join(", ")),
        };
        if !self.kept.is_empty() {
            text += &format!(
                "Kept as they are here (--force replaces them): {}.\n",
                self.kept.join(", ")
            );
        }
        for (name, why) in &self.left_out {
            text += &format!("Left out: {name}, because {why}.\n");
        }
        text
    }
}
