//! Commands that have words of their own behind them: `pliant session …` and the like.

use std::ffi::OsString;

use clap::Parser;

use crate::args;

/// What all of them can do.
pub trait Words: Parser {
    /// Reads the words, of which the first is its name. A mistake in them ends the process with status 1.
    fn read(words: &[OsString]) -> Self {
        Self::try_parse_from(words).unwrap_or_else(|error| args::end(&error))
    }

    /// What there is to choose, for completions.
    fn definition() -> clap::Command {
        Self::command()
    }
}

impl<P: Parser> Words for P {}
