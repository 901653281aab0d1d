//! `pliant plugin list`: what there is.

use std::fmt::Write;

use clap::Args;
use pliant_kernel::boot::{Item, inventory};
use serde_json::json;

use crate::say;
use crate::session_command::print;

/// List plugins and scripts.
///
/// How those of a running pliant are doing, its word /plugins tells.
#[derive(Args)]
pub struct List {
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl List {
    pub fn run(&self) -> anyhow::Result<u8> {
        let (items, problems) = inventory(&super::options()?);
        if self.json {
            return print(&format!(
                "{}\n",
                json!({"items": items, "problems": problems})
            ));
        }
        let status = print(&items.iter().map(line).collect::<String>())?;
        problems.iter().for_each(say::warning);
        Ok(status)
    }
}

fn line(item: &Item) -> String {
    let rank = json!(item.rank);
    let mut text = format!(
        "{} {} ({}, {})",
        item.name,
        item.version.as_deref().unwrap_or("script"),
        rank.as_str().unwrap_or_default(),
        item.content.as_deref().unwrap_or("unreadable"),
    );
    if !item.enabled {
        text.push_str(" disabled");
    }
    if item.isolation == "process" {
        text.push_str(" in a process of its own");
    }
    let names: Vec<&str> = item
        .contributes
        .iter()
        .map(|(_, name)| name.as_str())
        .collect();
    if !names.is_empty() {
        let most = names.len().min(12);
        // A string takes everything.
        let _ = write!(text, ": {}", names[..most].join(", "));
        if names.len() > most {
            let _ = write!(text, " and {} more", names.len() - most);
        }
    }
    text.push('\n');
    let path = item.path.display().to_string();
    if path != item.name {
        let _ = writeln!(text, "    {path}");
    }
    text
}
