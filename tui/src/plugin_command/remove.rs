//! `pliant plugin remove`: what `install` did, undone.

use std::path::Path;

use anyhow::bail;
use clap::Args;
use pliant_kernel::boot::inventory;

use super::lock;
use crate::launch;
use crate::session_command::print;

/// Remove a plugin that was installed.
#[derive(Args)]
pub struct Remove {
    /// Its name.
    name: String,
}

impl Remove {
    pub fn run(&self) -> anyhow::Result<u8> {
        let name = &self.name;
        let folder = super::folder()?;
        let (items, _) = inventory(&super::options()?);
        let own = items
            .iter()
            .find(|item| item.name == *name && item.path.starts_with(&folder));
        let agent_dir = launch::agent_dir()?;
        let file = match (own, lock::of(&agent_dir, name)?) {
            (Some(item), _) => item.path.clone(),
            // The list is a file that anything may have written: it names files of this folder only.
            (None, Some(entry)) => match Path::new(&entry.file).file_name() {
                Some(file) if file == entry.file.as_str() => folder.join(file),
                _ => bail!(
                    "The list of plugins has a file for \"{name}\" that is not in {}: {}. Nothing is removed; mend plugins.lock.json.",
                    folder.display(),
                    entry.file
                ),
            },
            (None, None) => bail!("No plugin \"{name}\" is installed in {}.", folder.display()),
        };
        let said = match std::fs::remove_file(&file) {
            Ok(()) => format!("{name} is removed. Its settings and its state are kept.\n"),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                format!("{name} was gone already; it is off the list.\n")
            }
            Err(error) => bail!("The file {} cannot be removed: {error}.", file.display()),
        };
        // Last, so that what could not be removed is still listed.
        lock::forget(&agent_dir, name)?;
        print(&said)
    }
}
