//! `pliant plugin install`: a library, a crate or a repository becomes a plugin of the user.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use clap::Args;
use pliant_kernel::boot::check_plugin;
use pliant_kernel::dev::Crate;
use pliant_kernel::digest::Digest;
use pliant_kernel::dylib::Checked;
use pliant_kernel::host::clock;

use super::lock::{self, Entry};
use crate::session_command::print;
use crate::{git, launch, say};

/// Install a plugin for every session: a library, the folder of a crate, or a git repository.
///
/// Crates are built with cargo. What was installed from where is noted in plugins.lock.json.
#[derive(Args)]
pub struct Install {
    /// A path, or a URL of git (https://, ssh://, file://, git@…).
    source: String,
}

impl Install {
    pub fn run(&self) -> anyhow::Result<u8> {
        let source = self.source.as_str();
        if is_url(source) {
            let clone = TempFolder::new()?;
            let folder = clone.path().join("clone");
            let revision = git::clone(source, None, &folder)?;
            let library = built(&folder)?;
            return install(&library, &without_secret(source), Some(revision));
        }
        let path = launch::working_dir()?.join(source);
        let from = path.display().to_string();
        if path.is_dir() {
            return install(&built(&path)?, &from, None);
        }
        install(&path, &from, None)
    }
}

fn is_url(source: &str) -> bool {
    let schemes = ["https://", "http://", "ssh://", "file://", "git://", "git@"];
    schemes.iter().any(|scheme| source.starts_with(scheme))
}

/// A URL as it may be kept: a name or password in it would stand there in plain text.
fn without_secret(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    match host.rsplit_once('@') {
        Some((_, host)) if scheme.starts_with("http") => format!("{scheme}://{host}/{path}"),
        _ => url.to_owned(),
    }
}

/// Builds the crate in a folder, and answers its library.
fn built(folder: &Path) -> anyhow::Result<PathBuf> {
    let crates = Crate::find(folder)?;
    let [one] = crates.as_slice() else {
        let names: Vec<&str> = crates.iter().map(Crate::name).collect();
        bail!(
            "The folder {} holds several plugins: {}. Name the folder of one.",
            folder.display(),
            names.join(", ")
        );
    };
    let status = Command::new("cargo")
        .args([
            "build",
            "--release",
            "--package",
            one.name(),
            "--manifest-path",
        ])
        .arg(one.manifest())
        .status()
        .context("cargo cannot be started. It comes with Rust: https://rustup.rs.")?;
    if !status.success() {
        bail!(
            "The plugin {} does not build. What cargo said stands above.",
            one.name()
        );
    }
    Ok(one.library("release"))
}

fn install(library: &Path, source: &str, revision: Option<String>) -> anyhow::Result<u8> {
    let Checked {
        found,
        digest,
        problems,
        ..
    } = check_plugin(&super::options()?, library)?;
    problems.iter().for_each(say::warning);
    let name = &found.manifest.name;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(plain) {
        bail!(
            "The plugin's name \"{name}\" cannot be a file name. It may have letters, digits, - and _."
        );
    }
    let folder = super::folder()?;
    std::fs::create_dir_all(&folder)?;
    let file = format!(
        "{}pliant_{}{}",
        std::env::consts::DLL_PREFIX,
        name.replace('-', "_"),
        std::env::consts::DLL_SUFFIX
    );
    if let Some(other) = lock::owner(&launch::agent_dir()?, &file)?.filter(|other| other != name) {
        bail!(
            "The plugin {name} would be written over the plugin {other}, because both have the file {file}. Remove that one first: pliant plugin remove {other}"
        );
    }
    // A running pliant must never see half of it.
    let half = folder.join(format!(".{file}.{}", std::process::id()));
    let copied =
        copy_of(library, &half, digest).and_then(|()| std::fs::rename(&half, folder.join(&file)));
    if let Err(error) = copied {
        let _ = std::fs::remove_file(&half);
        bail!(
            "The plugin cannot be written to {}: {error}.",
            folder.display()
        );
    }
    let entry = Entry {
        version: found.manifest.version.clone(),
        source: source.to_owned(),
        revision,
        sha256: digest.map_or_else(String::new, |digest| digest.to_string()),
        abi: found.manifest.abi,
        file: file.clone(),
        installed_at: clock::now_ms(),
    };
    lock::note(&launch::agent_dir()?, name, &entry)?;
    print(&format!(
        "{name} {} is installed as {}.\n",
        entry.version,
        folder.join(file).display()
    ))
}

/// Copies a library that was checked; what was written over it meanwhile was not.
fn copy_of(library: &Path, to: &Path, checked: Option<Digest>) -> io::Result<()> {
    std::fs::copy(library, to)?;
    match checked.is_none_or(|checked| Digest::of_file(to).is_ok_and(|copied| copied == checked)) {
        true => Ok(()),
        false => Err(io::Error::other(
            "the library changed after it was checked; install it again when it is whole",
        )),
    }
}

/// A folder that goes with this value.
struct TempFolder(PathBuf);

impl TempFolder {
    fn new() -> anyhow::Result<Self> {
        let base = std::env::temp_dir();
        for attempt in 0..100 {
            let path = base.join(format!("pliant-install-{}-{attempt}", std::process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => bail!("No folder can be made in {}: {error}.", base.display()),
            }
        }
        bail!(
            "No folder can be made in {}: all names are taken.",
            base.display()
        )
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // What stays there is in the way of nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_changed_after_it_was_checked_is_not_installed() {
        let dir = TempFolder::new().unwrap();
        let (library, copy) = (dir.path().join("x.so"), dir.path().join("copy.so"));
        std::fs::write(&library, "another one").unwrap();
        let checked = Digest::of(b"the one that was checked");
        let error = copy_of(&library, &copy, Some(checked)).unwrap_err();
        assert!(error.to_string().contains("changed after"), "{error}");
        assert!(copy_of(&library, &copy, Some(Digest::of(b"another one"))).is_ok());
    }
}
