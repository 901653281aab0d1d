//! What is made of text files and has no code: it is read anew when they change. No session is held for
//! it, because what a session is in the middle of keeps what it began with.

use std::path::Path;
use std::sync::Arc;

use pliant_sdk::event::SourceChange;

use super::{Reloader, Scope, sessions::OpenSession};
use crate::watch::Place;

/// Texts that all sessions share.
pub trait Texts: Send + Sync {
    /// Where changes are seen.
    fn places(&self) -> Vec<Place>;

    /// Reads everything anew. May wait for the disk.
    fn reread(&self) -> Reread;
}

/// What reading anew came to.
#[derive(Debug, Default)]
pub struct Reread {
    /// What has changed by it.
    pub changes: Vec<SourceChange>,
    /// Plugins, scripts and texts may be looked for elsewhere now.
    pub moved: bool,
}

impl From<Vec<SourceChange>> for Reread {
    fn from(changes: Vec<SourceChange>) -> Self {
        Self {
            changes,
            moved: false,
        }
    }
}

impl Scope {
    /// Whether something in these places is to be read.
    fn reaches(&self, places: &[Place]) -> bool {
        let takes = |path: &Path| places.iter().any(|place| place.concerns(path));
        match self {
            Self::Everything => true,
            Self::Changed(paths) => paths.iter().any(|path| takes(path)),
        }
    }
}

impl Reloader {
    /// Adds texts that are read anew with everything else.
    pub fn add_texts(&self, texts: Arc<dyn Texts>) {
        super::locked(&self.texts).push(texts);
    }

    pub(super) fn all_texts(&self) -> Vec<Arc<dyn Texts>> {
        super::locked(&self.texts).clone()
    }

    /// Reads what changed, for all sessions and then for each. What several sessions say is said once.
    pub(super) async fn read_texts(&self, scope: &Scope) -> Reread {
        let (shared, sessions) = (self.all_texts(), self.sessions.all());
        let scope = scope.clone();
        let read = tokio::task::spawn_blocking(move || read(&shared, &sessions, &scope)).await;
        // A panic was reported where it came up; nothing was read then.
        read.unwrap_or_default()
    }
}

fn read(shared: &[Arc<dyn Texts>], sessions: &[Arc<dyn OpenSession>], scope: &Scope) -> Reread {
    let (mut changes, mut moved) = (Vec::new(), false);
    for texts in shared {
        if moved || scope.reaches(&texts.places()) {
            let reread = texts.reread();
            moved |= reread.moved;
            changes.extend(reread.changes);
        }
    }
    let any = !changes.is_empty();
    for session in sessions {
        if any || scope.reaches(&session.places()) {
            changes.extend(session.reread());
        }
    }
    let mut said = Vec::with_capacity(changes.len());
    for change in changes {
        if !said.contains(&change) {
            said.push(change);
        }
    }
    Reread {
        changes: said,
        moved,
    }
}
