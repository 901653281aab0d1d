//! The tools that look at files and change them: `read`, `write`, `edit`, `ls`, `find`, `grep`
//! (`extensions.md` §8).
//!
//! A tool takes arguments from the model and answers with text; a failure is a sentence for the
//! model. Single files go through the host's services, so that they may be elsewhere; `find` and
//! `grep` walk the local file system on the host's blocking pool. What can be computed without a
//! host (limits, paths, matching, diffs) is plain functions in files of its own.

mod edit;
mod find;
mod grep;
mod ls;
mod read;
mod write;

mod listing;
mod paths;
mod truncate;
mod utf8;
mod walk;

#[cfg(test)]
mod testing;

use pliant_sdk::{Error, Host, Init, Plugin};

fn create(_host: Host, _init: Init) -> Result<Plugin, Error> {
    Ok(Plugin::new()
        .tool(read::Read)
        .tool(write::Write)
        .tool(edit::Edit)
        .tool(ls::Ls)
        .tool(find::Find)
        .tool(grep::Grep))
}

pliant_sdk::export! {
    name: "files",
    provides: {
        tool "read",
        tool "write",
        tool "edit",
        tool "ls",
        tool "find",
        tool "grep",
    },
    create: create,
}
