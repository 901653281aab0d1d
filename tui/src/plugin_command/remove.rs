//! `pliant plugin remove`: what `install` did, undone.

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
        let listed = lock::forget(&launch::agent_dir()?, name)?;
        let file = match (own, listed) {
            (Some(item), _) => item.path.clone(),
            (None, Some(entry)) => folder.join(entry.file),
            (None, None) => bail!("No plugin \"{name}\" is installed in {}.", folder.display()),
        };
        match std::fs::remove_file(&file) {
            Ok(()) => print(&format!(
                "{name} is removed. Its settings and its state are kept.\n"
            )),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                print(&format!("{name} was gone already; it is off the list.\n"))
            }
            Err(error) => bail!("The file {} cannot be removed: {error}.", file.display()),
        }
    }
}
