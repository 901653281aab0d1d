//! The part of a reload before anything changes: what there is to load is looked at, and loaded beside
//! what serves. A failure ends here, and is said once for each content.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use pliant_sdk::event::{SourceChange, SourceOutcome};

use super::loaded::{Loaded, Plan};
use super::loader::{Candidate, Findings, Loader};
use super::report::{Report, change, short};
use super::{Reloader, Scope};
use crate::digest::Digest;
use crate::registry::{Generation, Rank, Source};
use crate::watch::Stamp;

/// A generation that is ready to serve.
pub(super) struct Prepared {
    pub(super) candidate: Candidate,
    pub(super) digest: Option<Digest>,
    /// Its place in the list, if it replaces something.
    pub(super) place: Option<usize>,
    pub(super) loader: usize,
    pub(super) generation: Arc<dyn Generation>,
    pub(super) same: bool,
    /// The file before it was loaded.
    pub(super) stamp: Option<Stamp>,
    /// It is there and cannot be loaded; the generation only keeps watch in its place.
    pub(super) stands_in: bool,
}

/// Looks what a loader finds, on a thread that may wait for the disk.
pub(super) async fn look(loader: &Arc<dyn Loader>) -> Findings {
    let loader = Arc::clone(loader);
    let found = tokio::task::spawn_blocking(move || loader.find()).await;
    found.unwrap_or_default()
}

/// The digest of a source's content, on such a thread.
pub(super) async fn digest_of(source: &Source) -> Option<Digest> {
    let path = source.path.clone()?;
    let digest = tokio::task::spawn_blocking(move || Digest::of_file(&path)).await;
    digest.ok()?.ok()
}

/// The part of a reload that one loader has in it.
pub(super) struct Task<'a> {
    pub(super) reloader: &'a Reloader,
    pub(super) scope: &'a Scope,
    pub(super) number: usize,
    pub(super) loader: &'a Arc<dyn Loader>,
}

impl Task<'_> {
    /// Whether the reload is about this file.
    fn concerns(&self, path: Option<&Path>) -> bool {
        match self.scope {
            Scope::Everything => true,
            Scope::Changed(paths) => {
                // What has no file is reached by what reaches everything.
                let path = path.unwrap_or(Path::new(""));
                paths.iter().any(|changed| path.starts_with(changed))
            }
        }
    }

    /// Places of what is gone.
    pub(super) fn missing(&self, plan: &Plan, loaded: &[Loaded]) -> Vec<usize> {
        let gone = plan.gone.iter().copied();
        gone.filter(|place| self.concerns(loaded[*place].source.path.as_deref()))
            .collect()
    }

    /// Says what is there and broken, once for each content.
    pub(super) fn tell_broken(&self, plan: &Plan, loaded: &mut [Loaded], report: &mut Report) {
        for (place, message) in &plan.broken {
            let known = &mut loaded[*place];
            let path = known.source.path.clone();
            if !self.concerns(path.as_deref()) {
                continue;
            }
            let digest = path.and_then(|path| Digest::of_file(&path).ok());
            if self.scope.is_everything() || known.failed.is_none() || known.failed != digest {
                known.failed = digest;
                report.changes.push(SourceChange {
                    to: short(digest),
                    message: Some(message.clone()),
                    ..change(&known.source, SourceOutcome::Failed)
                });
            }
        }
        for (path, message) in &plan.never {
            let is_news = self.concerns(Some(path)) && self.reloader.is_news(path);
            if is_news || self.scope.is_everything() {
                let source = Source {
                    name: path.display().to_string(),
                    path: Some(path.clone()),
                    rank: Rank::User,
                };
                report.changes.push(SourceChange {
                    message: Some(message.clone()),
                    ..change(&source, SourceOutcome::Failed)
                });
            }
        }
    }

    /// Loads what is new or changed, and at the user's wish everything.
    pub(super) async fn prepare(
        &self,
        plan: Plan,
        loaded: &mut [Loaded],
        prepared: &mut Vec<Prepared>,
        report: &mut Report,
    ) {
        for (candidate, place) in plan.load {
            let path = candidate.source.path.clone();
            let replaces_another = place.is_some_and(|place| !loaded[place].is_at_same(&candidate));
            if !self.concerns(path.as_deref()) && !replaces_another {
                continue;
            }
            let is_untouched = |place: usize| loaded[place].is_untouched();
            if !self.scope.is_everything()
                && !replaces_another
                && candidate.digest.is_none()
                && place.is_some_and(is_untouched)
            {
                continue;
            }
            let digest = match candidate.digest {
                Some(digest) => Some(digest),
                None => digest_of(&candidate.source).await,
            };
            let known = place.map(|place| &mut loaded[place]);
            let serves = known.as_ref().filter(|known| known.generation > 0);
            // Of what ships the content was never looked at; an untouched file is the same too.
            let same = !replaces_another
                && digest.is_some()
                && serves.is_some_and(|known| match known.digest {
                    Some(_) => known.digest == digest,
                    None => known.is_untouched(),
                });
            if same && !self.scope.is_everything() {
                continue;
            }
            if let Some(known) = known {
                if self.scope.is_everything() {
                    known.forget_reloads();
                } else if known.failed.is_some() && known.failed == digest {
                    continue;
                } else if !known.may_reload(Instant::now(), self.reloader.most_reloads) {
                    report.changes.push(paused(known));
                    continue;
                }
            }
            let stamp = path.as_deref().and_then(Stamp::of);
            match self.loader.load(&candidate).await {
                Ok(generation) => prepared.push(Prepared {
                    stamp,
                    candidate,
                    digest,
                    place,
                    loader: self.number,
                    generation,
                    same,
                    stands_in: false,
                }),
                Err(message) => {
                    match place {
                        Some(place) => {
                            loaded[place].failed = digest;
                            loaded[place].stamp = stamp;
                        }
                        None => prepared.extend(self.stand_in(&candidate, digest, stamp, &message)),
                    }
                    report.changes.push(SourceChange {
                        from: place.and_then(|place| short(loaded[place].digest)),
                        to: short(digest),
                        message: Some(message),
                        ..change(&candidate.source, SourceOutcome::Failed)
                    });
                }
            }
        }
    }
}

impl Task<'_> {
    /// What keeps watch for a source that came while sessions are open and cannot be loaded: a gate is
    /// as closed then as if it had been there at the start.
    fn stand_in(
        &self,
        candidate: &Candidate,
        digest: Option<Digest>,
        stamp: Option<Stamp>,
        reason: &str,
    ) -> Option<Prepared> {
        let promises = self.loader.promises(candidate);
        let source = candidate.source.clone();
        let (_, generation) = self.reloader.stand_in(source, promises, reason);
        Some(Prepared {
            candidate: candidate.clone(),
            digest,
            place: None,
            loader: self.number,
            generation: generation?,
            same: false,
            stamp,
            stands_in: true,
        })
    }
}

fn paused(known: &Loaded) -> SourceChange {
    let message = "It changed too often within ten seconds (the setting hotReload.maxReloads), so it is not reloaded by itself for now. /reload loads it.";
    SourceChange {
        message: Some(message.to_owned()),
        ..change(&known.source, SourceOutcome::Failed)
    }
}
