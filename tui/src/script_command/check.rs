//! `pliant script check`: loads a script as a session would, and says what it would register.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use pliant_kernel::registry::{Contribution, Generation, Rank};
use pliant_scripts::{Limits, Script, load_extension};
use pliant_sdk::Error;
use pliant_sdk::host::NoServices;
use serde_json::{Value, json};

use crate::say;
use crate::session_command::print;

/// Say whether scripts can be loaded, and what they register.
///
/// The top level of each runs, without any service: no file is read and no program started.
#[derive(Args)]
pub struct Check {
    /// The scripts.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// As JSON, a line each.
    #[arg(long)]
    json: bool,
}

impl Check {
    pub fn run(&self) -> anyhow::Result<u8> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()?;
        let mut status = 0;
        for file in &self.files {
            let loaded = runtime.block_on(load(file));
            status |= u8::from(loaded.is_err());
            let told = match (self.json, loaded) {
                (true, Ok(generation)) => format!("{}\n", as_json(file, &*generation)),
                (true, Err(error)) => {
                    let file = file.display().to_string();
                    let told = json!({"file": file, "loads": false, "problem": error.message});
                    format!("{told}\n")
                }
                (false, Ok(generation)) => as_text(file, &*generation),
                (false, Err(error)) => {
                    say::error(error.message);
                    continue;
                }
            };
            print(&told)?;
        }
        Ok(status)
    }
}

async fn load(file: &Path) -> Result<Arc<dyn Generation>, Error> {
    let script = Script::read(file, Rank::CommandLine)?;
    load_extension(script, Arc::new(NoServices), Limits::default()).await
}

fn as_json(file: &Path, generation: &dyn Generation) -> Value {
    let items = generation.contributions();
    let specs: Vec<&Value> = items.iter().map(|item| &item.spec).collect();
    json!({"file": file.display().to_string(), "loads": true, "contributions": specs})
}

fn as_text(file: &Path, generation: &dyn Generation) -> String {
    let mut text = format!("{} can be loaded.\n", file.display());
    let items = generation.contributions();
    if items.is_empty() {
        text.push_str("It registers nothing.\n");
    }
    for item in items.iter() {
        // A string takes everything.
        let _ = writeln!(text, "{}", line(item));
    }
    text
}

/// Kind, name, and the first line of what it says of itself.
fn line(item: &Contribution) -> String {
    let kind = serde_json::to_value(item.kind).unwrap_or_default();
    let about = item.spec["description"].as_str().unwrap_or_default();
    let about = about.lines().next().unwrap_or_default();
    let kind = kind.as_str().unwrap_or_default();
    format!("{kind} {} {about}", item.name)
        .trim_end()
        .to_owned()
}
