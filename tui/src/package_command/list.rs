//! `pliant list`: the packages that the settings name.

use clap::Args;
use pliant_kernel::packages::Package;
use pliant_kernel::settings::Scope;
use serde_json::json;

use super::{Named, lock};
use crate::say;
use crate::session_command::print;

/// List the packages of the user and of the project in the working directory.
#[derive(Args)]
pub struct List {
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl List {
    pub fn run(&self) -> anyhow::Result<u8> {
        let named = Named::read()?;
        let (entries, odd) = named.entries();
        odd.iter().for_each(say::warning);
        let (mut lines, mut records) = (String::new(), Vec::new());
        for entry in entries {
            let folder = entry.source.folder(&named.agent_dir);
            let locked = lock::of(&named.agent_dir, &entry.source.identity());
            let commit = locked.map(|locked| locked.commit);
            let read = Package::read(&folder);
            let scope = match entry.scope {
                Scope::Project => "project",
                _ => "user",
            };
            let (name, version, problem) = match &read {
                Ok((package, _)) => (Some(&package.name), package.version.as_ref(), None),
                Err(error) => (None, None, Some(&error.message)),
            };
            records.push(json!({
                "source": entry.written, "scope": scope, "folder": folder, "name": name,
                "version": version, "commit": commit, "problem": problem,
            }));
            let version = version.map(|version| format!(" {version}"));
            let commit = commit.as_deref().and_then(|commit| commit.get(..12));
            let commit = commit.map(|commit| format!(" ({commit})"));
            lines += &format!(
                "{} [{scope}]{}{}{}\n",
                entry.written,
                version.unwrap_or_default(),
                commit.unwrap_or_default(),
                problem
                    .map(|problem| format!(": {problem}"))
                    .unwrap_or_default()
            );
        }
        match self.json {
            true => print(&format!("{}\n", json!(records))),
            false if lines.is_empty() => print("No packages. `pliant install SOURCE` adds one.\n"),
            false => print(&lines),
        }
    }
}
