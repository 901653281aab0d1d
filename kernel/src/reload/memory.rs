//! What each source contributed when it was last loaded, kept beyond the process: where a file says
//! nothing any more, this tells what it kept watch of (`Placeholder`).
//!
//! A good start reads and writes nothing for it before the session is open; then it is compared beside
//! everything else. It is a cache: what cannot be read or written is done without.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::jsonfile::{self, Readers};
use crate::registry::{Contribution, Generation, Kind, Promise, Rank, Snapshot};

/// The file.
#[derive(Debug, Clone)]
pub(super) struct Memory(PathBuf);

/// What is known of a source from before.
#[derive(Debug, PartialEq)]
pub(super) struct Remembered {
    pub(super) name: String,
    pub(super) promises: Vec<Promise>,
}

impl Memory {
    pub(super) fn new(file: PathBuf) -> Self {
        Self(file)
    }

    /// What the source of that file contributed.
    pub(super) fn of(&self, path: &Path) -> Option<Remembered> {
        let all = jsonfile::read(&self.0).ok()?;
        let known = all.get(path.to_str()?)?;
        let read = |item: &Value| {
            let kind = Kind::parse(item.get("kind")?.as_str()?)?;
            let name = item.get("name")?.as_str()?.to_owned();
            let spec = item.get("spec").cloned().unwrap_or_default();
            Some(Promise { kind, name, spec })
        };
        let items = known.get("contributions")?.as_array()?.iter();
        Some(Remembered {
            name: known.get("name")?.as_str()?.to_owned(),
            promises: items.filter_map(read).collect(),
        })
    }

    /// Keeps what is registered now, unless that is known. To be called where waiting for the disk hurts
    /// nobody.
    pub(super) fn keep(&self, snapshot: &Snapshot) {
        let news = news(snapshot);
        let is_new = |known: &Map<String, Value>| {
            news.iter()
                .any(|(path, value)| known.get(path) != Some(value))
        };
        if news.is_empty() || jsonfile::read(&self.0).is_ok_and(|known| !is_new(&known)) {
            return;
        }
        let kept = jsonfile::change(&self.0, "The cache", Readers::User, |known| {
            known.retain(|path, _| Path::new(path).exists());
            known.extend(news);
            Ok(())
        });
        if let Err(error) = kept {
            tracing::debug!(target: "pliant::reload", "{error}");
        }
    }
}

/// Every source that has a file of its own and serves.
fn news(snapshot: &Snapshot) -> Map<String, Value> {
    let sources = snapshot.sources().iter();
    let own = sources.filter(|source| source.source().rank != Rank::BuiltIn);
    let of = |generation: &dyn Generation| {
        let path = generation.source().path.as_ref()?.to_str()?.to_owned();
        let contributions = generation.contributions();
        if contributions.is_empty() || generation.fault().is_some() {
            return None;
        }
        let items: Vec<Value> = contributions.iter().map(written).collect();
        let name = &generation.source().name;
        Some((path, json!({"name": name, "contributions": items})))
    };
    own.filter_map(|generation| of(&**generation)).collect()
}

/// A contribution in short: the schema of a tool is of no use without the tool.
fn written(item: &Contribution) -> Value {
    let Contribution {
        kind, name, spec, ..
    } = item;
    match kind {
        Kind::Provider | Kind::VirtualModel | Kind::Command | Kind::Flag => {
            json!({"kind": kind, "name": name, "spec": spec})
        }
        _ => json!({"kind": kind, "name": name}),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use pliant_sdk::Plugin;
    use pliant_sdk::command::{Command, CommandCtx, CommandSpec};

    use super::*;
    use crate::registry::{InProcess, Registry, Source};

    struct Named(&'static str);

    impl Command for Named {
        fn spec(&self) -> CommandSpec {
            CommandSpec::new(self.0, "d")
        }

        async fn run(&self, _: String, _: CommandCtx) -> Result<(), pliant_sdk::Error> {
            Ok(())
        }
    }

    fn loaded(path: &Path, rank: Rank) -> Arc<Snapshot> {
        let registry = Registry::default();
        let plugin = Plugin::new().command(Named("c"));
        let plugin = plugin.on_event("tool_call", |_, _| async { Ok(Value::Null) });
        let source = Source {
            name: "x".to_owned(),
            path: Some(path.to_owned()),
            rank,
        };
        registry.publish(Arc::new(InProcess::new(source, plugin).unwrap()));
        registry.snapshot()
    }

    #[test]
    fn a_source_is_known_by_its_file_and_the_file_is_written_when_that_changes() {
        let folder = tempfile::tempdir().unwrap();
        let [file, source] = ["cache/known.json", "x.rhai"].map(|name| folder.path().join(name));
        fs::write(&source, "").unwrap();
        let memory = Memory::new(file.clone());
        assert_eq!(memory.of(&source), None);
        memory.keep(&loaded(&source, Rank::User));
        let remembered = memory.of(&source).unwrap();
        assert_eq!(remembered.name, "x");
        let kinds = remembered
            .promises
            .iter()
            .map(|item| (item.kind, item.name.as_str()));
        let kinds: Vec<_> = kinds.collect();
        assert_eq!(kinds, [(Kind::Command, "c"), (Kind::Hook, "tool_call")]);
        assert_eq!(remembered.promises[0].spec["description"], "d");
        // Nothing new.
        let before = fs::metadata(&file).unwrap().modified().unwrap();
        memory.keep(&loaded(&source, Rank::User));
        assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), before);
    }

    #[test]
    fn what_ships_is_not_remembered_and_what_is_gone_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let [file, gone, source] = ["known.json", "a", "b"].map(|name| folder.path().join(name));
        let memory = Memory::new(file.clone());
        fs::write(&source, "").unwrap();
        memory.keep(&loaded(&source, Rank::BuiltIn));
        assert!(!file.exists());
        memory.keep(&loaded(&gone, Rank::User));
        memory.keep(&loaded(&source, Rank::User));
        assert_eq!(memory.of(&gone), None);
        assert!(memory.of(&source).is_some());
    }
}
