//! What a session may ask of the program around it: what its front end knows beside sessions, and
//! another session in its place.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};

use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::BoxFuture;
use serde_json::Value;

use super::Session;
use crate::tree::{EntryId, Position};

/// Another session in the place of one.
#[derive(Debug, Clone)]
pub enum Replacement {
    /// A new one, which may say that it came of another.
    New {
        /// The file of the one it came of.
        parent: Option<PathBuf>,
    },
    /// That of a file.
    Switch {
        /// The file.
        file: PathBuf,
    },
    /// A fork at an entry.
    Fork {
        /// The entry.
        entry: EntryId,
        /// Before it, or behind it.
        position: Position,
    },
}

/// The session that took the place.
#[derive(Debug)]
pub struct Replaced {
    /// It.
    pub session: Session,
    /// What the user said where it was forked, to be said better.
    pub editor_text: Option<String>,
}

/// Who can put another session in the place of one.
pub trait Replaces: Send + Sync {
    /// Does it. `None` when an extension keeps the user where he is; nothing has happened then.
    fn replace(
        self: Arc<Self>,
        wish: Replacement,
    ) -> BoxFuture<'static, Result<Option<Replaced>, Error>>;
}

/// What is around the sessions of a kernel.
pub struct Surroundings {
    /// Lists what can be called by a slash, as JSON.
    pub commands: Box<dyn Fn() -> Value + Send + Sync>,
    /// Whether the project's own files count.
    pub trusts_project: bool,
    /// Known once there is a front end in which sessions can be replaced.
    pub replaces: OnceLock<Weak<dyn Replaces>>,
}

impl std::fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Surroundings")
    }
}

impl Surroundings {
    /// Replaces a session.
    pub(super) async fn replace(&self, wish: Replacement) -> Result<Option<Replaced>, Error> {
        let Some(replaces) = self.replaces.get().and_then(Weak::upgrade) else {
            return Err(Error::new(
                code::UNAVAILABLE,
                "In this mode a session cannot be replaced by another one.",
            ));
        };
        replaces.replace(wish).await
    }
}
