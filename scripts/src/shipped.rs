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
    /// It runs unless the user says otherwise. One that asks, blocks or adds to what a model reads does
    /// not.
    pub on: bool,
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

/// Name, text, and whether it runs unless the user says otherwise.
type Embedded = (&'static str, &'static str, bool);

macro_rules! ships {
    ($name:literal, $on:literal) => {
        (
            $name,
            include_str!(concat!("../extensions/", $name, ".rhai")),
            $on,
        )
    };
}

const EMBEDDED: &[Embedded] = &[
    ships!("checkpoint", false),
    ships!("guide", true),
    ships!("handoff", false),
    ships!("model-router", false),
    ships!("notify", false),
    ships!("openai-compatible", false),
    ships!("permission-gate", false),
    ships!("plan-mode", false),
    ships!("protected-paths", false),
    ships!("summarize", false),
    ships!("todo", false),
];

/// The extensions that ship.
#[must_use]
pub fn shipped_extensions() -> Vec<Shipped> {
    let folder = workspace_folder().map(|folder| folder.join("extensions"));
    let ship = |embedded: &Embedded| read(folder.as_deref(), *embedded);
    EMBEDDED.iter().map(ship).collect()
}

fn read(folder: Option<&Path>, (name, embedded, on): Embedded) -> Shipped {
    let path = folder.map(|folder| folder.join(name).with_extension("rhai"));
    let text = path
        .as_deref()
        .and_then(|path| std::fs::read_to_string(path).ok());
    Shipped {
        name,
        path: path.filter(|_| text.is_some()),
        text: text.unwrap_or_else(|| embedded.to_owned()),
        on,
    }
}

/// `scripts` beside the binary's own package, if cargo runs it.
pub(crate) fn workspace_folder() -> Option<PathBuf> {
    let package = std::env::var_os("CARGO_PKG_NAME")?;
    let manifest_dir = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?);
    (package == "pliant").then(|| manifest_dir.join("../scripts"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_wins_over_the_embedded_copy_and_its_absence_does_not_matter() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("extensions");
        let from_file = read(Some(&folder), ("guide", "old", true));
        assert_eq!(from_file.path, Some(folder.join("guide.rhai")));
        assert_ne!(from_file.text, "old");
        let embedded = read(Some(Path::new("/nowhere")), ("guide", "old", true));
        assert_eq!((embedded.text.as_str(), embedded.path), ("old", None));
    }
}
