//! The session as a run, a tool and a handler see it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pliant_sdk::host::{BoxFuture, Services};
use pliant_sdk::provider::StreamOptions;
use pliant_sdk::{Error, Event, Message, Model};

use super::{Delivery, Shared, lock};
use crate::compaction::CompactionSettings;
use crate::host::actions::{Actions, HostUi};
use crate::models::ModelClient;
use crate::registry::{HandlerFailure, MakeServices, Registry, Snapshot, Source};
use crate::run::{Loadout, RetryPolicy, RunHost, Selection};
use crate::tree::{Compaction, EntryBody, EntryId, Replacement, SessionTree};

impl RunHost for Arc<Shared> {
    fn registry(&self) -> &Registry {
        &self.equipment.registry
    }

    fn client(&self) -> &ModelClient {
        &self.equipment.client
    }

    fn selection(&self) -> Selection {
        let state = lock(&self.state);
        Selection {
            model: state.model.clone().unwrap_or_default(),
            level: state.level,
        }
    }

    /// `retry.provider.*` and the idle limit (`providers.md` §7.1, §7.5).
    fn stream_options(&self) -> StreamOptions {
        let settings = &self.equipment.settings;
        let retry = |key: &str| settings.count(&format!("retry.provider.{key}"));
        StreamOptions {
            timeout_ms: retry("timeoutMs").or(settings.http_idle_timeout_ms()),
            max_retries: retry("maxRetries").and_then(|count| u32::try_from(count).ok()),
            max_retry_delay_ms: retry("maxRetryDelayMs"),
            ..StreamOptions::default()
        }
    }

    fn loadout(&self, snapshot: &Arc<Snapshot>) -> Arc<Loadout> {
        let active = self.tools.active(snapshot);
        let mut state = lock(&self.state);
        let scene = state.scene(&self.cwd.display().to_string());
        if let Some(loadout) = &state.loadout
            && loadout.is_current(snapshot, &active, &scene)
        {
            return Arc::clone(loadout);
        }
        // Weak: the session keeps the loadout, whose tools hold this.
        let (session, host) = (Arc::downgrade(self), Arc::clone(&self.equipment.host));
        let services: MakeServices = Arc::new(move |source: &Source| match session.upgrade() {
            Some(session) => session.source_services(source),
            None => host.for_source(source, None),
        });
        let loadout = Arc::new(Loadout::new(
            snapshot,
            &active,
            &services,
            scene,
            &self.prompt,
        ));
        state.loadout = Some(Arc::clone(&loadout));
        loadout
    }

    fn services(&self, source: &Source) -> Arc<dyn Services> {
        self.source_services(source)
    }

    fn handler_limit(&self) -> Option<Duration> {
        self.equipment.settings.handler_limit()
    }

    fn publish(&self, event: Event) -> BoxFuture<'_, ()> {
        Box::pin(self.subscribers.publish(event))
    }

    fn report(&self, failure: HandlerFailure) {
        lock(&self.reports).push(failure);
    }

    fn publish_reports(&self) -> BoxFuture<'_, ()> {
        Box::pin(Shared::publish_reports(self))
    }

    fn store(&self, message: &Arc<Message>) -> Result<(), Error> {
        match self.tree().append_message(Arc::clone(message)) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::failed(error.to_string())),
        }
    }

    fn retry_policy(&self) -> RetryPolicy {
        let settings = &self.equipment.settings;
        let count = |key: &str| settings.count(&format!("retry.{key}"));
        let default = RetryPolicy::default();
        RetryPolicy {
            enabled: settings.get("retry.enabled").as_bool().unwrap_or(true),
            max_retries: count("maxRetries")
                .and_then(|count| u32::try_from(count).ok())
                .unwrap_or(default.max_retries),
            base_delay_ms: count("baseDelayMs").unwrap_or(default.base_delay_ms),
            max_delay_ms: count("maxAgentDelayMs").unwrap_or(default.max_delay_ms),
        }
    }

    fn omit(&self, message: &Arc<Message>) -> Result<Vec<serde_json::Value>, Error> {
        let mut tree = self.tree();
        let stored = tree.path_to_leaf().iter().rev().find(|entry| {
            entry
                .message()
                .is_some_and(|stored| Arc::ptr_eq(stored, message))
        });
        let Some(id) = stored.map(|entry| entry.id().clone()) else {
            return Ok(Vec::new());
        };
        let edit = tree
            .edit_context(&id, Replacement::Omit)
            .map_err(|error| Error::failed(error.to_string()))?;
        Ok(serde_json::from_str(&edit.raw()).into_iter().collect())
    }

    fn compaction_settings(&self, model: &Model) -> Result<CompactionSettings, Error> {
        CompactionSettings::of(&self.equipment.settings, model)
    }

    fn look<T>(&self, look: impl FnOnce(&SessionTree) -> T) -> T {
        look(&self.tree())
    }

    fn append_compaction(&self, compaction: Compaction) -> Result<EntryId, Error> {
        match self.tree().append(EntryBody::Compaction(compaction)) {
            Ok(entry) => Ok(entry.id().clone()),
            Err(error) => Err(Error::failed(error.to_string())),
        }
    }

    fn run_boundary(&self) {
        Shared::run_boundary(self);
    }

    fn context(&self) -> Vec<Arc<Message>> {
        self.tree().context().to_vec()
    }

    fn transcript(&self, model: &Model) -> Vec<Arc<Message>> {
        let tree = self.tree();
        lock(&self.transcript).update(tree.context(), model)
    }

    fn take_steering(&self) -> Vec<Message> {
        lock(&self.queues).take(Delivery::Steer)
    }

    fn take_follow_up(&self) -> Vec<Message> {
        lock(&self.queues).take(Delivery::FollowUp)
    }

    fn delivered(&self, text: &str) -> Option<(Vec<String>, Vec<String>)> {
        let mut queues = lock(&self.queues);
        queues.delivered(text).then(|| queues.shown())
    }

    fn begin_settling(&self, force: bool) -> bool {
        self.claims
            .begin_settling(|| force || lock(&self.queues).is_empty())
    }

    fn conversation(&self) -> String {
        self.tree().id().to_string()
    }

    fn now_ms(&self) -> i64 {
        self.now()
    }
}

impl Actions for Shared {
    fn cwd(&self) -> &Path {
        &self.cwd
    }

    fn environment(&self) -> Vec<(String, String)> {
        let (id, file) = {
            let tree = self.tree();
            (
                tree.id().to_string(),
                tree.path().map(|path| path.display().to_string()),
            )
        };
        let state = lock(&self.state);
        let model = state.model.as_ref();
        let values = [
            ("SESSION_ID", Some(id)),
            ("SESSION_FILE", file),
            (
                "PROVIDER",
                model.map(|model: &Model| model.provider.clone()),
            ),
            ("MODEL", model.map(|model| model.id.clone())),
            ("REASONING_LEVEL", Some(state.level.as_str().to_owned())),
        ];
        let both = |(name, value): (&str, Option<String>)| {
            value.map(|value| {
                [
                    (format!("PLIANT_{name}"), value.clone()),
                    (format!("PI_{name}"), value),
                ]
            })
        };
        values.into_iter().filter_map(both).flatten().collect()
    }

    fn ui(&self) -> &dyn HostUi {
        &*self.equipment.ui
    }
}
