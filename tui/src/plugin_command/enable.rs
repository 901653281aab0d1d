//! `pliant plugin enable` and `disable`: the setting that lists what is not to be loaded.

use anyhow::bail;
use clap::Args;
use pliant_kernel::boot::{DISABLED, inventory};
use pliant_kernel::settings::{Settings, write_settings};
use serde::Deserialize;
use serde_json::json;

use crate::launch;
use crate::session_command::print;

/// Let a plugin be loaded again.
#[derive(Args)]
pub struct Enable {
    /// Its name.
    name: String,
}

/// Keep a plugin from being loaded.
#[derive(Args)]
pub struct Disable {
    /// Its name.
    name: String,
}

impl Enable {
    pub fn run(&self) -> anyhow::Result<u8> {
        switch(&self.name, true)
    }
}

impl Disable {
    pub fn run(&self) -> anyhow::Result<u8> {
        switch(&self.name, false)
    }
}

fn switch(name: &str, on: bool) -> anyhow::Result<u8> {
    let (items, _) = inventory(&super::options()?);
    let agent_dir = launch::agent_dir()?;
    let (settings, problems) = Settings::load(&agent_dir);
    if let Some(problem) = problems.first() {
        bail!("{problem}");
    }
    let mut disabled = Vec::<String>::deserialize(settings.get(DISABLED)).unwrap_or_default();
    let is_known = items
        .iter()
        .any(|item| item.kind == "plugin" && item.name == name);
    if !is_known && !disabled.iter().any(|known| known == name) {
        let plugins = items.iter().filter(|item| item.kind == "plugin");
        let names: Vec<&str> = plugins.map(|item| item.name.as_str()).collect();
        bail!(
            "There is no plugin \"{name}\". Those there are: {}.",
            names.join(", ")
        );
    }
    disabled.retain(|known| known != name);
    if !on {
        disabled.push(name.to_owned());
    }
    write_settings(
        &agent_dir.join("settings.json"),
        &[(DISABLED, json!(disabled))],
    )?;
    let is = if on { "enabled" } else { "disabled" };
    print(&format!(
        "{name} is {is}. A running pliant takes note of it when it starts again.\n"
    ))
}
