//! What a plugin says of itself when it runs, held against what its manifest promised.

use serde_json::Value;

use super::manifest::{FoundPlugin, LoadError, Manifest};
use crate::registry::{Contribution, Kind};

impl FoundPlugin {
    /// What it contributes, from the answer of its `describe`.
    ///
    /// # Errors
    /// When that is not what its manifest names.
    pub(super) fn contributions(&self, described: &[u8]) -> Result<Vec<Contribution>, LoadError> {
        described_as_promised(&self.manifest, described).map_err(|cause| LoadError::Misfit {
            name: self.manifest.name.clone(),
            path: self.path.display().to_string(),
            cause,
        })
    }
}

/// The contributions, if they are exactly the ones the manifest names.
fn described_as_promised(
    manifest: &Manifest,
    described: &[u8],
) -> Result<Vec<Contribution>, String> {
    let Ok(Value::Array(entries)) = serde_json::from_slice(described) else {
        return Err("its description is not a list".to_owned());
    };
    let contributions = Contribution::parse_all(entries).map_err(|error| error.to_string())?;
    let mut real: Vec<_> = contributions
        .iter()
        .map(|item| (item.kind, item.name.as_str()))
        .collect();
    let mut promised: Vec<_> = manifest
        .provides
        .iter()
        .map(|item| (item.kind, item.name.as_str()))
        .collect();
    // Several handlers of one event are one line of the manifest.
    real.sort_by_key(|(kind, name)| (format!("{kind:?}"), *name));
    promised.sort_by_key(|(kind, name)| (format!("{kind:?}"), *name));
    real.dedup();
    promised.dedup();
    let only_in = |these: &[(Kind, &str)], those: &[(Kind, &str)], what: &str| {
        let names = these.iter().filter(|item| !those.contains(item));
        names
            .map(|(kind, name)| {
                format!(
                    "the {} \"{name}\" is {what}",
                    format!("{kind:?}").to_lowercase()
                )
            })
            .collect::<Vec<_>>()
    };
    let mut differences = only_in(&real, &promised, "not listed");
    differences.extend(only_in(&promised, &real, "listed but missing"));
    if !differences.is_empty() {
        return Err(differences.join(", "));
    }
    Ok(contributions)
}
