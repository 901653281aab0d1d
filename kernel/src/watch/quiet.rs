//! When a changed path is looked at: not before it has been quiet for a while, and not later than a
//! constant stream of changes may hold it up. Knows no files and no clock; whoever asks says what time
//! it is.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::place::Class;

/// A stream of changes that never pauses holds a text up this long at most.
const LONGEST: Duration = Duration::from_secs(2);

/// How long each class has to be quiet. A library is looked at twice, the second time at the end of its
/// pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pauses {
    /// Libraries: a build writes them in pieces.
    pub library: Duration,
    /// Scripts.
    pub script: Duration,
    /// Everything else (`hotReload.debounceMs`).
    pub text: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self {
            library: Duration::from_millis(100),
            script: Duration::from_millis(30),
            text: Duration::from_millis(300),
        }
    }
}

impl Pauses {
    fn of(self, class: Class) -> Duration {
        match class {
            Class::Library => self.library / 4 * 3,
            Class::Script => self.script,
            Class::Text => self.text,
        }
    }
}

/// What is known of a path that changed.
#[derive(Debug, Clone, Copy)]
struct Dirty {
    class: Class,
    first: Instant,
    due: Instant,
}

/// The paths that changed and were not looked at yet.
#[derive(Debug)]
pub(super) struct Quiet {
    pauses: Pauses,
    dirty: HashMap<PathBuf, Dirty>,
}

impl Quiet {
    pub(super) fn new(pauses: Pauses) -> Self {
        Self {
            pauses,
            dirty: HashMap::new(),
        }
    }

    /// Something happened to a path: its quiet time begins again.
    pub(super) fn mark(&mut self, path: &Path, class: Class, now: Instant) {
        let pause = self.pauses.of(class);
        match self.dirty.get_mut(path) {
            Some(dirty) => {
                let latest = match class {
                    // Half a library is worth nothing.
                    Class::Library => now + pause,
                    Class::Script | Class::Text => dirty.first + LONGEST,
                };
                dirty.due = (now + pause).min(latest.max(now));
            }
            None => {
                let dirty = Dirty {
                    class,
                    first: now,
                    due: now + pause,
                };
                self.dirty.insert(path.to_owned(), dirty);
            }
        }
    }

    /// A look at the path has to wait for another quiet time, or for this long.
    pub(super) fn wait(&mut self, path: &Path, class: Class, now: Instant, long: Option<Duration>) {
        let due = now + long.unwrap_or_else(|| self.pauses.of(class));
        let dirty = Dirty {
            class,
            first: now,
            due,
        };
        self.dirty.insert(path.to_owned(), dirty);
    }

    /// The paths whose quiet time is over, sorted; they are forgotten here.
    pub(super) fn due(&mut self, now: Instant) -> Vec<(PathBuf, Class)> {
        let ready = self.dirty.iter().filter(|(_, dirty)| dirty.due <= now);
        let mut ready: Vec<_> = ready
            .map(|(path, dirty)| (path.clone(), dirty.class))
            .collect();
        ready.sort();
        for (path, _) in &ready {
            self.dirty.remove(path);
        }
        ready
    }

    /// When the next path is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.dirty.values().map(|dirty| dirty.due).min()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    proptest! {
        #[test]
        fn every_change_is_looked_at_after_it_was_quiet_and_in_bounded_time(
            steps in prop::collection::vec((0_u64..120, 0_usize..3, 0_u8..3), 1..60)
        ) {
            // resources §12.3, plugin-abi §10
            let classes = [Class::Library, Class::Script, Class::Text];
            let pauses = Pauses::default();
            let mut quiet = Quiet::new(pauses);
            let start = Instant::now();
            let mut now = start;
            let mut open: HashMap<PathBuf, (Class, Instant, Instant)> = HashMap::new();
            let check = |quiet: &mut Quiet, now: Instant, open: &mut HashMap<PathBuf, (Class, Instant, Instant)>| {
                for (path, class) in quiet.due(now) {
                    let (marked_as, first, last) = open.remove(&path).expect("it was marked");
                    prop_assert_eq!(class, marked_as);
                    let is_quiet = now >= last + pauses.of(class);
                    prop_assert!(is_quiet || (class != Class::Library && now >= first + LONGEST));
                }
                for (class, first, last) in open.values() {
                    let limit = match class {
                        Class::Library => *last + pauses.of(*class),
                        _ => (*last + pauses.of(*class)).min(*first + LONGEST).max(*last),
                    };
                    prop_assert!(now < limit, "a change was held up");
                }
                Ok(())
            };
            for (later, path, class) in steps {
                now += ms(later);
                check(&mut quiet, now, &mut open)?;
                let (path, class) = (PathBuf::from(format!("/{path}")), classes[usize::from(class)]);
                // A path has one class.
                let class = open.get(&path).map_or(class, |(class, ..)| *class);
                quiet.mark(&path, class, now);
                open.entry(path).and_modify(|(_, _, last)| *last = now).or_insert((class, now, now));
            }
            while let Some(next) = quiet.next() {
                now = now.max(next);
                check(&mut quiet, now, &mut open)?;
            }
            prop_assert!(open.is_empty());
        }
    }
}
