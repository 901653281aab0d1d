//! Which simple commands a line of shell runs, for whoever judges it before it does. Knows the common
//! part of the language and no more: what it does not surely understand it says, so that a judge asks
//! instead of believing. Runs nothing.

mod commands;
mod lexer;
mod wrappers;

#[cfg(test)]
mod tests;

pub(crate) use commands::{Command, Commands, Redirect};

use commands::Reader;

/// A longer line is not looked at.
const LONGEST: usize = 64 << 10;

/// How deep substitutions, groups and commands in commands are followed.
const DEEPEST: usize = 16;

/// How many commands are told of.
const MOST: usize = 1000;

/// Takes a line apart.
pub(crate) fn commands(text: &str) -> Commands {
    let mut found = Commands::default();
    if text.len() > LONGEST {
        found.unsure(format!("it is longer than {} KB", LONGEST >> 10));
        return found;
    }
    read(text, 0, &mut found);
    found
}

/// The same for a part of one.
fn read(text: &str, depth: usize, found: &mut Commands) {
    if depth > DEEPEST {
        return found.unsure("it is nested too deeply");
    }
    if found.commands.len() >= MOST {
        return found.unsure("it has too many commands");
    }
    if text.contains('\0') {
        found.unsure("it holds a NUL");
    }
    if text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r' | '\0')) {
        found.unsure("it holds control characters");
    }
    let (tokens, unknown) = lexer::tokens(text);
    unknown.into_iter().for_each(|reason| found.unsure(reason));
    Reader::new(tokens, depth, found).run();
}
