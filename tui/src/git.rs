//! git, as a program that fetches: nobody is asked, nothing of what is fetched runs, and nothing that is
//! given is an option.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

/// Runs git and answers what it prints.
///
/// # Errors
/// What it says.
pub fn git<'a>(args: impl IntoIterator<Item = &'a str>, folder: &Path) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    command
        // A repository brings no hooks, but a user's own would run in it.
        .args(["-c", "core.hooksPath=/dev/null"])
        .args(["-c", "protocol.ext.allow=never"])
        .args(["-c", "fetch.recurseSubmodules=no"])
        .arg("-C")
        .arg(folder)
        .args(args)
        // What needs a password says so.
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_LFS_SKIP_SMUDGE", "1")
        .stdin(std::process::Stdio::null());
    let output = command.output().context("git cannot be started.")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("git says: {}", said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Clones a repository without its history, at a tag, branch or commit if one is given, and answers the
/// commit.
///
/// # Errors
/// What git says.
pub fn clone(url: &str, reference: Option<&str>, into: &Path) -> anyhow::Result<String> {
    let parent = into.parent().unwrap_or(Path::new("."));
    let name = into.file_name().and_then(OsStr::to_str);
    let name = name.context("The folder to clone into has no name.")?;
    let failed = || format!("The repository {url} cannot be cloned.");
    match reference {
        // Behind the two dashes nothing is an option, whatever it begins with.
        None => drop(
            git(
                ["clone", "--quiet", "--depth", "1", "--", url, name],
                parent,
            )
            .with_context(failed)?,
        ),
        Some(reference) => {
            git(["init", "--quiet", "--", name], parent).with_context(failed)?;
            git(["remote", "add", "--", "origin", url], into).with_context(failed)?;
            fetch(reference, into)
                .with_context(|| format!("{} It may have no {reference}.", failed()))?;
        }
    }
    revision(into)
}

/// Makes a clone what its repository has at a tag, branch or commit now.
///
/// # Errors
/// What git says.
pub fn fetch(reference: &str, folder: &Path) -> anyhow::Result<()> {
    let args = [
        "fetch",
        "--quiet",
        "--depth",
        "1",
        "--no-tags",
        "--",
        "origin",
        reference,
    ];
    git(args, folder)?;
    git(
        ["checkout", "--quiet", "--force", "--detach", "FETCH_HEAD"],
        folder,
    )
    .map(drop)
}

/// The commit of a clone.
///
/// # Errors
/// What git says.
pub fn revision(folder: &Path) -> anyhow::Result<String> {
    git(["rev-parse", "HEAD"], folder)
}
