//! Skills and prompt templates that ship. A model reads a skill as a file, so they are files in any case:
//! those of the workspace, where cargo runs the program, else copies in a folder of the user's.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

macro_rules! ships {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_str!(concat!("../", $path)))),*]
    };
}

const TEXTS: [(&str, &str); 5] = ships![
    "skills/write-extension/SKILL.md",
    "skills/write-plugin/SKILL.md",
    "prompts/commit.md",
    "prompts/explain.md",
    "prompts/review.md",
];

/// The folder that holds `skills` and `prompts`. Copies are kept in `cache`, and written anew where they
/// are not as they ship.
///
/// # Errors
/// When a copy cannot be written.
pub fn shipped_texts(cache: &Path) -> io::Result<PathBuf> {
    if let Some(workspace) = crate::shipped::workspace_folder() {
        return Ok(workspace);
    }
    for (path, text) in TEXTS {
        let file = cache.join(path);
        if fs::read(&file).is_ok_and(|there| there == text.as_bytes()) {
            continue;
        }
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        // By renaming: another pliant may be reading it.
        let beside = file.with_extension(format!("{}.tmp", std::process::id()));
        fs::write(&beside, text)?;
        fs::rename(&beside, &file)?;
    }
    Ok(cache.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_made_and_mended() {
        let cache = tempfile::tempdir().unwrap();
        let skill = cache.path().join("skills/write-plugin/SKILL.md");
        for spoil in [false, true] {
            if spoil {
                fs::write(&skill, "half").unwrap();
            }
            assert_eq!(shipped_texts(cache.path()).unwrap(), cache.path());
            assert!(
                fs::read_to_string(&skill)
                    .unwrap()
                    .contains("name: write-plugin")
            );
        }
        let files = fs::read_dir(skill.parent().unwrap()).unwrap();
        assert_eq!(files.count(), 1, "nothing is left beside them");
    }
}
