//! Another session in the place of one: a new one, an earlier one, or a fork (S28, S31). Handlers are
//! asked first; then everything that can fail is done; then the old session ends and the other starts.

use std::path::PathBuf;

use serde_json::json;

use super::open::{Chosen, latest};
use super::sessions::is_path;
use super::{Kernel, OpenError, OpenOptions, SessionChoice};
use crate::registry::HookPoint;
use crate::session::Session;
use crate::tree::{EntryId, Fork, Position, TreeError};

/// A fork that took the place of its session.
#[derive(Debug)]
pub struct Forked {
    /// The new session.
    pub session: Session,
    /// What the user said there, to be said better.
    pub editor_text: Option<String>,
}

impl Kernel {
    /// Opens another session in the place of `old`, which is over then. `None` when an extension keeps
    /// the user where he is; nothing has happened then.
    ///
    /// # Errors
    /// A sentence that says what to do; the old session goes on.
    pub async fn switch_session(
        &self,
        old: &Session,
        open: OpenOptions,
    ) -> Result<Option<Session>, OpenError> {
        let target = self.target(&open.session)?;
        if target.is_some() && target == old.file() && !is_copy(&open.session) {
            return Err(OpenError::OpenHere);
        }
        let why = if target.is_some() { "resume" } else { "new" };
        let mut event = json!({"type": "session_before_switch", "reason": why});
        if let Some(target) = &target {
            event["targetSessionFile"] = json!(target);
        }
        if !old.may_leave(HookPoint::SessionBeforeSwitch, &event).await {
            return Ok(None);
        }
        let mut chosen = self.tree(&open).await?;
        if chosen.reason == "startup" {
            chosen.reason = "new";
        }
        self.replace(old, open, chosen).await.map(Some)
    }

    /// Opens a fork of `old` in its place. `None` when an extension keeps the user where he is; nothing
    /// has happened then.
    ///
    /// # Errors
    /// A sentence that says what to do; the old session goes on.
    pub async fn fork_session(
        &self,
        old: &Session,
        entry: &EntryId,
        position: Position,
        open: OpenOptions,
    ) -> Result<Option<Forked>, OpenError> {
        if old.entry(entry).is_none() {
            return Err(TreeError::UnknownEntry { id: entry.clone() }.into());
        }
        let at = match position {
            Position::Before => "before",
            Position::At => "at",
        };
        let event = json!({"type": "session_before_fork", "entryId": entry, "position": at});
        if !old.may_leave(HookPoint::SessionBeforeFork, &event).await {
            return Ok(None);
        }
        let Fork { tree, editor_text } = old.fork(entry, position)?;
        let chosen = Chosen {
            tree,
            reason: "fork",
            file: None,
        };
        let session = self.replace(old, open, chosen).await?;
        Ok(Some(Forked {
            session,
            editor_text,
        }))
    }

    async fn replace(
        &self,
        old: &Session,
        open: OpenOptions,
        chosen: Chosen,
    ) -> Result<Session, OpenError> {
        let mut start = self.plan(open, chosen).await?;
        start.previous_file = old.file();
        old.close_for(start.reason, start.tree.path()).await;
        // Whoever follows both is to hear the end of the one before the beginning of the other.
        old.end_subscriptions();
        Ok(Session::start(self.equipment(), start).await?)
    }

    /// The file that is meant, if there is one already.
    fn target(&self, choice: &SessionChoice) -> Result<Option<PathBuf>, OpenError> {
        let folders = self.session_folders();
        Ok(match choice {
            SessionChoice::New | SessionChoice::InMemory => None,
            SessionChoice::Continue => latest(&folders, &self.options.cwd),
            SessionChoice::Named(name) if is_path(name) => Some(self.options.cwd.join(name)),
            SessionChoice::Named(name) | SessionChoice::ForkOf(name) => Some(folders.find(name)?),
        })
    }
}

fn is_copy(choice: &SessionChoice) -> bool {
    matches!(choice, SessionChoice::ForkOf(_))
}
