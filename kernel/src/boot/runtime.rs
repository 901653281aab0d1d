//! A kernel and the session that is open in it, for front ends in which another session can take its
//! place: a new one, an earlier one, a fork (`interfaces.md` §15, S31).

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pliant_sdk::Error;
use pliant_sdk::host::BoxFuture;
use tokio::sync::MutexGuard;

use crate::models::ModelWish;
use crate::session::{Replaced, Replacement, Replaces, Session};
use crate::tree::{self, EntryId, Position, TreeError};

use super::{Developing, Forked, Kernel, OpenError, OpenOptions, SessionChoice, Watching};

/// A kernel and its current session. Replacements happen one after another; each ends the subscriptions
/// of the session before, and [`super::KernelOptions::opened`] hears of the next one.
#[derive(Debug, Clone)]
pub struct Runtime(Arc<Open>);

/// What is open.
#[derive(Debug)]
struct Open {
    kernel: Arc<Kernel>,
    current: Mutex<Session>,
    /// What new sessions are opened with.
    options: OpenOptions,
    /// Whether the last session was ended; held while one takes the place of another.
    over: tokio::sync::Mutex<bool>,
    watching: Mutex<Option<(Watching, Option<Developing>)>>,
}

impl Runtime {
    /// Around a session that is open; `options` are what it was opened with, and hold for new ones.
    #[must_use]
    pub fn new(kernel: Arc<Kernel>, session: Session, options: OpenOptions) -> Self {
        let open = Arc::new(Open {
            kernel,
            current: Mutex::new(session),
            options,
            over: tokio::sync::Mutex::default(),
            watching: Mutex::default(),
        });
        let replaces: Weak<dyn Replaces> = Arc::downgrade(&(Arc::clone(&open) as _));
        // Of several front ends of one kernel the first replaces sessions for commands.
        let _ = open.kernel.surroundings.replaces.set(replaces);
        Self(open)
    }

    /// Reloads plugins and scripts whose files change, from now on until the end, and builds those that
    /// are being written. What comes of it are events of the session.
    ///
    /// # Errors
    /// When nothing can be built; what changes is reloaded all the same.
    pub fn watch(&self) -> std::io::Result<()> {
        let (watching, developing) = (self.0.kernel.watch(), self.0.kernel.develop());
        let (developing, outcome) = match developing {
            Ok(developing) => (developing, Ok(())),
            Err(error) => (None, Err(error)),
        };
        let mut current = self
            .0
            .watching
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *current = Some((watching, developing));
        outcome
    }

    /// The kernel.
    #[must_use]
    pub fn kernel(&self) -> &Kernel {
        &self.0.kernel
    }

    /// The session that is open now.
    #[must_use]
    pub fn session(&self) -> Session {
        let current = self
            .0
            .current
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }

    /// A new session in the place of the current one, with the model and the level of the start.
    /// `None` when an extension keeps the user where he is.
    ///
    /// # Errors
    /// Why the session stays.
    pub async fn new_session(&self, parent: Option<PathBuf>) -> Result<Option<Session>, OpenError> {
        let session = match self.0.options.session {
            SessionChoice::InMemory => SessionChoice::InMemory,
            _ => SessionChoice::New,
        };
        let open = OpenOptions {
            session,
            parent,
            ..self.0.options.clone()
        };
        self.switch(open).await
    }

    /// The session of a file in the place of the current one, with the model and the level that it had.
    /// A file that is not there begins a session; that of the current one leaves it as it is. `None` as
    /// above.
    ///
    /// # Errors
    /// Why the session stays.
    pub async fn switch_session(&self, file: &Path) -> Result<Option<Session>, OpenError> {
        // A word without a slash would be taken for an id.
        let session = self.session();
        let file = session.cwd().join(file);
        if session.file().is_some_and(|open| same_file(&open, &file)) {
            return Ok(Some(session));
        }
        let file = file.display().to_string();
        self.open(SessionChoice::Named(file)).await
    }

    /// Another session in the place of the current one, with the model and the level that it had.
    /// `None` as above.
    ///
    /// # Errors
    /// Why the session stays.
    pub async fn open(&self, session: SessionChoice) -> Result<Option<Session>, OpenError> {
        self.switch(self.earlier(session)).await
    }

    /// A copy of a session's file among those of this directory, opened in the place of the current one;
    /// it works where the session did. `None` as above; the copy stays.
    ///
    /// # Errors
    /// Why the session stays.
    pub async fn import_session(&self, file: &Path) -> Result<Option<Session>, OpenError> {
        let source = self.session().cwd().join(file);
        let folder = self.0.kernel.session_folders().here();
        let copied = tokio::task::spawn_blocking(move || tree::import(&source, &folder)).await;
        let copy = copied.map_err(|error| Error::failed(error.to_string()))??;
        self.switch_session(&copy).await
    }

    /// A fork of the current session in its place. `None` as above.
    ///
    /// # Errors
    /// Why the session stays.
    pub async fn fork(
        &self,
        entry: &EntryId,
        position: Position,
    ) -> Result<Option<Forked>, OpenError> {
        let (_one_at_a_time, old) = self.replaceable().await?;
        let open = self.earlier(SessionChoice::New);
        let forked = self
            .0
            .kernel
            .fork_session(&old, entry, position, open)
            .await?;
        if let Some(forked) = &forked {
            self.take_over(&forked.session);
        }
        Ok(forked)
    }

    /// A copy of the current branch in the place of the session. `None` as above.
    ///
    /// # Errors
    /// Why the session stays; one that has nothing yet cannot be copied.
    pub async fn clone_session(&self) -> Result<Option<Session>, OpenError> {
        let Some(leaf) = self.session().leaf() else {
            return Err(TreeError::NotOnDisk.into());
        };
        let forked = self.fork(&leaf, Position::At).await?;
        Ok(forked.map(|forked| forked.session))
    }

    /// Ends the session that is open, once a replacement that is under way is done. No other one begins.
    pub async fn close(&self) {
        let mut over = self.0.over.lock().await;
        *over = true;
        drop(
            self.0
                .watching
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        self.session().close("quit").await;
        self.0.kernel.agree_to_project();
    }

    /// The session that is to be replaced. Nobody else replaces it meanwhile.
    async fn replaceable(&self) -> Result<(MutexGuard<'_, bool>, Session), OpenError> {
        let over = self.0.over.lock().await;
        match *over {
            true => Err(OpenError::Over),
            false => Ok((over, self.session())),
        }
    }

    async fn switch(&self, open: OpenOptions) -> Result<Option<Session>, OpenError> {
        let (_one_at_a_time, old) = self.replaceable().await?;
        let session = self.0.kernel.switch_session(&old, open).await?;
        if let Some(session) = &session {
            self.take_over(session);
        }
        Ok(session)
    }

    fn take_over(&self, session: &Session) {
        *self
            .0
            .current
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = session.clone();
    }

    /// What an earlier session is opened with: it knows its model and level.
    fn earlier(&self, session: SessionChoice) -> OpenOptions {
        OpenOptions {
            session,
            model: ModelWish::default(),
            level: None,
            ..self.0.options.clone()
        }
    }
}

impl Replaces for Open {
    fn replace(
        self: Arc<Self>,
        wish: Replacement,
    ) -> BoxFuture<'static, Result<Option<Replaced>, Error>> {
        let runtime = Runtime(self);
        Box::pin(async move {
            let plain = |session: Option<Session>| {
                session.map(|session| Replaced {
                    session,
                    editor_text: None,
                })
            };
            let replaced = match wish {
                Replacement::New { parent } => runtime.new_session(parent).await.map(plain),
                Replacement::Switch { file } => runtime.switch_session(&file).await.map(plain),
                Replacement::Fork { entry, position } => {
                    let forked = runtime.fork(&entry, position).await;
                    forked.map(|forked| {
                        forked.map(|forked| Replaced {
                            session: forked.session,
                            editor_text: forked.editor_text,
                        })
                    })
                }
            };
            replaced.map_err(|error| Error::failed(error.to_string()))
        })
    }
}

/// Whether two paths name one file, be it there or not.
fn same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    one == other || real(one) == real(other)
}
