//! The session while plugins and scripts are reloaded (R53, `resources.md` §12.4).

use std::sync::Arc;

use pliant_sdk::error::code;
use pliant_sdk::event::SourceChange;
use pliant_sdk::host::BoxFuture;
use pliant_sdk::{Error, Event};
use serde_json::json;

use super::claim::Standing;
use super::{Session, Shared, lock};
use crate::registry::HookPoint;
use crate::reload::{Hold, OpenSession, Report};
use crate::watch::Place;

impl Session {
    /// Loads every plugin and script anew, as they are now. What cannot be loaded is in the report, and
    /// what served goes on.
    ///
    /// # Errors
    /// While a run or compaction is active.
    pub async fn reload(&self) -> Result<Report, Error> {
        self.0.equipment.reloader.reload().await
    }

    /// Nobody is told of a session that has heard of its own end.
    async fn tell_sources(self, point: HookPoint, sources: Vec<String>) {
        if !self.0.claims.is_closed() {
            let event = json!({"type": point.name(), "reason": "reload"});
            self.tell_some(point, &event, Some(&sources)).await;
        }
    }
}

impl OpenSession for Shared {
    fn may_reload(&self) -> Result<(), Error> {
        let going_on = match self.claims.standing() {
            Standing::Free | Standing::Changing | Standing::Closed => return Ok(()),
            Standing::Running | Standing::Settling => "a run is active",
            Standing::Compacting => "the conversation is being compacted",
            Standing::Navigating => "the session moves to another place of its tree",
        };
        Err(Error::new(
            code::UNAVAILABLE,
            format!("Nothing is reloaded while {going_on}. Wait until it has ended, or stop it."),
        ))
    }

    fn hold(self: Arc<Self>) -> BoxFuture<'static, Hold> {
        Box::pin(async move {
            let hold: Hold = Box::new(self.claims.let_in().await);
            hold
        })
    }

    fn hold_now(self: Arc<Self>) -> Option<Hold> {
        let hold: Hold = Box::new(self.claims.let_in_now()?);
        Some(hold)
    }

    fn tell_end(self: Arc<Self>, sources: Vec<String>) -> BoxFuture<'static, ()> {
        Box::pin(Session(self).tell_sources(HookPoint::SessionShutdown, sources))
    }

    fn tell_start(self: Arc<Self>, sources: Vec<String>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let snapshot = self.equipment.registry.snapshot();
            lock(&self.state).tools.refresh(&snapshot);
            let told = Session(Arc::clone(&self)).tell_sources(HookPoint::SessionStart, sources);
            told.await;
            self.note_mcp_servers();
            Session(self).discover("reload").await;
        })
    }

    fn places(&self) -> Vec<Place> {
        self.prompt.places()
    }

    fn reread(&self) -> Vec<SourceChange> {
        if self.default_tools_by_settings {
            let defaults = self.equipment.settings.now().used().default_tools.clone();
            let snapshot = self.equipment.registry.snapshot();
            lock(&self.state).tools.redefault(defaults, &snapshot);
        }
        let (is_other, changes) = self.prompt.reread();
        if is_other {
            // The next request is made with another loadout, which has the new texts.
            lock(&self.state).tools.count_change();
        }
        changes
    }

    fn say(&self, event: Event) -> BoxFuture<'_, ()> {
        Box::pin(self.subscribers.publish(event))
    }
}
