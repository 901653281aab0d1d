//! Where the sessions of a working directory are, and which of them a word names
//! (`interfaces.md` §1.2, §3). Needs no kernel, so that commands about sessions are done at once.

use std::fs;
use std::path::{Path, PathBuf};

use thiserror::Error as ThisError;

use crate::environment::Environment;
use crate::settings::Settings;
use crate::tree::{self, Found, SessionId};

/// The folders that sessions are in.
#[derive(Debug, Clone)]
pub struct SessionFolders {
    cwd: PathBuf,
    agent_dir: PathBuf,
    /// A folder of the user's choice, which several working directories may share.
    own: Option<PathBuf>,
    /// Pi's directory, whose sessions are listed and found too (`interfaces.md` §3.1).
    pi_dir: Option<PathBuf>,
}

/// Why a word names no session.
#[derive(Debug, ThisError)]
pub enum NoSession {
    #[error("There is no file {}.", .0.display())]
    File(PathBuf),
    #[error("No session begins with \"{0}\". `pliant session list --all` lists those there are.")]
    Unknown(String),
    #[error("Several sessions begin with \"{0}\". Give more of the id, or the file.")]
    Several(String),
}

impl SessionFolders {
    /// The folders for a working directory, which is absolute. The environment and the setting
    /// `sessionDir` name another one than the usual.
    #[must_use]
    pub fn new(
        agent_dir: &Path,
        cwd: &Path,
        settings: &Settings,
        environment: &Environment,
    ) -> Self {
        let written = settings.used().session_dir.as_deref();
        let written = written.filter(|dir| !dir.is_empty());
        let written = written.map(|dir| environment.at_home(Path::new(dir)));
        let set = environment.session_dir().or(written);
        let home = environment.home().filter(|_| settings.reads_pi_sessions());
        Self {
            cwd: cwd.to_owned(),
            agent_dir: agent_dir.to_owned(),
            own: set.map(|folder| cwd.join(folder)),
            pi_dir: home.map(|home| home.join(".pi/agent")),
        }
    }

    /// The same, but with this folder in the place of any that was named, if there is one.
    #[must_use]
    pub fn or_rather(mut self, folder: Option<&Path>) -> Self {
        self.own = folder.map(|folder| self.cwd.join(folder)).or(self.own);
        self
    }

    /// The file of the session of the working directory whose whole id it is.
    #[must_use]
    pub fn with_id(&self, id: &SessionId) -> Option<PathBuf> {
        let mut files = tree::session_files(&self.here()).into_iter();
        files.find(|path| {
            let header = tree::peek(path);
            header.is_some_and(|header| {
                let here = self.only_of();
                header.id == *id && here.is_none_or(|cwd| tree::same_directory(cwd, &header.cwd))
            })
        })
    }

    /// Where sessions of the working directory are, and new ones go (S1).
    #[must_use]
    pub fn here(&self) -> PathBuf {
        let usual = || tree::session_dir(&self.agent_dir, &self.cwd);
        self.own.clone().unwrap_or_else(usual)
    }

    /// In a folder that several working directories share, only sessions of this one count (S4).
    #[must_use]
    pub fn only_of(&self) -> Option<&Path> {
        self.own.as_ref().map(|_| self.cwd.as_path())
    }

    /// The folders with sessions of the working directory: pliant's, then pi's if there is one.
    #[must_use]
    pub fn of_directory(&self) -> Vec<PathBuf> {
        let of_pi = self.pi_dir.as_deref();
        let of_pi = of_pi.map(|dir| tree::session_dir(dir, &self.cwd));
        let here = self.here();
        let of_pi = of_pi.filter(|folder| *folder != here && folder.is_dir());
        std::iter::once(here).chain(of_pi).collect()
    }

    /// All folders with sessions: pliant's, that of the working directory first, then pi's.
    #[must_use]
    pub fn all(&self) -> Vec<PathBuf> {
        let here = self.here();
        let others = |dir: &Path| folders_in(&dir.join("sessions"), &here);
        let of_pi = self.pi_dir.as_deref().map(others).unwrap_or_default();
        let own = others(&self.agent_dir);
        std::iter::once(here.clone())
            .chain(own)
            .chain(of_pi)
            .collect()
    }

    /// Whether a session found by its id is pi's: it is continued in place only where its file is named.
    #[must_use]
    pub fn is_of_pi(&self, path: &Path) -> bool {
        let of_pi = self.pi_dir.as_deref();
        of_pi.is_some_and(|dir| {
            path.starts_with(dir.join("sessions")) && !path.starts_with(self.here())
        })
    }

    /// The file of the session that is meant: a path, or the beginning of an id, which is looked for
    /// in this directory's folder first, then in all others of pliant, then in pi's.
    ///
    /// # Errors
    /// [`NoSession`], a sentence.
    pub fn find(&self, name: &str) -> Result<PathBuf, NoSession> {
        if is_path(name) {
            let path = self.cwd.join(name);
            return match path.exists() {
                true => Ok(path),
                false => Err(NoSession::File(path)),
            };
        }
        let mut all = self.all();
        let others = all.split_off(1);
        let (of_pi, others) = others
            .into_iter()
            .partition::<Vec<_>, _>(|folder| self.is_of_pi(folder));
        for folders in [all, others, of_pi] {
            let files = folders
                .iter()
                .flat_map(|folder| tree::session_files(folder));
            // Every id begins with nothing.
            match tree::find(files.filter(|_| !name.is_empty()), name) {
                Found::One(path) => return Ok(path),
                Found::Several(_) => return Err(NoSession::Several(name.to_owned())),
                Found::None => {}
            }
        }
        Err(NoSession::Unknown(name.to_owned()))
    }
}

fn folders_in(sessions: &Path, but: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(sessions);
    let mut folders: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path != but && path.is_dir())
        .collect();
    folders.sort();
    folders
}

/// A word with a slash, a backslash or the ending is a path (`interfaces.md` §1.2).
pub(super) fn is_path(name: &str) -> bool {
    name.contains(['/', '\\']) || name.ends_with(".jsonl")
}
