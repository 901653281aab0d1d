//! `models.json` and `auth.json`, as something that a reload reads anew: both count from the next request
//! on (`resources.md` §12.2).

use std::collections::HashMap;
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
    /// Why a file was not used when it was last read.
    pub(super) told: Mutex<HashMap<&'static str, Option<String>>>,
}

impl ModelTexts {
    /// What is told of a file: that it is another one, or, once, why it is not used.
    fn told(&self, name: &'static str, found: Result<bool, String>) -> Option<SourceChange> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let known = told.insert(name, found.as_ref().err().cloned());
        let path = self.agent_dir.join(name);
        match found {
            Ok(false) => None,
            Ok(true) => Some(SourceChange::new(
                name,
                Some(&path),
                SourceOutcome::Reloaded,
            )),
            Err(problem) if known.flatten().as_ref() == Some(&problem) => None,
            Err(problem) => {
                let change = SourceChange::new(name, Some(&path), SourceOutcome::Failed);
                Some(change.saying(format!("What counted before counts on. {problem}")))
            }
        }
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

    /// A file that cannot be read leaves what it said as it was.
    fn reread(&self) -> Reread {
        let models = CustomModels::load(&self.agent_dir, self.pi_dir.as_deref());
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let of_models = match &models.error {
            Some(problem) => Err(problem.clone()),
            None if *current == models => Ok(false),
            None => {
                *current = models.clone();
                self.catalog.replace_custom(models);
                Ok(true)
            }
        };
        let of_keys = self.credentials.reread(&self.agent_dir, &current);
        let changes = [(MODELS, of_models), (KEYS, of_keys)];
        let changes = changes.into_iter();
        let told = changes.filter_map(|(name, found)| self.told(name, found));
        told.collect::<Vec<_>>().into()
    }
}
