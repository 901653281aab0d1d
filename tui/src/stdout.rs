//! Standard input and output as the property of one mode. A program that reads stdout takes every
//! line for an answer, so nobody else may write there: file descriptor 1 becomes another name of
//! stderr before the first plugin or script is loaded, and what these print, or a child that inherits
//! it, cannot get in between (`interfaces.md` §2). Nor may a child eat what is sent to the mode:
//! descriptor 0 becomes empty.

use std::fs::File;
use std::io;

use anyhow::Context;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{dup2_stdin, dup2_stdout};

/// The descriptors below are those that every program knows by number.
const FIRST_PRIVATE: i32 = 3;

/// Stdin and stdout as they were given to the process. No child inherits these two; a reader of the
/// output sees its end when `output` is dropped.
#[derive(Debug)]
pub struct Claimed {
    /// What is piped in.
    pub input: File,
    /// Where the mode writes, unbuffered.
    pub output: File,
}

/// Takes stdin and stdout away from everybody else in this process and from its children.
///
/// # Errors
/// When the system has no descriptors left, or no `/dev/null`.
pub fn claim() -> anyhow::Result<Claimed> {
    let claim = || {
        let claimed = copies()?;
        dup2_stdin(File::open("/dev/null")?)?;
        dup2_stdout(io::stderr())?;
        io::Result::Ok(claimed)
    };
    claim().context("Standard input and output cannot be set up.")
}

/// Leaves both to everybody as well: where a person looks at them, children may be talked to.
///
/// # Errors
/// When the system has no descriptors left.
pub fn share() -> anyhow::Result<Claimed> {
    copies().context("Standard input and output cannot be set up.")
}

fn copies() -> io::Result<Claimed> {
    Ok(Claimed {
        input: fcntl_dupfd_cloexec(io::stdin(), FIRST_PRIVATE)?.into(),
        output: fcntl_dupfd_cloexec(io::stdout(), FIRST_PRIVATE)?.into(),
    })
}
