//! Everything the loader would say of a library, without loading it here.

use std::path::Path;
use std::sync::Arc;

use pliant_sdk::Error;
use pliant_sdk::host::BoxFuture;
use pliant_sdk::plugin::Invocation;

use super::child::probe;
use super::find::found_at;
use super::generation::PluginHost;
use super::load::compare;
use super::manifest::{FoundPlugin, LoadError};
use crate::digest::Digest;
use crate::registry::{Contribution, Generation, Kind, Rank, Registry, Source};

/// What a check came to.
#[derive(Debug)]
pub struct Checked {
    /// What the file says of itself.
    pub found: FoundPlugin,
    /// What identifies its content.
    pub digest: Option<Digest>,
    /// Bytes of the file.
    pub size: u64,
    /// What it contributes.
    pub contributions: Vec<Contribution>,
    /// What would be left out or never be called, in sentences.
    pub problems: Vec<String>,
}

/// Looks at a library, and lets a throw-away child load it and describe itself.
///
/// # Errors
/// Why it would not be loaded.
pub fn check(path: &Path, host: &PluginHost) -> Result<Checked, LoadError> {
    let found = found_at(path, Rank::CommandLine)?;
    found.served_by(&host.offers)?;
    let copy = host.stage.copy(&found.path)?;
    compare(&found, &copy)?;
    let contributions = probe(&found, &copy, host)?.unwrap_or_default();
    let problems = problems(&found, &contributions);
    Ok(Checked {
        digest: Digest::of_file(copy.path()).ok(),
        size: std::fs::metadata(copy.path()).map_or(0, |metadata| metadata.len()),
        found,
        contributions,
        problems,
    })
}

/// What the registry would say, and what it says only when a tool is called.
fn problems(found: &FoundPlugin, contributions: &[Contribution]) -> Vec<String> {
    let registry = Registry::default();
    registry.publish(Arc::new(Described {
        source: found.source(),
        contributions: contributions.into(),
    }));
    let mut problems = registry.snapshot().diagnostics().to_vec();
    for (at, item) in contributions.iter().enumerate() {
        let same = |other: &&Contribution| other.kind == item.kind && other.name == item.name;
        let may_repeat = item.kind == Kind::Hook;
        if !may_repeat && contributions[..at].iter().any(|other| same(&other)) {
            problems.push(format!(
                "\"{}\" is contributed twice; the last one counts.",
                item.name
            ));
        }
        if item.kind == Kind::Tool {
            let parameters = &item.spec["parameters"];
            if let Err(error) = jsonschema::validator_for(parameters) {
                problems.push(format!(
                    "The parameters of the tool \"{}\" are no JSON Schema: {error}.",
                    item.name
                ));
            }
        }
    }
    problems
}

/// A plugin of which only the description is there.
struct Described {
    source: Source,
    contributions: Arc<[Contribution]>,
}

impl Generation for Described {
    fn source(&self) -> &Source {
        &self.source
    }

    fn contributions(&self) -> Arc<[Contribution]> {
        Arc::clone(&self.contributions)
    }

    fn invoke(&self, _: u32, call: Invocation) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        Box::pin(std::future::ready(Err(Error::unsupported(&call.op))))
    }

    fn control(&self, op: &str, _: &[u8]) -> Result<Vec<u8>, Error> {
        Err(Error::unsupported(op))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_services_would_refuse_and_nobody_would_call_is_told_before_anything_runs() {
        let manifest = json!({"name": "x", "version": "1.0.0", "abi": 0});
        let found = FoundPlugin {
            path: "x.so".into(),
            manifest: serde_json::from_value(manifest).unwrap(),
            rank: Rank::CommandLine,
        };
        let tool = |name: &str, parameters| json!({"id": 0, "kind": "tool", "name": name, "description": "", "parameters": parameters});
        let described = vec![
            tool("good", json!({"type": "object"})),
            tool("good", json!({"type": "object"})),
            tool("bad name", json!({"type": "object"})),
            tool("odd", json!({"type": 7})),
            json!({"id": 1, "kind": "hook", "name": "never_heard_of"}),
        ];
        let contributions = Contribution::parse_all(described).unwrap();
        let problems = problems(&found, &contributions).join("\n");
        for words in [
            "\"good\" is contributed twice",
            "\"bad name\"",
            "\"odd\" are no JSON Schema",
            "never_heard_of",
        ] {
            assert!(problems.contains(words), "{words:?} is not in {problems}");
        }
    }
}
