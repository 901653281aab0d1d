//! The search itself: one thread walks, one searches, so that files come in the order of their
//! names; lines are shown as they are found.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use ignore::WalkBuilder;
use ignore::overrides::Override;
use pliant_sdk::{Error, ToolCtx};

use crate::listing::Listing;
use crate::{paths, walk};

/// UTF-16 units of a line that are shown.
const MAX_LINE: usize = 500;
/// A line longer than this ends the search of its file.
const MAX_SEARCH_BUFFER: usize = 64 * 1024 * 1024;
/// Files that the walk may be ahead of the search.
pub(crate) const WALK_AHEAD: usize = 256;

/// One call, as the blocking pool gets it.
pub(crate) struct Search {
    pub(crate) matcher: RegexMatcher,
    pub(crate) globs: Override,
    pub(crate) root: PathBuf,
    pub(crate) is_directory: bool,
    pub(crate) context: usize,
    pub(crate) listing: Listing,
    pub(crate) ctx: ToolCtx,
}

impl Search {
    pub(crate) fn run(mut self) -> Result<Listing, Error> {
        if !self.is_directory {
            let name = self.root.file_name().unwrap_or_default();
            let name = name.to_string_lossy().into_owned();
            let file = self.root.clone();
            // A file that was asked for by name is searched even if it looks binary.
            let mut searcher = self.searcher(BinaryDetection::convert(0));
            let searched = self.search_file(&mut searcher, &file, &name);
            return match searched {
                Err(error) if !self.ctx.cancelled() => {
                    Err(paths::failure(&file.to_string_lossy(), error.into()))
                }
                _ => Ok(self.listing),
            };
        }
        std::thread::scope(|threads| {
            let (found, files) = sync_channel(WALK_AHEAD);
            let mut builder = WalkBuilder::new(&self.root);
            let walk = walk::sorted(builder.overrides(self.globs.clone())).build();
            let walking = std::thread::Builder::new()
                .name("grep-walk".to_owned())
                .spawn_scoped(threads, {
                    let ctx = self.ctx.clone();
                    move || send_files(walk, &found, &ctx)
                });
            walking?;
            self.search_files(&files);
            Ok(self.listing)
        })
    }

    /// Searches what the walk finds, until enough matches are there and one more is known.
    fn search_files(&mut self, files: &Receiver<PathBuf>) {
        let mut searcher = self.searcher(BinaryDetection::quit(0));
        for file in files {
            if self.ctx.cancelled() || self.listing.has_more() {
                return;
            }
            let name = walk::posix(file.strip_prefix(&self.root).unwrap_or(&file));
            // A file that cannot be read is passed over, as one that is ignored.
            let _ = self.search_file(&mut searcher, &file, &name);
        }
    }

    fn searcher(&self, binary: BinaryDetection) -> Searcher {
        SearcherBuilder::new()
            .line_number(true)
            .before_context(self.context)
            .after_context(self.context)
            .heap_limit(Some(MAX_SEARCH_BUFFER))
            .binary_detection(binary)
            .build()
    }

    fn search_file(&mut self, searcher: &mut Searcher, file: &Path, name: &str) -> io::Result<()> {
        let bytes = Watched {
            file: File::open(file)?,
            ctx: &self.ctx,
        };
        let sink = Lines {
            listing: &mut self.listing,
            name,
            context: self.context,
            trailing: 0,
        };
        searcher.search_reader(&self.matcher, bytes, sink)
    }
}

fn send_files(walk: ignore::Walk, found: &SyncSender<PathBuf>, ctx: &ToolCtx) {
    for entry in walk.filter_map(Result::ok) {
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        // Nobody receives any more when the search has enough.
        if ctx.cancelled() || (is_file && found.send(entry.into_path()).is_err()) {
            return;
        }
    }
}

/// A file that reads as broken once the call is aborted, because a searcher only stops at matches.
struct Watched<'a> {
    file: File,
    ctx: &'a ToolCtx,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ctx.cancelled() {
            return Err(io::Error::other("aborted"));
        }
        self.file.read(buffer)
    }
}

/// Writes one file's matches into the listing.
struct Lines<'a> {
    listing: &'a mut Listing,
    name: &'a str,
    context: usize,
    /// Context lines still to be shown after the last match.
    trailing: usize,
}

impl Lines<'_> {
    fn show(&mut self, mark: char, number: Option<u64>, bytes: &[u8]) {
        let line = String::from_utf8_lossy(bytes);
        let line = line.strip_suffix('\n').unwrap_or(&line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        let (shown, rest) = split_utf16(line, MAX_LINE);
        let mut suffix = "";
        if !rest.is_empty() {
            self.listing.shortened_to = Some(MAX_LINE);
            suffix = "... [truncated]";
        }
        let (name, number) = (self.name, number.unwrap_or_default());
        self.listing
            .line(&format!("{name}{mark}{number}{mark} {shown}{suffix}"));
    }

    /// Shows a line after the last match that may be shown. The search goes on until that match's
    /// context is complete and it is known whether there are more.
    fn show_trailing(&mut self, number: Option<u64>, bytes: &[u8]) -> bool {
        if self.trailing > 0 {
            self.trailing -= 1;
            self.show('-', number, bytes);
        }
        self.trailing > 0 || !self.listing.has_more()
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if !self.listing.count() {
            return Ok(self.show_trailing(found.line_number(), found.bytes()));
        }
        self.trailing = self.context;
        self.show(':', found.line_number(), found.bytes());
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> io::Result<bool> {
        if !self.listing.full() {
            self.show('-', found.line_number(), found.bytes());
            return Ok(true);
        }
        match found.kind() {
            // It leads to a match that has no room.
            SinkContextKind::Before if self.trailing == 0 => Ok(true),
            _ => Ok(self.show_trailing(found.line_number(), found.bytes())),
        }
    }
}

/// Splits off at most so many UTF-16 units, not inside a character.
fn split_utf16(text: &str, most: usize) -> (&str, &str) {
    let mut units = 0;
    for (at, c) in text.char_indices() {
        units += c.len_utf16();
        if units > most {
            return text.split_at(at);
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_never_inside_a_character() {
        // T07
        assert_eq!(split_utf16("🦀🦀", 1), ("", "🦀🦀"));
        assert_eq!(split_utf16("🦀🦀", 2), ("🦀", "🦀"));
        assert_eq!(split_utf16("🦀🦀", 3), ("🦀", "🦀"));
        assert_eq!(split_utf16("ab", 2), ("ab", ""));
    }
}
