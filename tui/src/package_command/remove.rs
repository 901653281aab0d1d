//! `pliant remove`: what `install` did, undone.

use std::fs;

use anyhow::bail;
use clap::Args;
use pliant_kernel::packages::Source;

use super::{Named, lock};
use crate::session_command::print;

/// Remove a package from the settings. A clone that nothing names any more is deleted; a folder of your
/// own is left as it is.
#[derive(Args)]
pub struct Remove {
    /// As it was installed; the version does not matter.
    source: String,
    /// From the settings of the project in the working directory.
    #[arg(short = 'l', long = "local")]
    local: bool,
}

impl Remove {
    pub fn run(&self) -> anyhow::Result<u8> {
        let named = Named::read()?;
        let identity = named.parse(&self.source)?.identity();
        let (base, file) = named.file(self.local);
        let mut removed = 0;
        named.change(self.local, |list| {
            let before = list.len();
            list.retain(|item| {
                let meaning = named.meaning(item, &base);
                meaning.is_none_or(|source| source.identity() != identity)
            });
            removed = before - list.len();
        })?;
        if removed == 0 {
            bail!(
                "{} names no package {}. `pliant list` shows those there are.",
                file.display(),
                self.source
            );
        }
        let (others, _) = Named::read()?.entries();
        let source = named.parse(&self.source)?;
        let is_used = others
            .iter()
            .any(|entry| entry.source.identity() == identity);
        if let (Source::Git(_), false) = (&source, is_used) {
            let folder = source.folder(&named.agent_dir);
            if let Err(error) = fs::remove_dir_all(&folder)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                bail!("{} cannot be removed: {error}.", folder.display());
            }
            lock::note(&named.agent_dir, &identity, None)?;
        }
        print(&format!("{} is removed.\n", self.source))
    }
}
