//! `pliant session export`: the whole session as a page of HTML, or the active branch as Markdown or
//! JSONL (`kernel.md` S30, `interfaces.md` §13).

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use pliant_kernel::boot::SessionFolders;
use pliant_kernel::export::{self, Existing, View, write_file};
use pliant_kernel::tree::{Ids, SessionTree};

use super::{absolute, print, print_path, tell_damage};
use crate::modes::unwritable;

/// Export a session as a page, or its active branch.
#[derive(Args)]
pub struct Export {
    /// Its file, or the beginning of its id.
    session: String,

    /// Where to (default: standard output; a page gets a file that is named after the session).
    file: Option<PathBuf>,

    /// What as (default: what the ending of FILE says, else Markdown).
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// As a page; the same as --format html.
    #[arg(long, conflicts_with = "format")]
    html: bool,

    /// Write over a file that is there already.
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The whole session as one page of HTML.
    Html,
    /// A session file of the branch alone.
    Jsonl,
    /// What was said, for people to read.
    Markdown,
}

impl Export {
    pub fn run(&self, folders: &SessionFolders) -> anyhow::Result<u8> {
        let session = folders.find(&self.session)?;
        let tree = SessionTree::read(&session, Ids::system())?;
        tell_damage(tree.damage());
        let format = self.format();
        match self.file(format, &session) {
            Some(file) => {
                let existing = match self.force {
                    true => Existing::Replace,
                    false => Existing::Keep,
                };
                write_file(&file, Some(&session), existing, |out| {
                    write(format, &tree, out)
                })?;
                print_path(&absolute(&file)?)
            }
            None if format == Format::Html => to_stdout(&tree),
            None => {
                let mut text = Vec::new();
                write(format, &tree, &mut text)?;
                print(&String::from_utf8_lossy(&text))
            }
        }
    }

    fn file(&self, format: Format, session: &Path) -> Option<PathBuf> {
        match &self.file {
            Some(file) if file == Path::new("-") => None,
            None if format == Format::Html => Some(export::page_name(session)),
            file => file.clone(),
        }
    }

    fn format(&self) -> Format {
        let ending = self.file.as_ref().and_then(|file| file.extension());
        let is = |name: &str| ending.is_some_and(|ending| ending.eq_ignore_ascii_case(name));
        let by_ending = match () {
            () if self.html || is("html") || is("htm") => Format::Html,
            () if is("jsonl") => Format::Jsonl,
            () => Format::Markdown,
        };
        self.format.unwrap_or(by_ending)
    }
}

fn write(format: Format, tree: &SessionTree, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Html => export::html(&View::of(tree), out),
        Format::Jsonl => export::jsonl(&View::of(tree), out),
        Format::Markdown => out.write_all(tree.export_markdown().as_bytes()),
    }
}

/// A page is written as it grows. A terminal cannot be told anything by it: what is not seen in a text
/// is not written as it is.
fn to_stdout(tree: &SessionTree) -> anyhow::Result<u8> {
    let mut out = BufWriter::new(io::stdout().lock());
    match write(Format::Html, tree, &mut out).and_then(|()| out.flush()) {
        Ok(()) => Ok(0),
        Err(error) => unwritable(&error),
    }
}
