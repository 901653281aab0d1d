//! Folders of skills and templates that extensions name once a session has begun (`resources_discover`,
//! `extensions.md` §3.1). They come after everything that is found otherwise.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pliant_sdk::{Error, Event};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Session, lock};
use crate::registry::{Callers, Dispatcher, HookPoint};
use crate::reload::OpenSession;
use crate::resources::Discovered;

/// What one handler names.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Named {
    skill_paths: Vec<PathBuf>,
    prompt_paths: Vec<PathBuf>,
    theme_paths: Vec<PathBuf>,
}

impl Session {
    /// Asks the handlers, and reads what they name. Without handlers nothing is read.
    pub(super) async fn discover(&self, reason: &str) {
        let shared = &self.0;
        let found = self.ask_for_places(reason).await;
        let resources = Arc::clone(shared.prompt.resources());
        if !resources.discover(found) {
            return;
        }
        let reading = tokio::task::spawn_blocking(move || resources.reread());
        let mut said = Vec::new();
        match reading.await {
            Ok(Ok(reread)) => said = reread.warnings,
            Ok(Err(missing)) => said.push(missing.to_string()),
            Err(_) => {}
        }
        // The prompt is built from what was read.
        shared.reread();
        shared.equipment.reloader.look_again();
        for message in said {
            shared.subscribers.publish(Event::Notice { message }).await;
        }
    }

    async fn ask_for_places(&self, reason: &str) -> Discovered {
        let shared = &self.0;
        let snapshot = shared.equipment.registry.snapshot();
        let point = HookPoint::ResourcesDiscover;
        let callers = Callers::new(shared, shared.patience(lock(&shared.abort).clone()));
        let mut found = Discovered::default();
        let Some(dispatcher) = Dispatcher::new(&snapshot, point, callers) else {
            return found;
        };
        let event = json!({"type": point.name(), "cwd": shared.cwd, "reason": reason});
        let take = |found: &mut Discovered, answer: Value| {
            let named: Named = serde_json::from_value(answer).map_err(|error| {
                Error::invalid(format!(
                    "its answer names no lists of paths in `skillPaths`, `promptPaths`, `themePaths`: {error}"
                ))
            })?;
            found
                .skills
                .extend(absolute(named.skill_paths, &shared.cwd));
            found
                .templates
                .extend(absolute(named.prompt_paths, &shared.cwd));
            found
                .themes
                .extend(absolute(named.theme_paths, &shared.cwd));
            Ok(ControlFlow::Continue(()))
        };
        // The point does not fail closed, so the dispatch has no failure of its own.
        let _ = dispatcher.each(&mut found, |_| event.clone(), take).await;
        shared.publish_reports().await;
        found
    }
}

fn absolute(paths: Vec<PathBuf>, cwd: &Path) -> impl Iterator<Item = PathBuf> {
    paths.into_iter().map(|path| cwd.join(path))
}
