//! `-e FOLDER`: everything that a folder brings, for one run, as if each of it had been named
//! (`resources.md` §2).

use std::path::{Path, PathBuf};

use anyhow::bail;
use pliant_kernel::packages::Package;

use crate::args::Options;
use crate::library::is_library;
use crate::say;

/// Names what is in the folders that were given as extensions.
///
/// # Errors
/// For a folder that brings nothing.
pub fn folders(options: &mut Options) -> anyhow::Result<()> {
    for path in std::mem::take(&mut options.extension) {
        if !path.is_dir() {
            options.extension.push(path);
            continue;
        }
        let index = path.join("index.rhai");
        if index.is_file() {
            options.extension.push(index);
            continue;
        }
        let (package, odd) = Package::read(&path)?;
        odd.iter().for_each(say::warning);
        if package.is_empty() {
            bail!(
                "The folder {} holds no extension: it has no index.rhai, and neither extensions, skills nor prompts.",
                path.display()
            );
        }
        for place in &package.extensions {
            options.extension.extend(scripts(place));
        }
        options.skill.extend(package.skills);
        options.prompt_template.extend(package.prompts);
    }
    Ok(())
}

/// As they are found in a folder of extensions: one level deep.
fn scripts(place: &Path) -> Vec<PathBuf> {
    if place.is_file() {
        return vec![place.to_owned()];
    }
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries
        .filter_map(|entry| {
            let path = entry.path();
            let index = path.join("index.rhai");
            let is_script = path.extension().is_some_and(|ending| ending == "rhai");
            match () {
                () if index.is_file() => Some(index),
                () if path.is_file() && (is_script || is_library(&path)) => Some(path),
                () => None,
            }
        })
        .collect();
    all.sort();
    all
}
