//! `pliant install`: a package is fetched if it has to be, and named in the settings.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use pliant_kernel::host::clock;
use pliant_kernel::packages::{GitSource, Package, Source};
use serde_json::Value;

use super::lock::{self, Locked};
use super::{Named, written};
use crate::session_command::print;
use crate::{git, say};

/// Install a package: a folder, or a repository of git.
///
/// A repository is cloned, at the tag, branch or commit behind an @, and stays there until `pliant update`.
/// A folder is used where it is.
#[derive(Args)]
pub struct Install {
    /// ./PATH, git:HOST/PATH[@REF], or a URL.
    source: String,
    /// Name it in the settings of the project in the working directory.
    #[arg(short = 'l', long = "local")]
    local: bool,
    /// Run the command that builds it without asking.
    #[arg(long)]
    yes: bool,
}

impl Install {
    pub fn run(&self) -> anyhow::Result<u8> {
        let named = Named::read()?;
        let source = named.parse(&self.source)?;
        let folder = source.folder(&named.agent_dir);
        let commit = match &source {
            Source::Folder(_) => None,
            Source::Git(git) => Some(self.fetched(git, &source, &folder, &named)?),
        };
        let (package, odd) = Package::read(&folder)?;
        odd.iter().for_each(say::warning);
        if package.is_empty() {
            say::warning(format!(
                "The package {} brings no extensions, skills, prompts or themes.",
                package.name
            ));
        }
        self.build(&package)?;
        let text = written(&source, &self.source, &named.cwd, self.local)?;
        let (base, _) = named.file(self.local);
        named.change(self.local, |list| {
            let same = |item: &Value| {
                let meaning = named.meaning(item, &base);
                meaning.is_some_and(|other| other.identity() == source.identity())
            };
            match list.iter_mut().find(|item| same(item)) {
                // What it is filtered by stays.
                Some(Value::Object(item)) => drop(item.insert("source".to_owned(), text.into())),
                Some(item) => *item = text.into(),
                None => list.push(text.into()),
            }
        })?;
        let version = package.version.map(|version| format!(" {version}"));
        let at = commit.map(|commit| format!(" at {}", commit.get(..12).unwrap_or(&commit)));
        print(&format!(
            "{}{} is installed{}.\n",
            package.name,
            version.unwrap_or_default(),
            at.unwrap_or_default()
        ))
    }

    /// Clones beside the place it will have, so that it is there whole or not at all.
    fn fetched(
        &self,
        git: &GitSource,
        source: &Source,
        folder: &Path,
        named: &Named,
    ) -> anyhow::Result<String> {
        let parent = folder.parent().context("The package has no place.")?;
        fs::create_dir_all(parent)
            .with_context(|| format!("The folder {} cannot be made.", parent.display()))?;
        let begun = Begun::beside(folder);
        let commit = git::clone(&git.url, git.reference.as_deref(), &begun.0)?;
        begun.becomes(folder)?;
        let locked = Locked {
            url: git.url.clone(),
            reference: git.reference.clone(),
            commit: commit.clone(),
            installed_at: clock::now_ms(),
        };
        lock::note(&named.agent_dir, &source.identity(), Some(&locked))?;
        Ok(commit)
    }

    /// A command of a stranger is run only by the user's word.
    fn build(&self, package: &Package) -> anyhow::Result<()> {
        let Some(command) = &package.build else {
            return Ok(());
        };
        if !self.yes {
            let question = format!(
                "The package {} wants to run this in {}:\n  {command}\nRun it? [y/N] ",
                package.name,
                package.folder.display()
            );
            if !std::io::stdin().is_terminal() {
                bail!(
                    "The package {} is built by \"{command}\", and nobody is there to agree to that. Look at it in {}, then install it with --yes.",
                    package.name,
                    package.folder.display()
                );
            }
            eprint!("{}", say::printable(&question));
            std::io::stderr().flush()?;
            let mut answer = String::new();
            std::io::stdin().read_line(&mut answer)?;
            if !matches!(answer.trim(), "y" | "Y" | "yes") {
                bail!("The package {} is not installed.", package.name);
            }
        }
        let status = std::process::Command::new("/bin/sh")
            .args(["-c", command])
            .current_dir(&package.folder)
            .status()
            .context("A shell cannot be started.")?;
        if !status.success() {
            bail!(
                "The package {} does not build ({status}). What its command said stands above.",
                package.name
            );
        }
        Ok(())
    }
}

/// A clone that is not in its place yet; it goes with this value.
struct Begun(PathBuf);

impl Begun {
    fn beside(folder: &Path) -> Self {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let begun = folder.with_file_name(format!(".{name}.{}", std::process::id()));
        let _ = fs::remove_dir_all(&begun);
        Self(begun)
    }

    /// Takes the place of what was there.
    fn becomes(self, folder: &Path) -> anyhow::Result<()> {
        let old = Self(self.0.with_extension("old"));
        let _ = fs::remove_dir_all(&old.0);
        if folder.exists() {
            fs::rename(folder, &old.0)
                .with_context(|| format!("{} cannot be replaced.", folder.display()))?;
        }
        if let Err(error) = fs::rename(&self.0, folder) {
            let _ = fs::rename(&old.0, folder);
            bail!(
                "The package cannot be put into {}: {error}.",
                folder.display()
            );
        }
        Ok(())
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        // Most of the time it is not there any more.
        let _ = fs::remove_dir_all(&self.0);
    }
}
