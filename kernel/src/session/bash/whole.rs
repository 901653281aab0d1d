//! The file that takes the whole output once it is too long to be shown. Output may hold secrets, so
//! nobody else may read the file, and its name is not to be guessed.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::SystemTime;

/// Text on its way to a file that may never be needed.
#[derive(Debug)]
pub(super) enum Whole {
    /// Short so far.
    Memory(String),
    File(File, PathBuf),
    /// Could not be kept. The end of the output is shown all the same.
    Lost,
}

impl Default for Whole {
    fn default() -> Self {
        Self::Memory(String::new())
    }
}

impl Whole {
    pub(super) fn push(&mut self, text: &str) {
        let written = match self {
            Self::Memory(held) => {
                held.push_str(text);
                return;
            }
            Self::File(file, _) => file.write_all(text.as_bytes()),
            Self::Lost => return,
        };
        if written.is_err() {
            *self = Self::Lost;
        }
    }

    /// Begins the file, in the folder for temporary files.
    pub(super) fn open(&mut self) {
        if let Self::Memory(held) = self {
            let held = std::mem::take(held);
            *self = create().map_or(Self::Lost, |(file, path)| Self::File(file, path));
            self.push(&held);
        }
    }

    /// Where the whole output is.
    pub(super) fn path(&self) -> Option<String> {
        match self {
            Self::File(_, path) => Some(path.to_string_lossy().into_owned()),
            Self::Memory(_) | Self::Lost => None,
        }
    }
}

fn create() -> io::Result<(File, PathBuf)> {
    let random = RandomState::new().hash_one(SystemTime::now());
    let path = std::env::temp_dir().join(format!("pliant-bash-{random:016x}.log"));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    Ok((options.open(&path)?, path))
}
