//! `pliant session import`: a copy of a session file among this directory's sessions
//! (`kernel.md` S30).

use std::path::PathBuf;

use clap::Args;
use pliant_kernel::boot::SessionFolders;
use pliant_kernel::tree;

use super::print_path;

/// Copy a session file into the sessions of this directory.
#[derive(Args)]
pub struct Import {
    /// The file.
    file: PathBuf,
}

impl Import {
    pub fn run(&self, folders: &SessionFolders) -> anyhow::Result<u8> {
        print_path(&tree::import(&self.file, &folders.here())?)
    }
}
