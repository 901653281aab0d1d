//! `pliant session doctor`: what is odd about a session file, and a mended copy of it. The file
//! itself is only read.

use std::path::PathBuf;

use clap::Args;
use pliant_kernel::boot::SessionFolders;
use pliant_kernel::run::repair_notice;
use pliant_kernel::tree::{CopyCwd, Ids, SessionTree, examine, write_mended_copy};

use super::{print, print_path};
use crate::{launch, say};

/// Tell what is odd about a session file.
#[derive(Args)]
#[command(after_help = "Status 1 says that something is odd; the file itself is never changed.")]
pub struct Doctor {
    /// The file, or the beginning of its session's id.
    file: String,

    /// Write a mended copy beside it, as a session of its own, and print its path.
    #[arg(long)]
    write_copy: bool,

    /// The copy's working directory (default: that of the session, or this one if it is lost).
    #[arg(long, value_name = "DIR", requires = "write_copy")]
    cwd: Option<PathBuf>,
}

impl Doctor {
    pub fn run(&self, folders: &SessionFolders) -> anyhow::Result<u8> {
        let path = folders.find(&self.file)?;
        let ids = Ids::system();
        let oddities = examine(&path, &ids)?;
        let mut lines: Vec<String> = oddities.iter().map(ToString::to_string).collect();
        if let Ok(tree) = SessionTree::read(&path, ids.clone()) {
            lines.extend(repair_notice(tree.context()));
        }
        if self.write_copy && folders.is_of_pi(&path) && !self.file.contains(['/', '\\']) {
            anyhow::bail!(
                "The session {} is pi's, and nothing is written there. --fork {} copies it to this directory.",
                self.file,
                self.file
            );
        }
        if self.write_copy {
            lines.iter().for_each(say::note);
            let here = launch::working_dir()?;
            let cwd = match &self.cwd {
                Some(dir) => CopyCwd::Always(here.join(dir)),
                None => CopyCwd::IfLost(here),
            };
            return print_path(&write_mended_copy(&path, &cwd, &ids)?);
        }
        if lines.is_empty() {
            return print("Nothing is odd about this session.\n");
        }
        if oddities.iter().any(|oddity| oddity.kind.is_mended()) {
            lines.push("`--write-copy` writes a mended copy; the file itself stays.".to_owned());
        }
        Ok(print(&(lines.join("\n") + "\n"))?.max(1))
    }
}
