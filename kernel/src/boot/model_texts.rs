//! `models.json` and `auth.json`, as something that a reload reads anew: both count from the next request
//! on (`resources.md` §12.2).

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pliant_sdk::event::{SourceChange, SourceOutcome};

use crate::models::{Catalog, Credentials, CustomModels};
use crate::reload::{Reread, Texts};
use crate::watch::{Class, Place};

const MODELS: &str = "models.json";
const KEYS: &str = "auth.json";

/// The models and keys of a kernel.
pub(super) struct ModelTexts {
    pub(super) agent_dir: PathBuf,
    /// Where the models are read from if the user has none of his own.
    pub(super) pi_dir: Option<PathBuf>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) credentials: Arc<Credentials>,
    /// What counts now.
    pub(super) current: Mutex<CustomModels>,
    /// What was told of broken files.
    pub(super) told: Mutex<Vec<String>>,
}

impl ModelTexts {
    /// A problem that was not told before.
    fn failed(&self, name: &str, problem: String) -> Option<SourceChange> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.contains(&problem) {
            return None;
        }
        told.push(problem.clone());
        let path = self.agent_dir.join(name);
        let change = SourceChange::new(name, Some(&path), SourceOutcome::Failed);
        Some(change.saying(format!("What counted before counts on. {problem}")))
    }

    fn reloaded(&self, name: &str) -> SourceChange {
        let path = self.agent_dir.join(name);
        SourceChange::new(name, Some(&path), SourceOutcome::Reloaded)
    }
}

impl Texts for ModelTexts {
    fn places(&self) -> Vec<Place> {
        let own = [MODELS, KEYS].map(|name| self.agent_dir.join(name));
        let of_pi = self.pi_dir.as_ref().map(|folder| folder.join(MODELS));
        let files = own.into_iter().chain(of_pi);
        files
            .filter_map(|file| Place::file(&file, Class::Text))
            .collect()
    }

    /// A file that cannot be read leaves everything as it was.
    fn reread(&self) -> Reread {
        let mut changes = Vec::new();
        let models = CustomModels::load(&self.agent_dir, self.pi_dir.as_deref());
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        match &models.error {
            Some(problem) => changes.extend(self.failed(MODELS, problem.clone())),
            None => {
                self.told
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clear();
                if *current != models {
                    *current = models.clone();
                    self.catalog.replace_custom(models);
                    changes.push(self.reloaded(MODELS));
                }
            }
        }
        match self.credentials.reread(&self.agent_dir, &current) {
            // A key that models.json has was told with that.
            Ok(true) if changes.is_empty() => changes.push(self.reloaded(KEYS)),
            Ok(_) => {}
            Err(problem) => changes.extend(self.failed(KEYS, problem)),
        }
        changes.into()
    }
}
