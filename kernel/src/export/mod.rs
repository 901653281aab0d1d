//! A session as a file to read or to pass on: one page of HTML that needs nothing else, or the active
//! branch as a session file (`interfaces.md` §13, `kernel.md` S30). A view of the tree comes in, text
//! goes to a writer or a file. The page is whole without its script, which only adds ways to find
//! something; nothing in a session can be markup in it (see [`markup`]), and it loads nothing.

mod file;
mod view;

mod order;
mod page;

mod entries;

mod ansi;
mod diff;
mod highlight;
mod image;
mod markdown;
mod markup;
mod words;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub use file::{Existing, ExportError, is_same_file, write_file};
pub use view::View;

/// Writes the whole session as a page.
///
/// # Errors
/// Those of the writer.
pub fn html(view: &View, out: &mut dyn Write) -> io::Result<()> {
    page::write(view, out)
}

/// Writes the active branch as a session file.
///
/// # Errors
/// Those of the writer, and when the session's file does not hold an entry any more.
pub fn jsonl(view: &View, out: &mut dyn Write) -> io::Result<()> {
    crate::tree::write_branch(out, &view.header, &view.path)
}

/// Puts a session into a file in the place of what is there: a page, or the active branch if the
/// file's name ends in `.jsonl`.
///
/// # Errors
/// [`ExportError`]; what was there is then as it was.
pub fn to_file(view: &View, path: &Path) -> Result<(), ExportError> {
    let is_jsonl = path
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("jsonl"));
    let write = if is_jsonl { jsonl } else { html };
    write_file(path, view.source(), Existing::Replace, |out| {
        write(view, out)
    })
}

/// How the page of a session file is called, unless somebody names it.
#[must_use]
pub fn page_name(session: &Path) -> PathBuf {
    let mut name = OsString::from("pliant-session-");
    name.push(session.file_stem().unwrap_or_default());
    name.push(".html");
    name.into()
}
