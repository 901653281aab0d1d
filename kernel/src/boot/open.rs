//! From what a user asks for to an open session: which file, which model, what to tell first.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pliant_sdk::Error;
use pliant_sdk::message::ThinkingLevel;
use pliant_sdk::virtual_model::VIRTUAL_API;
use thiserror::Error as ThisError;

use super::sessions::is_path;
use super::{Kernel, KernelOptions, NoSession, SessionFolders};
use crate::models::{ModelError, ModelWish};
use crate::prompt::PromptSource;
use crate::run::repair_notice;
use crate::session::{Session, SessionStart};
use crate::tree::{self, EntryKind, Ids, Lease, SessionId, SessionTree, SyncPolicy, TreeError};

/// Which conversation a session continues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SessionChoice {
    /// None; it is stored.
    #[default]
    New,
    /// None; it is not stored.
    InMemory,
    /// The latest of this directory, or a new one.
    Continue,
    /// A file, or the beginning of an id.
    Named(String),
    /// All of another session, given likewise, in a new one of this directory (S29).
    ForkOf(String),
}

/// What to do where another process has the session (S18).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenHeld {
    /// Say who has it.
    #[default]
    Refuse,
    /// Wait until it is closed there.
    Wait,
    /// Read it, whether or not somebody has it; nothing is stored.
    Read,
}

/// Why a session cannot be opened.
#[derive(Debug, ThisError)]
pub enum OpenError {
    /// The model is not to be had.
    #[error("{0}")]
    Model(#[from] ModelError),
    /// The file cannot be used.
    #[error("{0}")]
    Tree(#[from] TreeError),
    /// The session is not found.
    #[error("{0}")]
    NoSession(#[from] NoSession),
    /// It belongs to another directory.
    #[error(
        "The session {id} belongs to {}. Continue it there, or copy it to this directory with --fork {id}.",
        cwd.display()
    )]
    Elsewhere {
        /// What was asked for.
        id: String,
        /// Where the session works.
        cwd: PathBuf,
    },
    /// It is one of pi's.
    #[error(
        "The session {id} is pi's. Copy it to this directory with --fork {id}, or go on with it in its place with --session {}.",
        file.display()
    )]
    OfPi {
        /// What was asked for.
        id: String,
        /// Its file.
        file: PathBuf,
    },
    /// Its directory is gone.
    #[error(
        "The session belongs to {}, which is not there any more. Restore the directory, or take the conversation to this one with --fork {}.",
        cwd.display(), file.display()
    )]
    DirectoryGone {
        /// Where it works.
        cwd: PathBuf,
        /// Its file.
        file: PathBuf,
    },
    /// It cannot be waited for.
    #[error(
        "The session {} is open in another process and cannot be waited for: {error}.",
        path.display()
    )]
    NoWait {
        /// The session.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// A new session cannot have that id.
    #[error("The id is that of a session already: {}. Choose another one.", path.display())]
    IdTaken {
        /// The session.
        path: PathBuf,
    },
    /// It is the one that is open.
    #[error("The session is open here already.")]
    OpenHere,
    /// No session follows the last one.
    #[error("The program ends, so no other session is opened.")]
    Over,
    /// Anything else.
    #[error("{0}")]
    Failed(#[from] Error),
}

/// What a session is opened with.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// Which conversation.
    pub session: SessionChoice,
    /// Exactly this id: of the session of this directory that is opened, or that begins (S2).
    pub id: Option<SessionId>,
    /// Its name from now on.
    pub name: Option<String>,
    /// What to do where another process has it.
    pub when_held: WhenHeld,
    /// The session that a new one follows, for its header.
    pub parent: Option<PathBuf>,
    /// Which model.
    pub model: ModelWish,
    /// The session opens without a model where none is named and none can be used; prompts are refused
    /// until one is selected.
    pub may_lack_model: bool,
    /// The level wanted over the one of the model wish, the branch and the settings.
    pub level: Option<ThinkingLevel>,
    /// Models to choose from and to cycle through, as patterns; `None` = as the settings say.
    pub scope: Option<Vec<String>>,
    /// Replaces the introduction of the prompt.
    pub system_prompt: Option<String>,
    /// Added to the prompt.
    pub append_system_prompt: Option<String>,
}

const READ_ONLY: &str =
    "The session is only read here: nothing that is said from now on is stored.";

impl Kernel {
    /// Opens a session.
    ///
    /// # Errors
    /// A sentence that says what to do.
    pub async fn open_session(&self, open: OpenOptions) -> Result<Session, OpenError> {
        let chosen = self.tree(&open).await?;
        let start = self.plan(open, chosen).await?;
        Ok(Session::start(self.equipment(), start).await?)
    }

    /// What a session of that tree starts with. Everything that can fail is done here.
    pub(super) async fn plan(
        &self,
        open: OpenOptions,
        chosen: Chosen,
    ) -> Result<SessionStart, OpenError> {
        let Chosen {
            mut tree,
            reason,
            file,
        } = chosen;
        tree.set_sync(self.sync_policy());
        let mut notices = file_notices(&tree);
        if let Some(id) = &open.id
            && open.session == SessionChoice::New
            && reason != "resume"
        {
            notices.push(format!(
                "No session of this directory has the id {id}; a new one begins with it."
            ));
        }
        if open.session == SessionChoice::Continue {
            notices.extend(self.passed_by(file.as_deref()));
        }
        if open.when_held == WhenHeld::Read && reason == "resume" {
            notices.push(READ_ONLY.to_owned());
        }
        notices.extend(tree.take_notices());
        notices.extend(repair_notice(tree.context()));
        let choice = match self.choose_model(&open, &tree, &mut notices).await {
            Err(error) if open.may_lack_model && open.model == ModelWish::default() => {
                notices.push(error.to_string());
                None
            }
            choice => Some(choice?),
        };
        if let Some(choice) = choice
            .as_ref()
            .filter(|choice| choice.model.api != VIRTUAL_API)
        {
            self.catalog.give_key_to(&choice.model.provider);
        }
        let level = match &choice {
            Some(choice) => self.choose_level(&open, choice, &tree),
            None => ThinkingLevel::Off,
        };
        let scope = self.scope_of(&open);
        let is_copy = reason == "fork" && file.is_some();
        let cwd = self.works_in(&tree, file)?;
        if cwd != self.options.cwd {
            notices.push(format!("The session works in {}.", cwd.display()));
        }
        if let Some(name) = &open.name {
            tree.set_name(name)?;
        }
        // A copy of something that cannot go on would only be in the way.
        if is_copy {
            tree.write_out()?;
            notices.extend(tree.take_notices());
        }
        let prompt = PromptSource {
            custom: open.system_prompt,
            addendum: open.append_system_prompt,
            agent_dir: self.options.agent_dir.clone(),
            trusted: self.trusted_project().map(Path::to_owned),
            cwd: cwd.clone(),
            context_files: !self.options.no_context_files,
            resources: Arc::clone(&self.resources),
        };
        let mut tools = self.options.tools.clone();
        let default_tools_by_settings = tools.defaults.is_none();
        tools.defaults = tools
            .defaults
            .or_else(|| self.settings.now().used().default_tools.clone());
        Ok(SessionStart {
            tree,
            cwd,
            model: choice.map(|choice| choice.model),
            level,
            scope,
            tools,
            default_tools_by_settings,
            prompt,
            reason,
            previous_file: None,
            notices,
        })
    }

    pub(super) async fn tree(&self, open: &OpenOptions) -> Result<Chosen, OpenError> {
        let ids = Ids::system();
        let cwd = &self.options.cwd;
        let folders = self.session_folders();
        let directory = folders.here();
        let id = open.id.clone();
        let of_id = id.as_ref().and_then(|id| folders.with_id(id));
        let parent = open.parent.as_deref();
        let new = |ids| SessionTree::create(&directory, cwd, id.clone(), ids).following(parent);
        let path = match &open.session {
            SessionChoice::InMemory => {
                return Ok(Chosen::new(SessionTree::in_memory(cwd, id, ids)));
            }
            SessionChoice::New => match of_id {
                Some(path) => path,
                None => return Ok(Chosen::new(new(ids))),
            },
            SessionChoice::Continue => match latest(&folders, cwd) {
                Some(path) => path,
                None => return Ok(Chosen::new(new(ids))),
            },
            SessionChoice::ForkOf(name) => {
                if let Some(path) = of_id {
                    return Err(OpenError::IdTaken { path });
                }
                let source = folders.find(name)?;
                return Ok(Chosen {
                    tree: SessionTree::copy_of(&source, &directory, cwd, id, ids)?,
                    reason: "fork",
                    file: Some(source),
                });
            }
            // A path without a file begins a session there (S15).
            SessionChoice::Named(name) if is_path(name) => cwd.join(name),
            SessionChoice::Named(name) => {
                let path = folders.find(name)?;
                self.belongs_here(name, &path, &folders)?;
                path
            }
        };
        Ok(Chosen {
            tree: open_file(&path, cwd, open.when_held, ids).await?,
            reason: "resume",
            file: Some(path),
        })
    }

    /// Later sessions than the one that is continued, which cannot be read.
    fn passed_by(&self, continued: Option<&Path>) -> Option<String> {
        let folder = self.session_folders().here();
        let passed = tree::unreadable_since(&folder, continued);
        let latest = passed.first()?;
        Some(format!(
            "A later session was passed by, because its header cannot be read: {}. `pliant session \
             doctor` shows what is wrong and can write a mended copy.",
            latest.display()
        ))
    }

    /// A session works in its own directory (S3); one that names none works here.
    fn works_in(&self, tree: &SessionTree, file: Option<PathBuf>) -> Result<PathBuf, OpenError> {
        let cwd = &tree.header().cwd;
        if cwd.as_os_str().is_empty() || tree::same_directory(cwd, &self.options.cwd) {
            return Ok(self.options.cwd.clone());
        }
        if cwd.is_dir() {
            return Ok(cwd.clone());
        }
        Err(OpenError::DirectoryGone {
            cwd: cwd.clone(),
            file: file.unwrap_or_default(),
        })
    }

    /// An id says which session is meant, but hardly that this process should work elsewhere.
    fn belongs_here(
        &self,
        id: &str,
        path: &Path,
        folders: &SessionFolders,
    ) -> Result<(), OpenError> {
        if folders.is_of_pi(path) {
            return Err(OpenError::OfPi {
                id: id.to_owned(),
                file: path.to_owned(),
            });
        }
        if folders.only_of().is_none() && path.parent() == Some(&*folders.here()) {
            return Ok(());
        }
        let cwd = tree::peek(path).map(|header| header.cwd);
        match cwd.filter(|cwd| !tree::same_directory(cwd, &self.options.cwd)) {
            Some(cwd) => Err(OpenError::Elsewhere {
                id: id.to_owned(),
                cwd,
            }),
            None => Ok(()),
        }
    }

    /// The setting `session.sync`; a word that is none of the three counts as unset.
    fn sync_policy(&self) -> SyncPolicy {
        let settings = self.settings.now();
        let word = settings.get("session.sync").as_str();
        word.and_then(SyncPolicy::parse).unwrap_or_default()
    }

    /// Where sessions are.
    #[must_use]
    pub fn session_folders(&self) -> SessionFolders {
        let KernelOptions {
            agent_dir,
            cwd,
            environment,
            session_dir,
            ..
        } = &self.options;
        SessionFolders::new(agent_dir, cwd, &self.settings.now(), environment)
            .or_rather(session_dir.as_deref())
    }
}

/// What a session is opened with.
pub(super) struct Chosen {
    pub(super) tree: SessionTree,
    /// Why it starts.
    pub(super) reason: &'static str,
    /// Where it was read from.
    pub(super) file: Option<PathBuf>,
}

impl Chosen {
    fn new(tree: SessionTree) -> Self {
        Self {
            tree,
            reason: "startup",
            file: None,
        }
    }
}

/// The session to continue: the latest of this working directory (`interfaces.md` §11). In the
/// folder that is its own, others stand for it where it has none (S4).
pub(super) fn latest(folders: &SessionFolders, cwd: &Path) -> Option<PathBuf> {
    let directory = folders.here();
    tree::most_recent(&directory, Some(cwd)).or_else(|| match folders.only_of() {
        None => tree::most_recent(&directory, None),
        Some(_) => None,
    })
}

async fn open_file(
    path: &Path,
    cwd: &Path,
    when_held: WhenHeld,
    ids: Ids,
) -> Result<SessionTree, OpenError> {
    if when_held == WhenHeld::Read {
        return Ok(SessionTree::read(path, ids)?);
    }
    match SessionTree::open(path, cwd, ids.clone()) {
        Err(TreeError::Held { .. }) if when_held == WhenHeld::Wait => {
            let held = path.to_owned();
            let waited = tokio::task::spawn_blocking(move || Lease::wait(&held)).await;
            let lease = waited
                .map_err(io::Error::other)
                .flatten()
                .map_err(|error| OpenError::NoWait {
                    path: path.to_owned(),
                    error,
                })?;
            Ok(SessionTree::open_held(path, cwd, ids, Some(lease))?)
        }
        opened => Ok(opened?),
    }
}

/// What is wrong with the session's file, and what that costs.
fn file_notices(tree: &SessionTree) -> Vec<String> {
    let mut all = tree::tell_damage(tree.damage());
    let selected = tree.projection().sources().iter();
    let mut unreadable = selected
        .filter(|selected| selected.entry.kind() != EntryKind::Other)
        .filter(|selected| selected.entry.is_unreadable())
        .filter_map(|selected| selected.entry.line());
    if let Some(line) = unreadable.next() {
        let more = match unreadable.count() {
            0 => String::new(),
            more => format!(" and of {more} more"),
        };
        all.push(format!(
            "The content of line {line}{more} of the session file cannot be read, so the model does \
             not see it. It stays in the file."
        ));
    }
    if let Some(first) = tree.path_to_leaf().first()
        && let Some(parent) = first.parent()
    {
        all.push(format!(
            "What was said before entry {} is not sent, because the file does not hold its parent \
             {parent}. `pliant session doctor` shows what is wrong and can write a mended copy.",
            first.id()
        ));
    }
    all
}
