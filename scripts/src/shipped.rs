//! The scripts that ship with pliant. A binary started by cargo in this workspace reads them from
//! the folder, so that an edit is live without a build; any other has the copy it was built with.

use std::path::{Path, PathBuf};

use pliant_kernel::registry::Rank;

use crate::script::Script;

/// A script that ships.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shipped {
    /// File name without ending, e.g. `guide`.
    pub name: &'static str,
    /// The source text.
    pub text: String,
    /// The file it was read from, if it was.
    pub path: Option<PathBuf>,
}

impl From<Shipped> for Script {
    fn from(shipped: Shipped) -> Self {
        Self {
            name: format!("{}.rhai", shipped.name),
            path: shipped.path,
            text: shipped.text,
            rank: Rank::BuiltIn,
        }
    }
}

const EMBEDDED: [(&str, &str); 1] = [("guide", include_str!("../extensions/guide.rhai"))];

/// The extensions that ship.
#[must_use]
pub fn shipped_extensions() -> Vec<Shipped> {
    let folder = workspace_folder();
    let ship = |(name, text): (&'static str, &str)| read(folder.as_deref(), name, text);
    EMBEDDED.into_iter().map(ship).collect()
}

fn read(folder: Option<&Path>, name: &'static str, embedded: &str) -> Shipped {
    let path = folder.map(|folder| folder.join(name).with_extension("rhai"));
    let text = path
        .as_deref()
        .and_then(|path| std::fs::read_to_string(path).ok());
    Shipped {
        name,
        path: path.filter(|_| text.is_some()),
        text: text.unwrap_or_else(|| embedded.to_owned()),
    }
}

/// `scripts/extensions` beside the binary's own package, if cargo runs it.
fn workspace_folder() -> Option<PathBuf> {
    let package = std::env::var_os("CARGO_PKG_NAME")?;
    let manifest_dir = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?);
    (package == "pliant").then(|| manifest_dir.join("../scripts/extensions"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_wins_over_the_embedded_copy_and_its_absence_does_not_matter() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("extensions");
        let from_file = read(Some(&folder), "guide", "old");
        assert_eq!(from_file.path, Some(folder.join("guide.rhai")));
        assert_ne!(from_file.text, "old");
        let embedded = read(Some(Path::new("/nowhere")), "guide", "old");
        assert_eq!((embedded.text.as_str(), embedded.path), ("old", None));
    }
}
