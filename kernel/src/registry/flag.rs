//! The flags of extensions: what was declared, and what the user gave for them. What was given
//! belongs to the process, so it survives a reload (`extensions.md` §4.6).

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use pliant_sdk::flag::FlagSpec;
use serde::Deserialize;
use serde_json::Value;

use super::generation::Kind;
use super::snapshot::Snapshot;

/// What the user gave, by the names of the flags.
#[derive(Debug, Default)]
pub struct FlagValues(RwLock<HashMap<String, Value>>);

impl FlagValues {
    /// Sets what was given for a flag.
    pub fn set(&self, name: &str, value: Value) {
        let mut values = self.0.write().unwrap_or_else(PoisonError::into_inner);
        values.insert(name.to_owned(), value);
    }

    /// What a source learns of one of its own flags; null for any other.
    #[must_use]
    pub fn of_source(&self, snapshot: &Snapshot, source: &str, name: &str) -> Value {
        let Some(spec) = declared(snapshot, source, name) else {
            return Value::Null;
        };
        let values = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let given = values.get(name).cloned();
        given.or(spec.default).unwrap_or_default()
    }
}

/// A source may ask for its flag also where another one declared the name first.
fn declared(snapshot: &Snapshot, source: &str, name: &str) -> Option<FlagSpec> {
    let mut sources = snapshot.sources().iter();
    let generation = sources.find(|generation| generation.source().name == source)?;
    let items = generation.contributions();
    let item = items
        .iter()
        .find(|item| item.kind == Kind::Flag && item.name == name)?;
    FlagSpec::deserialize(&item.spec).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pliant_sdk::Plugin;
    use serde_json::json;

    use super::*;
    use crate::registry::{InProcess, Rank, Registry, Source};

    fn publish(registry: &Registry, name: &str, plugin: Plugin) {
        let source = Source::inline(name, Rank::User);
        registry.publish(Arc::new(InProcess::new(source, plugin).unwrap()));
    }

    #[test]
    fn a_source_learns_of_its_own_flags_only() {
        // extensions §4.6, §4.12
        let registry = Registry::default();
        let plan = || FlagSpec::boolean("plan", "");
        let tone = FlagSpec::string("tone", "").or("plain");
        publish(&registry, "a", Plugin::new().flag(plan()).flag(tone));
        publish(&registry, "b", Plugin::new().flag(plan().or(false)));
        publish(
            &registry,
            "c",
            Plugin::new().flag(FlagSpec::string("odd", "").or(5)),
        );
        let snapshot = registry.snapshot();
        let names: Vec<_> = snapshot.flags().map(|flag| &*flag.spec.name).collect();
        assert_eq!(names, ["plan", "tone"]);
        assert_eq!(snapshot.diagnostics().len(), 2);

        let values = FlagValues::default();
        let of = |source: &str, name: &str| values.of_source(&snapshot, source, name);
        assert_eq!(
            (of("a", "plan"), of("b", "plan")),
            (Value::Null, json!(false))
        );
        assert_eq!(
            (of("a", "tone"), of("b", "tone")),
            (json!("plain"), Value::Null)
        );
        values.set("plan", json!(true));
        assert_eq!(
            (of("a", "plan"), of("b", "plan")),
            (json!(true), json!(true))
        );
        assert_eq!(of("nobody", "plan"), Value::Null);
    }
}
