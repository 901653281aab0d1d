//! `pliant plugin check`: everything the loader would say.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use pliant_kernel::boot::check_plugin;
use pliant_kernel::dylib::Checked;
use serde_json::{Value, json};

use crate::session_command::print;
use crate::{launch, say};

/// Say whether a library can be loaded, and what it contributes.
///
/// The library is loaded by a process of its own, which ends then.
#[derive(Args)]
pub struct Check {
    /// The library.
    file: PathBuf,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl Check {
    pub fn run(&self) -> anyhow::Result<u8> {
        let file = launch::working_dir()?.join(&self.file);
        let checked = check_plugin(&super::options()?, &file);
        let status = match &checked {
            Ok(checked) if checked.problems.is_empty() => 0,
            _ => 1,
        };
        if self.json {
            let told = match &checked {
                Ok(checked) => as_json(checked),
                Err(error) => json!({"loads": false, "problems": [error.to_string()]}),
            };
            print(&format!("{told}\n"))?;
            return Ok(status);
        }
        match checked {
            Ok(checked) => {
                print(&as_text(&checked))?;
                checked.problems.iter().for_each(say::warning);
            }
            Err(error) => say::error(error),
        }
        Ok(status)
    }
}

fn as_json(checked: &Checked) -> Value {
    let contributions = checked.contributions.iter();
    let contributions: Vec<&Value> = contributions.map(|item| &item.spec).collect();
    let manifest = &checked.found.manifest;
    json!({
        "loads": true,
        "name": manifest.name,
        "version": manifest.version,
        "abi": format!("{}.{}", manifest.abi, manifest.abi_minor),
        "sdk": manifest.sdk,
        "isolation": manifest.isolation,
        "sha256": checked.digest.map(|digest| digest.to_string()),
        "size": checked.size,
        "contributions": contributions,
        "problems": checked.problems,
    })
}

fn as_text(checked: &Checked) -> String {
    let manifest = &checked.found.manifest;
    let mut text = format!(
        "{} {} can be loaded.\nABI {}.{}, SDK {}, {} KB, SHA-256 {}\n",
        manifest.name,
        manifest.version,
        manifest.abi,
        manifest.abi_minor,
        manifest.sdk,
        checked.size.div_ceil(1024),
        checked
            .digest
            .map_or_else(String::new, |digest| digest.to_string()),
    );
    for item in &checked.contributions {
        let about = item.spec["description"].as_str().unwrap_or_default();
        let about = about.lines().next().unwrap_or_default();
        let kind = serde_json::to_value(item.kind).unwrap_or_default();
        // A string takes everything.
        let _ = writeln!(
            text,
            "{} {} {about}",
            kind.as_str().unwrap_or_default(),
            item.name
        );
    }
    text
}
