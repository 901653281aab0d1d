//! `pliant session export`: the active branch as Markdown or JSONL (`kernel.md` S30).

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use pliant_kernel::boot::SessionFolders;
use pliant_kernel::tree::{Ids, SessionTree};

use super::replace::{is_same_file, replace};
use super::{absolute, print, print_path, tell_damage};

/// Export the active branch of a session.
#[derive(Args)]
pub struct Export {
    /// Its file, or the beginning of its id.
    session: String,

    /// Where to (default: standard output).
    file: Option<PathBuf>,

    /// What as (default: what the ending of FILE says, else Markdown).
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Write over a file that is there already.
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A session file of the branch alone.
    Jsonl,
    /// What was said, for people to read.
    Markdown,
}

impl Export {
    pub fn run(&self, folders: &SessionFolders) -> anyhow::Result<u8> {
        let session = folders.find(&self.session)?;
        let tree = SessionTree::read(&session, Ids::system())?;
        let text = match self.format() {
            Format::Jsonl => tree.export_jsonl()?,
            Format::Markdown => tree.export_markdown(),
        };
        tell_damage(tree.damage());
        match self.file.as_ref().filter(|file| *file != Path::new("-")) {
            None => print(&text),
            Some(file) => {
                self.write(file, &session, &text)?;
                print_path(&absolute(file)?)
            }
        }
    }

    fn format(&self) -> Format {
        let ending = self.file.as_ref().and_then(|file| file.extension());
        let by_ending = match ending {
            Some(ending) if ending.eq_ignore_ascii_case("jsonl") => Format::Jsonl,
            _ => Format::Markdown,
        };
        self.format.unwrap_or(by_ending)
    }

    fn write(&self, file: &Path, session: &Path, text: &str) -> anyhow::Result<()> {
        if is_same_file(file, session) {
            bail!(
                "That is the file of the session itself, which has more than this branch. Name another one."
            );
        }
        if self.force {
            return replace(file, text);
        }
        match write_new(file, text) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => bail!(
                "{} is there already. Name another file, or write over it with --force.",
                file.display()
            ),
            written => written.with_context(|| {
                format!("{} cannot be written. Name another file.", file.display())
            }),
        }
    }
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let written = File::create_new(path)?.write_all(text.as_bytes());
    if written.is_err() {
        // Half a file is none; the failure to report is the first one.
        let _ = fs::remove_file(path);
    }
    written
}
