//! `pliant plugin enable` and `disable`: the setting that lists what is not to be loaded.

use anyhow::{Context, bail};
use clap::Args;
use pliant_kernel::boot::{DISABLED, inventory};
use pliant_kernel::settings::{Settings, write_settings};
use serde::Deserialize;
use serde_json::{Value, json};

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
    let mut disabled = names(settings.get(DISABLED))?;
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

/// The names that are listed. What is no list of names is not written over: it would be lost.
fn names(setting: &Value) -> anyhow::Result<Vec<String>> {
    let names = Option::<Vec<String>>::deserialize(setting);
    names.map(Option::unwrap_or_default).with_context(|| {
        format!("The setting {DISABLED} is no list of names, so it is left as it is. Mend it in settings.json first.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_none_is_refused_and_not_taken_for_an_empty_one() {
        for odd in [json!("files"), json!(["files", 5]), json!({"files": true})] {
            let error = names(&odd).unwrap_err();
            assert!(
                error.to_string().contains("no list of names"),
                "{odd}: {error}"
            );
        }
        assert_eq!(names(&json!(["a"])).unwrap(), ["a"]);
        assert!(names(&Value::Null).unwrap().is_empty());
    }
}
