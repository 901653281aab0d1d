//! `pliant auth import-pi`: the API keys that pi has stored, copied into pliant's own file
//! (`interfaces.md` §3.1). Pi's file is only read, and never without this command.
//!
//! Logins are not copied: a refresh token can be used once, so whichever of the two programs used it
//! second would be logged out.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use pliant_kernel::jsonfile::{self, Readers};
use serde_json::{Map, Value};

use crate::launch;
use crate::pi::{self, Report};

/// Copy the API keys that pi has stored.
#[derive(Args)]
pub struct ImportPi {
    /// Those of these providers only.
    #[arg(value_name = "PROVIDER")]
    providers: Vec<String>,

    /// Also those that pliant has one of its own for.
    #[arg(long)]
    force: bool,

    /// Pi's directory (default: ~/.pi/agent).
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
}

impl ImportPi {
    /// Status 1 says that one of the named providers has no key of pi's here now.
    pub fn run(&self) -> anyhow::Result<u8> {
        let file = pi::directory(self.from.as_deref())?.join("auth.json");
        if !file.exists() {
            bail!("Pi has stored no keys: {} does not exist.", file.display());
        }
        let mut theirs = match jsonfile::read(&file) {
            Ok(theirs) => theirs,
            Err(cause) => bail!("The keys of pi in {}: {cause}", file.display()),
        };
        if let Some(name) = self
            .providers
            .iter()
            .find(|name| !theirs.contains_key(*name))
        {
            bail!("Pi has stored nothing for \"{name}\". Nothing was copied.");
        }
        theirs.retain(|name, _| self.providers.is_empty() || self.providers.contains(name));
        let mut report = Report::default();
        let own = launch::agent_dir()?.join("auth.json");
        let mut all = true;
        jsonfile::change(&own, "The file of stored keys", Readers::User, |ours| {
            for (name, entry) in theirs {
                all &= self.take(ours, name, entry, &mut report);
            }
            Ok(())
        })?;
        let status = report.print()?;
        Ok(status.max(u8::from(!all && !self.providers.is_empty())))
    }

    /// Whether pi's key is pliant's too now.
    fn take(
        &self,
        ours: &mut Map<String, Value>,
        name: String,
        entry: Value,
        report: &mut Report,
    ) -> bool {
        let kind = entry.get("type").and_then(Value::as_str);
        let key = entry.get("key").and_then(Value::as_str);
        match (kind, key, ours.get(&name)) {
            (Some("api_key") | None, Some(_), Some(old)) if *old == entry => true,
            (Some("api_key") | None, Some(_), Some(_)) if !self.force => {
                report.kept(name);
                false
            }
            (Some("api_key") | None, Some(_), _) => {
                report.copied(name.clone());
                ours.insert(name, entry);
                true
            }
            (Some("oauth"), ..) => {
                let why = "it is a login, whose refresh token can be used once: two programs that share \
                    it log each other out. Use an API key here";
                report.left_out(name, why);
                false
            }
            _ => {
                report.left_out(name, "pliant does not know this kind of entry");
                false
            }
        }
    }
}
