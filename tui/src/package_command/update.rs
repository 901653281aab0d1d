//! `pliant update`: clones of branches become what their repositories have now.

use anyhow::bail;
use clap::Args;
use pliant_kernel::host::clock;
use pliant_kernel::packages::{GitSource, Source};

use super::Named;
use super::lock::{self, Locked};
use crate::session_command::print;
use crate::{git, say};

/// Update packages that follow a branch. A tag or commit stays where it is, and so does a folder.
#[derive(Args)]
pub struct Update {
    /// One package; all of them otherwise.
    source: Option<String>,
}

impl Update {
    pub fn run(&self) -> anyhow::Result<u8> {
        let named = Named::read()?;
        let wanted = match &self.source {
            Some(source) => Some(named.parse(source)?.identity()),
            None => None,
        };
        let (entries, odd) = named.entries();
        odd.iter().for_each(say::warning);
        let (mut said, mut status) = (String::new(), 0);
        let mut is_known = false;
        for entry in entries {
            let identity = entry.source.identity();
            if wanted.as_ref().is_some_and(|wanted| *wanted != identity) {
                continue;
            }
            is_known = true;
            let Source::Git(git) = &entry.source else {
                continue;
            };
            match updated(git, &entry.source, &named) {
                Ok(what) => said += &format!("{}: {what}.\n", entry.written),
                // The others are updated all the same.
                Err(error) => {
                    say::error(format!("{}: {error:#}", entry.written));
                    status = 1;
                }
            }
        }
        if let (Some(source), false) = (&self.source, is_known) {
            bail!("The settings name no package {source}. `pliant list` shows those there are.");
        }
        if said.is_empty() && status == 0 {
            "There is nothing to update.\n".clone_into(&mut said);
        }
        print(&said)?;
        Ok(status)
    }
}

fn updated(source: &GitSource, of: &Source, named: &Named) -> anyhow::Result<String> {
    let folder = of.folder(&named.agent_dir);
    if !folder.is_dir() {
        bail!("it is not installed; pliant install does that.");
    }
    let before = git::revision(&folder)?;
    if let Some(reference) = &source.reference
        && is_pinned(reference, &folder)?
    {
        return Ok(format!("stays at {reference}"));
    }
    git::fetch(source.reference.as_deref().unwrap_or("HEAD"), &folder)?;
    let commit = git::revision(&folder)?;
    let locked = Locked {
        url: source.url.clone(),
        reference: source.reference.clone(),
        commit: commit.clone(),
        installed_at: clock::now_ms(),
    };
    lock::note(&named.agent_dir, &of.identity(), Some(&locked))?;
    let short = |commit: &str| commit.get(..12).unwrap_or(commit).to_owned();
    Ok(match before == commit {
        true => format!("is up to date at {}", short(&commit)),
        false => format!("{} is now {}", short(&before), short(&commit)),
    })
}

/// Whether it is no branch of the repository.
fn is_pinned(reference: &str, folder: &std::path::Path) -> anyhow::Result<bool> {
    let branch = format!("refs/heads/{reference}");
    let found = git::git(["ls-remote", "--heads", "--", "origin", &branch], folder)?;
    Ok(found.is_empty())
}
