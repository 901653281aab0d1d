//! The answer of `ls`, `find` and `grep`: lines up to a number of results and up to the byte limit,
//! and notes on what is missing.

use pliant_sdk::tool::ToolResult;
use serde_json::{Map, json};

use pliant_sdk::truncation::{MAX_BYTES, size};

use crate::truncate::{Head, NO_LINE_LIMIT, with_note};

/// Words of one tool for its listing.
pub(crate) struct Words {
    /// Stands for an empty listing.
    pub(crate) empty: String,
    /// What is counted.
    pub(crate) results: &'static str,
    /// Field of the details that tells the limit when it was reached.
    pub(crate) limit_field: &'static str,
}

/// A listing under construction.
#[derive(Debug)]
pub(crate) struct Listing {
    head: Head,
    empty: bool,
    limit: usize,
    results: usize,
    more: bool,
    /// Set when some line was shortened to this many UTF-16 units.
    pub(crate) shortened_to: Option<usize>,
}

impl Listing {
    /// A listing of at most `limit` results, at least one.
    pub(crate) fn new(limit: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the cast saturates, and is at least 1"
        )]
        let limit = limit.max(1.0) as usize;
        Self {
            head: Head::new(NO_LINE_LIMIT, MAX_BYTES),
            empty: true,
            limit,
            results: 0,
            more: false,
            shortened_to: None,
        }
    }

    /// Adds a result of one line. False when there is no room: then more exist than are shown.
    pub(crate) fn push(&mut self, line: &str) -> bool {
        let counted = self.count();
        if counted {
            self.line(line);
        }
        counted
    }

    /// Counts a result whose lines follow. False as for [`Listing::push`].
    pub(crate) fn count(&mut self) -> bool {
        if self.full() {
            self.more = true;
            return false;
        }
        self.results += 1;
        true
    }

    /// Adds a line that is no result by itself.
    pub(crate) fn line(&mut self, line: &str) {
        if !self.empty {
            self.head.push("\n");
        }
        self.empty = false;
        self.head.push(line);
    }

    /// As many results as may be shown are there.
    pub(crate) fn full(&self) -> bool {
        self.results == self.limit
    }

    /// More results exist than may be shown.
    pub(crate) fn has_more(&self) -> bool {
        self.more
    }

    /// The answer.
    pub(crate) fn finish(self, words: Words) -> ToolResult {
        if self.results == 0 {
            return ToolResult::text(words.empty);
        }
        let head = self.head.finish();
        let (mut notes, mut details) = (Vec::new(), Map::new());
        if self.more {
            let (limit, results) = (self.limit, words.results);
            notes.push(format!(
                "There are more than {limit} {results}; narrow the search or raise limit."
            ));
            details.insert(words.limit_field.to_owned(), json!(limit));
        }
        if let Some(units) = self.shortened_to {
            notes.push(format!(
                "Some lines are cut after {units} characters; read shows them whole."
            ));
            details.insert("linesTruncated".to_owned(), json!(true));
        }
        if head.truncated {
            notes.push(format!("Only the first {} are shown.", size(MAX_BYTES)));
        }
        let text = match notes.as_slice() {
            [] => head.content.clone(),
            notes => with_note(&head.content, &notes.join(" ")),
        };
        if head.truncated {
            details.insert("truncation".to_owned(), json!(head));
        }
        let result = ToolResult::text(text);
        match details.is_empty() {
            true => result,
            false => result.with_details(details.into()),
        }
    }
}
