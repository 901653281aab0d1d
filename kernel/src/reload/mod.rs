//! Loading, reloading and withdrawing sources while sessions are open, as one transaction
//! (`plugin-abi.md` §5, `resources.md` §12.4): everything is prepared beside what serves, then the
//! sessions are held where no handler or tool runs, the old generations are told, what they leave is
//! handed over, and the registry changes in one step. A failure leaves what served serving.
//!
//! Everything that wants a reload comes here: the user, a program, a command of an extension, and who
//! watches the files. What kind of source it is, only its [`Loader`] knows.

mod hand_over;
mod loaded;
mod loader;
mod memory;
mod prepare;
mod report;
mod sessions;
mod standing;
mod texts;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use pliant_sdk::event::{SourceChange, SourceOutcome};
use pliant_sdk::{Error, Event};

use crate::registry::{Generation, Placeholder, Promise, Rank, Registry, Source};
use crate::watch::{Place, Stamp};

pub use loader::{Broken, Candidate, Findings, LoadFailure, Loader};
pub use report::Report;
pub use sessions::{Hold, OpenSession};
pub use standing::{Standing, is_much};
pub use texts::{Reread, Texts};

use hand_over::{HandedOver, hand_over};
use loaded::{Loaded, plan};
use memory::{Memory, Remembered};
use prepare::{Prepared, Task, digest_of, look};
use report::{change, short};
use sessions::Sessions;

/// What is to be reloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everything, by the user's wish: what is unchanged starts anew too.
    Everything,
    /// What lies at these paths, because something changed there; unchanged content is passed by.
    Changed(Vec<PathBuf>),
}

impl Scope {
    fn is_everything(&self) -> bool {
        matches!(self, Self::Everything)
    }

    /// The same, and whatever else is not as it was.
    fn with_everything_that_changed(self) -> Self {
        match self {
            Self::Everything => Self::Everything,
            // Every path lies below nothing.
            Self::Changed(_) => Self::Changed(vec![PathBuf::new()]),
        }
    }
}

/// Keeps the registry as the files are.
pub struct Reloader {
    registry: Arc<Registry>,
    loaders: Mutex<Vec<Arc<dyn Loader>>>,
    texts: Mutex<Vec<Arc<dyn Texts>>>,
    /// Told when there are other places to watch.
    moved: tokio::sync::Notify,
    sessions: Sessions,
    memory: Option<Memory>,
    /// Reloads of one source within ten seconds that nobody asked for, at most.
    most_reloads: usize,
    /// One transaction at a time.
    loaded: tokio::sync::Mutex<Vec<Loaded>>,
    view: standing::View,
    /// What is broken and never served, as it was when that was said.
    told: Mutex<HashMap<PathBuf, Option<Stamp>>>,
}

impl std::fmt::Debug for Reloader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reloader")
            .field("registry", &self.registry)
            .finish_non_exhaustive()
    }
}

impl Reloader {
    /// One that knows of nothing yet.
    #[must_use]
    pub fn new(registry: Arc<Registry>) -> Self {
        Self {
            registry,
            loaders: Mutex::default(),
            texts: Mutex::default(),
            moved: tokio::sync::Notify::default(),
            sessions: Sessions::default(),
            memory: None,
            most_reloads: 5,
            loaded: tokio::sync::Mutex::default(),
            view: Mutex::default(),
            told: Mutex::default(),
        }
    }

    /// Keeps in this file what each source contributes, so that one that cannot be loaded later does not
    /// give its names back.
    #[must_use]
    pub fn remembering_in(self, file: PathBuf) -> Self {
        Self {
            memory: Some(Memory::new(file)),
            ..self
        }
    }

    /// Allows so many reloads of one source within ten seconds without anybody asking; 5 otherwise.
    #[must_use]
    pub fn allowing(self, most_reloads: usize) -> Self {
        Self {
            most_reloads,
            ..self
        }
    }

    /// Takes note of a session, for as long as there is one.
    pub fn open(&self, session: Weak<dyn OpenSession>) {
        self.sessions.add(session);
        self.moved.notify_one();
        self.remember();
    }

    /// Keeps what is registered, beside everything else.
    fn remember(&self) {
        if let Some(memory) = self.memory.clone() {
            let snapshot = self.registry.snapshot();
            drop(tokio::task::spawn_blocking(move || memory.keep(&snapshot)));
        }
    }

    /// What is to stand for a source that is there and cannot be loaded, with what it is known to
    /// contribute, if that is anything; and as what it is known.
    pub fn stand_in(
        &self,
        source: Source,
        promises: Vec<Promise>,
        reason: &str,
    ) -> (Source, Option<Arc<dyn Generation>>) {
        let path = source.path.as_deref();
        let remembered = path.and_then(|path| self.memory.as_ref()?.of(path));
        let (source, mut known) = match remembered {
            Some(Remembered { name, promises }) => (Source { name, ..source }, promises),
            None => (source, Vec::new()),
        };
        known.extend(promises);
        let placeholder = Placeholder::new(source.clone(), known, reason);
        let placeholder = placeholder.map(|it| Arc::new(it) as Arc<dyn Generation>);
        (source, placeholder)
    }

    /// Adds a loader whose sources were published by somebody else, or could not be loaded: from here on
    /// they are reloaded here.
    pub fn take_over(
        &mut self,
        loader: Arc<dyn Loader>,
        published: Vec<Candidate>,
        failed: Vec<Candidate>,
        broken: &[PathBuf],
    ) {
        for path in broken {
            self.is_news(path);
        }
        let number = self.add(loader);
        let mut loaded = std::mem::take(self.loaded.get_mut());
        for Candidate { source, digest } in published {
            loaded.push(Loaded::new(number, source, digest));
        }
        for Candidate { source, .. } in failed {
            loaded.push(Loaded::missing(number, source));
        }
        self.show(&loaded);
        *self.loaded.get_mut() = loaded;
    }

    /// Adds a loader and loads everything it finds, as one change of the registry. Answers what cannot be
    /// loaded, and in sentences what is odd.
    pub async fn load(&self, loader: Arc<dyn Loader>) -> (Vec<LoadFailure>, Vec<String>) {
        let number = self.add(Arc::clone(&loader));
        let mut loaded = self.loaded.lock().await;
        let Findings {
            candidates,
            broken,
            warnings,
        } = loader.find();
        let unknown = |broken: Broken| {
            self.is_news(&broken.path);
            LoadFailure {
                source: None,
                message: broken.message,
            }
        };
        let mut failures: Vec<LoadFailure> = broken.into_iter().map(unknown).collect();
        let mut generations = Vec::new();
        for candidate in candidates {
            match loader.load(&candidate).await {
                Ok(generation) => {
                    let source = generation.source().clone();
                    loaded.push(Loaded::new(number, source, candidate.digest));
                    generations.push(generation);
                }
                Err(message) => {
                    let promises = loader.promises(&candidate);
                    let source = candidate.source.clone();
                    let (source, stand_in) = self.stand_in(source, promises, &message);
                    generations.extend(stand_in);
                    loaded.push(Loaded::missing(number, source));
                    failures.push(LoadFailure {
                        source: Some(candidate.source),
                        message,
                    });
                }
            }
        }
        self.registry.publish_all(generations);
        self.show(&loaded);
        (failures, warnings)
    }

    /// Notes that a file was said to be broken; false when it was said before of the same file.
    fn is_news(&self, path: &Path) -> bool {
        let stamp = Stamp::of(path);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.insert(path.to_owned(), stamp) != Some(stamp)
    }

    fn add(&self, loader: Arc<dyn Loader>) -> usize {
        let mut loaders = locked(&self.loaders);
        loaders.push(loader);
        loaders.len() - 1
    }

    fn loaders(&self) -> Vec<Arc<dyn Loader>> {
        locked(&self.loaders).clone()
    }

    /// Where changes of sources are seen.
    #[must_use]
    pub fn places(&self) -> Vec<Place> {
        let (loaders, texts, sessions) = (self.loaders(), self.all_texts(), self.sessions.all());
        let of_loaders = loaders.iter().flat_map(|loader| loader.places());
        let of_texts = texts.iter().flat_map(|texts| texts.places());
        let of_sessions = sessions.iter().flat_map(|session| session.places());
        of_loaders.chain(of_texts).chain(of_sessions).collect()
    }

    /// Waits until there may be other places: a session has begun, or the settings name others.
    pub async fn moved(&self) {
        self.moved.notified().await;
    }

    /// Says that there may be other places.
    pub fn look_again(&self) {
        self.moved.notify_one();
    }

    /// The files that are known, as they were when they were loaded or could not be.
    pub async fn stamps(&self) -> HashMap<PathBuf, Stamp> {
        let loaded = self.loaded.lock().await;
        let known = loaded.iter();
        let known = known.filter_map(|known| Some((known.source.path.clone()?, known.stamp?)));
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let told = told.iter();
        let told = told.filter_map(|(path, stamp)| Some((path.clone(), (*stamp)?)));
        known.chain(told).collect()
    }

    /// Learns what the files hold that are loaded, so that it is known later whether and from what they
    /// changed. Those that ship are left out: they are large, and hardly ever change.
    pub async fn learn(&self) {
        let mut loaded = self.loaded.lock().await;
        let unknown = |known: &&mut Loaded| {
            known.digest.is_none() && known.generation > 0 && known.source.rank != Rank::BuiltIn
        };
        for known in loaded.iter_mut().filter(unknown) {
            let digest = digest_of(&known.source).await;
            known.digest = digest.filter(|_| known.is_untouched());
        }
        self.show(&loaded);
    }

    /// What the user asks for: everything, unless something is going on in a session (R53).
    ///
    /// # Errors
    /// What is going on.
    pub async fn reload(self: &Arc<Self>) -> Result<Report, Error> {
        for session in self.sessions.all() {
            session.may_reload()?;
        }
        Ok(self.begin(Scope::Everything).await)
    }

    /// What whoever watches the files asks for: what lies at these paths. Returns when it serves; that
    /// may be at the end of a turn.
    pub async fn changed(self: &Arc<Self>, paths: Vec<PathBuf>) -> Report {
        self.begin(Scope::Changed(paths)).await
    }

    /// Runs the transaction beside whoever asks: it is done to its end also when nobody waits any more.
    async fn begin(self: &Arc<Self>, scope: Scope) -> Report {
        let reloader = Arc::clone(self);
        let running = tokio::spawn(async move { reloader.run(scope).await });
        // A runtime that ends takes the task with it; nothing was changed then, or all was.
        running.await.unwrap_or_default()
    }

    /// The transaction. Sessions hear of it by [`Event::ResourcesChanged`].
    async fn run(&self, scope: Scope) -> Report {
        let mut loaded = self.loaded.lock().await;
        let mut report = Report::default();
        let mut prepared = Vec::new();
        let mut gone = Vec::new();
        let texts = self.read_texts(&scope).await;
        report.changes.extend(texts.changes);
        let scope = match texts.moved {
            true => scope.with_everything_that_changed(),
            false => scope,
        };
        for (number, loader) in self.loaders().into_iter().enumerate() {
            let findings = look(&loader).await;
            let plan = plan(&loaded, number, findings);
            let task = Task {
                reloader: self,
                scope: &scope,
                number,
                loader: &loader,
            };
            gone.extend(task.missing(&plan, &loaded));
            task.tell_broken(&plan, &mut loaded, &mut report);
            task.prepare(plan, &mut loaded, &mut prepared, &mut report)
                .await;
        }
        let copies = standing::copies(&loaded);
        if !prepared.is_empty() || !gone.is_empty() {
            self.commit(&mut loaded, prepared, gone, &mut report).await;
            self.remember();
        }
        let advice = standing::advice(&loaded, copies);
        self.show(&loaded);
        drop(loaded);
        if texts.moved {
            self.look_again();
        }
        if let Some(message) = advice {
            self.say(Event::Notice { message }).await;
        }
        if report.says_something() {
            let changes = report.changes.clone();
            self.say(Event::ResourcesChanged { changes }).await;
        }
        report
    }

    /// Says something in all sessions.
    pub async fn say(&self, event: Event) {
        for session in self.sessions.all() {
            session.say(event.clone()).await;
        }
    }

    /// Makes what was prepared serve, where no handler or tool runs.
    async fn commit(
        &self,
        loaded: &mut Vec<Loaded>,
        prepared: Vec<Prepared>,
        gone: Vec<usize>,
        report: &mut Report,
    ) {
        let sessions = self.sessions.all();
        let _holds = sessions::hold(&sessions).await;
        let (prepared, mut notes) = self.hand_over(loaded, prepared, report).await;
        let name = |place: &usize| loaded[*place].source.name.clone();
        let replaced = prepared.iter().filter_map(|new| new.place.as_ref());
        let ending: Vec<String> = replaced.chain(&gone).map(name).collect();
        for session in &sessions {
            Arc::clone(session).tell_end(ending.clone()).await;
        }
        let begun = Instant::now();
        let generations = prepared.iter().map(|new| Arc::clone(&new.generation));
        // Also those that are replaced under another name.
        self.registry.exchange(&ending, generations.collect());
        tracing::debug!(target: "pliant::reload", took_us = begun.elapsed().as_micros(), "published");
        let starting: Vec<String> = prepared
            .iter()
            .map(|new| new.generation.source().name.clone())
            .collect();
        for session in &sessions {
            Arc::clone(session).tell_start(starting.clone()).await;
        }
        let (stand_ins, prepared): (Vec<_>, Vec<_>) =
            prepared.into_iter().partition(|new| new.stands_in);
        for new in prepared {
            let note = notes
                .iter()
                .position(|(name, _)| *name == new.generation.source().name);
            let note = note.map(|at| notes.swap_remove(at).1);
            report.changes.push(settle(loaded, new, note));
        }
        let mut gone = gone;
        gone.sort_unstable();
        loaded.extend(stand_ins.into_iter().map(stood_in_for));
        for place in gone.into_iter().rev() {
            let old = loaded.remove(place);
            report.changes.push(SourceChange {
                from: short(old.digest),
                ..change(&old.source, SourceOutcome::Removed)
            });
        }
    }

    /// Lets each old generation hand its state to the new one. Where that fails, the old one goes on.
    async fn hand_over(
        &self,
        loaded: &mut [Loaded],
        prepared: Vec<Prepared>,
        report: &mut Report,
    ) -> (Vec<Prepared>, Vec<(String, String)>) {
        let snapshot = self.registry.snapshot();
        let (mut ready, mut notes) = (Vec::new(), Vec::new());
        for new in prepared {
            let old = new.place.and_then(|place| {
                let name = &loaded[place].source.name;
                let mut sources = snapshot.sources().iter();
                sources.find(|old| old.source().name == *name)
            });
            let Some(old) = old else {
                ready.push(new);
                continue;
            };
            match hand_over(old.generation(), &new.generation).await {
                Ok(HandedOver::Nothing | HandedOver::Taken) => ready.push(new),
                Ok(HandedOver::Refused(reason)) => {
                    let name = new.generation.source().name.clone();
                    notes.push((name, format!("Its state was not taken over: {reason}.")));
                    ready.push(new);
                }
                Err(problem) => {
                    let (name, kind) = (
                        &new.candidate.source.name,
                        "The version that serves goes on.",
                    );
                    if let Some(place) = new.place {
                        loaded[place].failed = new.digest;
                    }
                    report.changes.push(SourceChange {
                        to: short(new.digest),
                        message: Some(format!(
                            "\"{name}\" was not reloaded, because {problem}. {kind}"
                        )),
                        ..change(&new.candidate.source, SourceOutcome::Failed)
                    });
                }
            }
        }
        (ready, notes)
    }
}

/// Notes that it is there, and that this content cannot be loaded.
fn stood_in_for(new: Prepared) -> Loaded {
    let mut known = Loaded::missing(new.loader, new.generation.source().clone());
    known.stamp = new.stamp;
    known.failed = new.digest;
    known
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that it serves, and says so.
fn settle(loaded: &mut Vec<Loaded>, new: Prepared, note: Option<String>) -> SourceChange {
    let source = new.generation.source().clone();
    let (outcome, from, generation) = match new.place {
        Some(place) => {
            let known = &mut loaded[place];
            let outcome = match (known.generation, new.same) {
                (0, _) => SourceOutcome::Added,
                (_, true) => SourceOutcome::Restarted,
                (_, false) => SourceOutcome::Reloaded,
            };
            let from = known.digest.filter(|_| known.generation > 0);
            known.replaced += u32::from(known.generation > 0 && !new.same);
            known.generation += 1;
            known.digest = new.digest;
            known.failed = None;
            known.source = source.clone();
            known.stamp = new.stamp;
            (outcome, from, known.generation)
        }
        None => {
            let mut known = Loaded::new(new.loader, source.clone(), new.digest);
            known.stamp = new.stamp;
            loaded.push(known);
            (SourceOutcome::Added, None, 1)
        }
    };
    SourceChange {
        generation: Some(generation),
        from: short(from),
        to: short(new.digest),
        message: note,
        ..change(&source, outcome)
    }
}
