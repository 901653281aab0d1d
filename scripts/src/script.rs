//! A script before it is loaded.

use std::path::{Path, PathBuf};

use pliant_kernel::registry::Rank;
use pliant_sdk::Error;
use pliant_sdk::error::code;

/// A script to load.
#[derive(Debug, Clone)]
pub struct Script {
    /// Name of the source in the registry, and what error positions begin with: the path as the
    /// user knows it, or the file name of a shipped script.
    pub name: String,
    /// The file, if there is one.
    pub path: Option<PathBuf>,
    /// The source text.
    pub text: String,
    /// Where it stands in the load order.
    pub rank: Rank,
}

impl Script {
    /// Reads a script file.
    ///
    /// # Errors
    /// A sentence with the path, when it cannot be read or is not UTF-8.
    pub fn read(path: &Path, rank: Rank) -> Result<Self, Error> {
        let name = path.display().to_string();
        let text = pliant_kernel::textfile::read(path).map_err(|error| {
            let kind = match error.kind() {
                std::io::ErrorKind::NotFound => code::NOT_FOUND,
                _ => code::IO,
            };
            Error::new(kind, format!("The script {name} cannot be read: {error}."))
        })?;
        Ok(Self {
            name,
            path: Some(path.to_owned()),
            text,
            rank,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_cannot_be_read_is_named() {
        let error = Script::read(Path::new("/nowhere/x.rhai"), Rank::CommandLine).unwrap_err();
        assert_eq!(error.code, "not_found");
        assert!(
            error
                .message
                .starts_with("The script /nowhere/x.rhai cannot be read: "),
            "{error}"
        );
    }
}
