//! The file that takes the whole output once it is too long for an answer. Its bytes are the
//! command's own, undecoded.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Bytes on their way to a file that may never be needed.
pub(crate) enum Spill {
    /// Short so far; kept in memory.
    Waiting(Vec<u8>),
    /// Goes to a file.
    Open(File, PathBuf),
    /// Could not be kept.
    Failed(String),
}

impl Default for Spill {
    fn default() -> Self {
        Self::Waiting(Vec::new())
    }
}

impl Spill {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Waiting(held) => held.extend_from_slice(bytes),
            Self::Open(file, path) => {
                if let Err(cause) = file.write_all(bytes) {
                    let path = path.display();
                    *self = Self::Failed(format!("{path} ends early: {cause}"));
                }
            }
            Self::Failed(_) => {}
        }
    }

    /// Begins the file, in the folder for temporary files.
    pub(crate) fn open(&mut self) {
        if let Self::Waiting(held) = self {
            let held = std::mem::take(held);
            *self = match create(&std::env::temp_dir()) {
                Ok((file, path)) => Self::Open(file, path),
                Err(cause) => Self::Failed(format!("no file could be made for it: {cause}")),
            };
            self.push(&held);
        }
    }

    /// The file with the whole output.
    pub(crate) fn path(&self) -> Option<String> {
        match self {
            Self::Open(_, path) => Some(path.to_string_lossy().into_owned()),
            Self::Waiting(_) | Self::Failed(_) => None,
        }
    }

    /// Where the whole output is, as the end of a sentence.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::Waiting(_) => "The rest was not kept.".to_owned(),
            Self::Open(_, path) => format!("Whole output: {}", path.display()),
            Self::Failed(cause) => format!("The whole output was not kept: {cause}."),
        }
    }
}

/// Output may hold secrets, so nobody else may read the file, and the name is not to be guessed.
fn create(folder: &Path) -> io::Result<(File, PathBuf)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let random = RandomState::new().hash_one(std::time::SystemTime::now());
    let path = folder.join(format!("pliant-bash-{random:016x}.log"));
    Ok((options.open(&path)?, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_makes_no_file() {
        let mut spill = Spill::default();
        spill.push(b"short");
        assert_eq!(spill.path(), None);
    }

    #[test]
    fn the_file_holds_the_bytes_from_the_first_on_and_is_private() {
        let mut spill = Spill::default();
        spill.push(b"\xffone ");
        spill.open();
        spill.open();
        spill.push(b"two");
        let path = spill.path().unwrap();
        let name = path.rsplit('/').next().unwrap();
        let digits = name
            .strip_prefix("pliant-bash-")
            .and_then(|n| n.strip_suffix(".log"));
        assert!(digits.is_some_and(|d| d.len() == 16 && u64::from_str_radix(d, 16).is_ok()));
        assert_eq!(std::fs::read(&path).unwrap(), b"\xffone two");
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&path).unwrap());
            assert_eq!(mode & 0o777, 0o600);
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_made_is_told() {
        let cause = create(Path::new("/no/such/folder")).unwrap_err();
        let spill = Spill::Failed(cause.to_string());
        assert!(
            spill
                .place()
                .starts_with("The whole output was not kept: No such file")
        );
    }
}
