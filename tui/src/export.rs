//! `--export`: a stored session as a page to read (`interfaces.md` §1.2). The session is neither opened
//! nor changed, and nothing else of the program is started.

use std::path::{Path, PathBuf};

use pliant_kernel::export::{self, View};
use pliant_kernel::tree::{Ids, SessionTree};

use crate::launch;
use crate::session_command::{folders, print, tell_damage};

/// Exports the session and answers the exit status.
///
/// # Errors
/// What stopped it, as a sentence.
pub fn run(session: &str, output: Option<&String>) -> anyhow::Result<u8> {
    let file = match Path::new(session).is_file() {
        true => launch::working_dir()?.join(session),
        false => folders()?.find(session)?,
    };
    let tree = SessionTree::read(&file, Ids::system())?;
    let output = output.map_or_else(|| export::page_name(&file), PathBuf::from);
    export::to_file(&View::of(&tree).read_from(&file), &output)?;
    tell_damage(tree.damage());
    print(&format!("Exported to: {}\n", output.display()))
}
