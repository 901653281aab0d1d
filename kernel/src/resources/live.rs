//! The resources that count now. They are read anew when their files change; whoever is in the middle of
//! something keeps what he has.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::{Discovered, MissingResource, ResourceOptions, Resources, watched};
use crate::theme::{Appearance, Theme};
use crate::watch::Place;

/// Skills, prompt templates and themes, as they are now.
#[derive(Debug)]
pub struct LiveResources {
    options: ArcSwap<ResourceOptions>,
    agent_dir: PathBuf,
    cwd: PathBuf,
    current: ArcSwap<Resources>,
    /// What was odd when they were last read.
    warnings: ArcSwap<Vec<String>>,
}

/// What reading anew has changed.
#[derive(Debug)]
pub struct Reread {
    /// What counted before.
    pub before: Arc<Resources>,
    /// What counts now.
    pub after: Arc<Resources>,
    /// What is odd now and was not before, in sentences.
    pub warnings: Vec<String>,
}

impl LiveResources {
    /// Reads them for the first time; what is odd is told.
    ///
    /// # Errors
    /// When a path named on the command line does not exist.
    pub fn load(
        options: ResourceOptions,
        agent_dir: PathBuf,
        cwd: PathBuf,
    ) -> Result<(Self, Vec<String>), MissingResource> {
        let (resources, warnings) = Resources::load(&options, &agent_dir, &cwd)?;
        let live = Self {
            options: ArcSwap::from_pointee(options),
            agent_dir,
            cwd,
            current: ArcSwap::from_pointee(resources),
            warnings: ArcSwap::from_pointee(warnings.clone()),
        };
        Ok((live, warnings))
    }

    /// What counts now.
    #[must_use]
    pub fn current(&self) -> Arc<Resources> {
        self.current.load_full()
    }

    /// The theme that is chosen, for what a terminal looks like; asked anew at each drawing.
    #[must_use]
    pub fn theme(&self, appearance: Appearance) -> Arc<Theme> {
        let choice = self.options.load().theme.clone().unwrap_or_default();
        self.current.load().themes().chosen(&choice, appearance)
    }

    /// Looks in other places from the next reading on: the settings list others now.
    pub fn look_in(&self, options: ResourceOptions) {
        self.options.rcu(|known| ResourceOptions {
            discovered: Arc::clone(&known.discovered),
            ..options.clone()
        });
    }

    /// Looks also where extensions say, from the next reading on. `false` when they said so before.
    pub fn discover(&self, discovered: Discovered) -> bool {
        if *self.options.load().discovered == discovered {
            return false;
        }
        let discovered = Arc::new(discovered);
        self.options.rcu(|known| ResourceOptions {
            discovered: Arc::clone(&discovered),
            ..ResourceOptions::clone(known)
        });
        true
    }

    /// What they are looked for with.
    #[must_use]
    pub fn options(&self) -> Arc<ResourceOptions> {
        self.options.load_full()
    }

    /// Where changes are seen.
    #[must_use]
    pub fn places(&self) -> Vec<Place> {
        watched::places_of(&self.options.load(), &self.agent_dir, &self.cwd)
    }

    /// Reads them anew. A file that is broken now is out, as it would be at the next start, but for a
    /// theme, which counts as it was before; what is wrong with it is told.
    ///
    /// # Errors
    /// When a path named on the command line is gone: what counted before counts on.
    pub fn reread(&self) -> Result<Reread, MissingResource> {
        let before = self.current.load_full();
        let (resources, warnings) =
            Resources::load_after(&before, &self.options.load(), &self.agent_dir, &self.cwd)?;
        if *before != resources {
            self.current.store(Arc::new(resources));
        }
        let known = self.warnings.swap(Arc::new(warnings.clone()));
        let news = warnings.into_iter();
        Ok(Reread {
            before,
            after: self.current.load_full(),
            warnings: news.filter(|sentence| !known.contains(sentence)).collect(),
        })
    }
}
