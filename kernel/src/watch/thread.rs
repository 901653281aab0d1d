//! The thread of a watcher: takes events, waits until what they mark is quiet, looks, and tells.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender};
use std::time::{Duration, Instant};

use notify::event::{CreateKind, RemoveKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::files::{Stamp, scan};
use super::place::{Class, Place};
use super::quiet::{Pauses, Quiet};
use super::roots::{Names, Roots, roots};
use super::{Changes, Told};
use crate::digest::Digest;

/// How often places are looked at where the system watches nothing.
const POLL: Duration = Duration::from_secs(2);

/// A library that stays incomplete for this long is told of as it is.
const HALF: Duration = Duration::from_secs(1);

/// What the thread is told.
pub(super) enum Message {
    Event(notify::Result<Event>),
    /// The other end is told when they are watched.
    Places(Vec<Place>, HashMap<PathBuf, Stamp>, SyncSender<()>),
    Stop,
}

/// Messages that are taken before paths are looked at again.
const MOST_AT_ONCE: usize = 1000;

pub(super) struct Work {
    places: Vec<Place>,
    quiet: Quiet,
    pauses: Pauses,
    known: HashMap<PathBuf, Stamp>,
    /// Of libraries that are being looked at, what they held at the last look.
    seen: HashMap<PathBuf, Look>,
    /// Files that were gone at the last look.
    missing: HashSet<PathBuf>,
    names: Names,
    watched: Roots,
    system: Option<RecommendedWatcher>,
    messages: Sender<Message>,
    tell: Box<dyn Fn(Told) + Send>,
    polls: bool,
}

/// A look at a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    digest: Option<Digest>,
    complete: bool,
}

impl Work {
    pub(super) fn new(
        pauses: Pauses,
        messages: Sender<Message>,
        tell: Box<dyn Fn(Told) + Send>,
    ) -> Self {
        Self {
            places: Vec::new(),
            quiet: Quiet::new(pauses),
            pauses,
            known: HashMap::new(),
            seen: HashMap::new(),
            missing: HashSet::new(),
            names: Names::default(),
            watched: Roots::new(),
            system: None,
            messages,
            tell,
            polls: false,
        }
    }

    /// Other places from now on. What they hold now is known and not told, unless it was watched before
    /// and is not as it was known: that change may not have been told yet.
    pub(super) fn watch(&mut self, places: Vec<Place>, known: HashMap<PathBuf, Stamp>) {
        let earlier = std::mem::replace(&mut self.places, places);
        self.follow();
        let mut before = std::mem::take(&mut self.known);
        for (path, stamp) in known {
            before.entry(path).or_insert(stamp);
        }
        let now: HashMap<PathBuf, Stamp> = self.places.iter().flat_map(scan).collect();
        let takes = |places: &[Place], path: &Path| places.iter().any(|place| place.takes(path));
        let mut changed = Vec::new();
        for (path, stamp) in &now {
            let is_news = !before.contains_key(path) && takes(&earlier, path);
            match is_news {
                true => changed.push(path.clone()),
                false => drop(self.known.insert(path.clone(), *stamp)),
            }
        }
        for (path, stamp) in before {
            if now.get(&path) != Some(&stamp) && takes(&self.places, &path) {
                changed.push(path.clone());
                self.known.insert(path, stamp);
            }
        }
        for path in changed {
            self.mark(&path);
        }
        self.follow();
    }

    /// Takes what is known of files for the truth: what is otherwise now has changed.
    pub(super) fn compare(&mut self, known: HashMap<PathBuf, Stamp>) {
        self.known
            .retain(|path, stamp| known.get(path) == Some(stamp));
        for (path, stamp) in known {
            self.known.entry(path).or_insert(stamp);
        }
        self.rescan();
    }

    /// Until somebody stops it.
    pub(super) fn run(&mut self, inbox: &Receiver<Message>) {
        loop {
            let now = Instant::now();
            let poll = self.polls.then(|| now + POLL);
            let next = [self.quiet.next(), poll].into_iter().flatten().min();
            let first = match next {
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(next) => inbox.recv_timeout(next.saturating_duration_since(now)),
            };
            match first {
                Ok(first) => {
                    // A look after each of very many events would be most of the work.
                    let more = std::iter::from_fn(|| inbox.try_recv().ok()).take(MOST_AT_ONCE);
                    for message in std::iter::once(first).chain(more) {
                        if self.take(message).is_break() {
                            return;
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) if self.polls => self.rescan(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.look();
        }
    }

    fn take(&mut self, message: Message) -> ControlFlow<()> {
        match message {
            Message::Event(event) => self.note(event),
            Message::Places(places, known, ready) => {
                self.watch(places, known);
                // Who asked may have gone.
                let _ = ready.send(());
            }
            Message::Stop => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    /// Asks the system to watch what the places need now.
    fn follow(&mut self) {
        let (wanted, names) = roots(&self.places, self.known.keys());
        self.names = names;
        if wanted == self.watched && self.system.is_some() {
            return;
        }
        let failed = self.follow_these(&wanted).err();
        self.watched = wanted;
        if let Some(error) = failed
            && !self.polls
        {
            self.polls = true;
            (self.tell)(Told::Notice(format!(
                "Changes of files are looked for every {} s, because the system cannot tell of them: {error}. \
                 On Linux more is allowed by the limits fs.inotify.*.",
                POLL.as_secs()
            )));
        }
    }

    fn follow_these(&mut self, wanted: &Roots) -> notify::Result<()> {
        let system = match &mut self.system {
            Some(system) => system,
            none => {
                let messages = self.messages.clone();
                let watcher = notify::recommended_watcher(move |event| {
                    // Nobody listens any more when the thread has ended.
                    let _ = messages.send(Message::Event(event));
                })?;
                none.insert(watcher)
            }
        };
        for (old, recursive) in &self.watched {
            if wanted.get(old) != Some(recursive) {
                // Its directory may be gone, and the watch with it.
                let _ = system.unwatch(old);
            }
        }
        let mut failed = Ok(());
        for (new, recursive) in wanted {
            if self.watched.get(new) == Some(recursive) {
                continue;
            }
            let mode = match recursive {
                true => RecursiveMode::Recursive,
                false => RecursiveMode::NonRecursive,
            };
            if let Err(error) = system.watch(new, mode)
                && new.is_dir()
            {
                failed = Err(error);
            }
        }
        failed
    }

    fn note(&mut self, event: notify::Result<Event>) {
        let event = match event {
            Ok(event) if event.need_rescan() => return self.rescan(),
            Ok(event) => event,
            // What went wrong may have hidden anything.
            Err(_) => return self.rescan(),
        };
        // Reading makes these.
        if matches!(event.kind, EventKind::Access(_)) {
            return;
        }
        let moved = !matches!(
            event.kind,
            EventKind::Modify(notify::event::ModifyKind::Data(_))
        );
        let of_file = matches!(
            event.kind,
            EventKind::Create(CreateKind::File) | EventKind::Remove(RemoveKind::File)
        );
        for real in &event.paths {
            for path in self.names.of(real) {
                self.mark(&path);
                // Below a file there is nothing, and looking for it costs a look at everything.
                let is_file = of_file || self.known.contains_key(&path);
                if moved && !is_file && self.leads_to_a_place(&path) {
                    self.rescan_below(&path);
                }
            }
        }
    }

    fn mark(&mut self, path: &Path) {
        let now = Instant::now();
        let takes = |place: &&Place| {
            place.takes(path) || (place.recursive && path.is_dir() && place.enters(path))
        };
        if let Some(place) = self.places.iter().find(takes) {
            self.quiet.mark(path, place.class, now);
            if place.class == Class::Library {
                self.seen.remove(path);
            }
        }
    }

    /// Whether a directory that came or went holds files of places, or is above one.
    fn leads_to_a_place(&self, path: &Path) -> bool {
        let concerns = |place: &Place| {
            place.directory.starts_with(path)
                || (place.recursive && path.starts_with(&place.directory) && !path.is_file())
        };
        self.places.iter().any(concerns)
    }

    /// Directories came, went or were renamed: what lies there is compared with what is known, after
    /// the system watches it.
    fn rescan_below(&mut self, path: &Path) {
        // A directory of the same name may have another watch now, or none.
        self.watched
            .retain(|root, _| root.is_dir() && !root.starts_with(path));
        self.follow();
        let near = |place: &&Place| {
            place.directory.starts_with(path) || path.starts_with(&place.directory)
        };
        let found: HashMap<_, _> = self.places.iter().filter(near).flat_map(scan).collect();
        let known = self.known.keys().filter(|file| !found.contains_key(*file));
        let changed = found.iter();
        let changed = changed.filter(|(file, stamp)| self.known.get(*file) != Some(*stamp));
        let all = known.chain(changed.map(|(file, _)| file));
        let marked: Vec<PathBuf> = all.filter(|file| file.starts_with(path)).cloned().collect();
        marked.iter().for_each(|file| self.mark(file));
    }

    /// Events were lost: everything is compared.
    fn rescan(&mut self) {
        self.follow();
        let found: HashMap<PathBuf, Stamp> = self.places.iter().flat_map(scan).collect();
        let changed = found
            .iter()
            .filter(|(path, stamp)| self.known.get(*path) != Some(*stamp));
        let gone = self.known.keys().filter(|path| !found.contains_key(*path));
        let marked: Vec<PathBuf> = changed.map(|(path, _)| path).chain(gone).cloned().collect();
        marked.iter().for_each(|path| self.mark(path));
    }

    /// Looks at what has been quiet, and tells what changed.
    fn look(&mut self) {
        let now = Instant::now();
        let mut changes = Changes::default();
        for (path, class) in self.quiet.due(now) {
            let Some(stamp) = Stamp::of(&path) else {
                if path.is_dir() {
                    // Files may have come before the system watched it.
                    self.rescan_below(&path);
                    continue;
                }
                if !self.known.contains_key(&path) {
                    self.missing.remove(&path);
                } else if self.missing.insert(path.clone()) {
                    // Who saves by renaming has the name free for a moment.
                    self.quiet.wait(&path, class, now, None);
                } else {
                    self.missing.remove(&path);
                    self.known.remove(&path);
                    changes.removed.push(path);
                }
                continue;
            };
            self.missing.remove(&path);
            if self.known.get(&path) == Some(&stamp) {
                continue;
            }
            if class == Class::Library && !self.is_whole(&path, now) {
                continue;
            }
            let is_new_link = path.is_symlink() && !self.known.contains_key(&path);
            self.known.insert(path.clone(), stamp);
            if is_new_link {
                self.follow();
            }
            changes.changed.push(path);
        }
        if changes != Changes::default() {
            (self.tell)(Told::Changes(changes));
        }
    }

    /// A build may still write without an event, through a mapping: a library counts when two looks saw
    /// the same complete file. The second look comes half a pause later.
    fn is_whole(&mut self, path: &Path, now: Instant) -> bool {
        let look = Look {
            digest: Digest::of_file(path).ok(),
            complete: is_complete(path),
        };
        let same = self.seen.insert(path.to_owned(), look) == Some(look);
        if same {
            self.seen.remove(path);
            return true;
        }
        let long = match look.complete {
            true => self.pauses.library / 4,
            false => HALF,
        };
        self.quiet.wait(path, Class::Library, now, Some(long));
        false
    }
}

/// Whether the end of the table of sections, which linkers write last, lies within an ELF file. Of other
/// formats this is not known.
fn is_complete(path: &Path) -> bool {
    use std::io::Read;

    let mut header = Vec::new();
    let Ok(file) = std::fs::File::open(path) else {
        return false;
    };
    let Ok(len) = file.metadata().map(|metadata| metadata.len()) else {
        return false;
    };
    if file.take(64).read_to_end(&mut header).is_err() || header.is_empty() {
        return false;
    }
    if !header.starts_with(b"\x7fELF") {
        return true;
    }
    let Ok(header) = <[u8; 64]>::try_from(header) else {
        return false;
    };
    // The rare other kinds of ELF are left to who loads them.
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return true;
    }
    let word = |at: usize| u64::from(u16::from_le_bytes([header[at], header[at + 1]]));
    let at: [u8; 8] = std::array::from_fn(|byte| header[0x28 + byte]);
    let end = u64::from_le_bytes(at).saturating_add(word(0x3a) * word(0x3c));
    end > 64 && end <= len
}
