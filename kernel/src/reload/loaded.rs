//! What is loaded, and what a look at the disk says should be.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use super::loader::{Candidate, Findings};
use crate::digest::Digest;
use crate::registry::Source;
use crate::watch::Stamp;

/// More reloads of one source within this time than there may be are a loop: something writes the file
/// again whenever it was reloaded.
const BUSY_TIME: Duration = Duration::from_secs(10);

/// A source that was loaded, or could not be.
#[derive(Debug)]
pub(super) struct Loaded {
    /// Which of the loaders is its own.
    pub(super) loader: usize,
    pub(super) source: Source,
    /// What identifies the content that serves, where it is known.
    pub(super) digest: Option<Digest>,
    /// The file when that was loaded, or could not be.
    pub(super) stamp: Option<Stamp>,
    /// Generations there have been; none serves while it is 0.
    pub(super) generation: u32,
    /// Generations that other content took the place of.
    pub(super) replaced: u32,
    /// The content that could not be loaded, so that it is said once.
    pub(super) failed: Option<Digest>,
    recent: VecDeque<Instant>,
}

impl Loaded {
    pub(super) fn new(loader: usize, source: Source, digest: Option<Digest>) -> Self {
        Self {
            loader,
            stamp: source.path.as_deref().and_then(Stamp::of),
            source,
            digest,
            generation: 1,
            replaced: 0,
            failed: None,
            recent: VecDeque::new(),
        }
    }

    pub(super) fn is_at(&self, path: &Path) -> bool {
        self.source.path.as_deref() == Some(path)
    }

    /// One that was found and could not be loaded.
    pub(super) fn missing(loader: usize, source: Source) -> Self {
        Self {
            generation: 0,
            ..Self::new(loader, source, None)
        }
    }

    /// Whether the candidate is this source, and no other that takes its place.
    pub(super) fn is_at_same(&self, candidate: &Candidate) -> bool {
        self.is(&candidate.source)
    }

    fn is(&self, source: &Source) -> bool {
        match (&self.source.path, &source.path) {
            (Some(ours), Some(theirs)) => ours == theirs,
            (None, None) => self.source.name == source.name,
            _ => false,
        }
    }

    /// Whether the file was not touched since.
    pub(super) fn is_untouched(&self) -> bool {
        let now = self.source.path.as_deref().and_then(Stamp::of);
        now.is_some() && now == self.stamp
    }

    /// Counts a reload that nobody asked for; false when there were more than `most` of late.
    pub(super) fn may_reload(&mut self, now: Instant, most: usize) -> bool {
        while self
            .recent
            .front()
            .is_some_and(|then| now.duration_since(*then) > BUSY_TIME)
        {
            self.recent.pop_front();
        }
        let may = self.recent.len() < most;
        if may {
            self.recent.push_back(now);
        }
        may
    }

    /// The user wants it loaded: what went before does not count.
    pub(super) fn forget_reloads(&mut self) {
        self.recent.clear();
        self.failed = None;
    }
}

/// What is to be done so that everything is as it is found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// To load, in load order; with the place in the list of what it replaces.
    pub(super) load: Vec<(Candidate, Option<usize>)>,
    /// Places of what is gone.
    pub(super) gone: Vec<usize>,
    /// Places of what is there and broken, with the reason: what served goes on.
    pub(super) broken: Vec<(usize, String)>,
    /// What is broken and never served.
    pub(super) never: Vec<(std::path::PathBuf, String)>,
}

/// Compares what one loader finds with what of it is loaded.
pub(super) fn plan(loaded: &[Loaded], loader: usize, findings: Findings) -> Plan {
    let Findings {
        candidates, broken, ..
    } = findings;
    let own = || {
        let numbered = loaded.iter().enumerate();
        numbered.filter(move |(_, known)| known.loader == loader)
    };
    let mut plan = Plan::default();
    for broken in broken {
        match own().find(|(_, known)| known.is_at(&broken.path)) {
            Some((place, _)) => plan.broken.push((place, broken.message)),
            None => plan.never.push((broken.path, broken.message)),
        }
    }
    let is_kept = |place: usize| plan.broken.iter().any(|(kept, _)| *kept == place);
    // A name whose owner is broken is not given to somebody else.
    let owner = |source: &Source| own().find(|(_, known)| known.source.name == source.name);
    let is_free =
        |candidate: &Candidate| !owner(&candidate.source).is_some_and(|(owner, _)| is_kept(owner));
    let candidates: Vec<Candidate> = candidates.into_iter().filter(is_free).collect();
    // A place has one successor. Who has the name goes before who lies where it lay: a library that was
    // moved is still itself, whatever was put where it was.
    let by_name = |candidate: &Candidate| owner(&candidate.source).map(|(place, _)| place);
    let mut places: Vec<Option<usize>> = candidates.iter().map(by_name).collect();
    for (at, candidate) in candidates.iter().enumerate() {
        let mut known = own().filter(|(_, known)| known.is(&candidate.source));
        if places[at].is_none() {
            let place = known.next().map(|(place, _)| place);
            places[at] = place.filter(|place| !places.contains(&Some(*place)));
        }
    }
    plan.load = candidates.into_iter().zip(places).collect();
    let stays = |place: usize| {
        is_kept(place)
            || plan
                .load
                .iter()
                .any(|(_, replaced)| *replaced == Some(place))
    };
    let gone: Vec<usize> = own()
        .map(|(place, _)| place)
        .filter(|place| !stays(*place))
        .collect();
    plan.gone = gone;
    plan
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::registry::Rank;
    use crate::reload::Broken;

    fn source(name: &str, path: &str) -> Source {
        Source {
            name: name.to_owned(),
            path: Some(PathBuf::from(path)),
            rank: Rank::User,
        }
    }

    fn candidate(name: &str, path: &str) -> Candidate {
        Candidate {
            source: source(name, path),
            digest: None,
        }
    }

    #[test]
    fn what_is_broken_keeps_its_name_and_what_is_gone_gives_it_back() {
        // E06, design §3.2
        let loaded = [Loaded::new(0, source("files", "/user/files.so"), None)];
        let shipped = candidate("files", "/shipped/files.so");
        let broken = Broken {
            path: PathBuf::from("/user/files.so"),
            message: "half".to_owned(),
        };
        let found = Findings {
            candidates: vec![shipped.clone()],
            broken: vec![broken],
            ..Findings::default()
        };
        let kept = plan(&loaded, 0, found);
        assert_eq!(kept.broken, [(0, "half".to_owned())]);
        assert_eq!((kept.load, kept.gone), (vec![], vec![]));
        let found = Findings {
            candidates: vec![shipped.clone()],
            ..Findings::default()
        };
        assert_eq!(plan(&loaded, 0, found).load, [(shipped, Some(0))]);
        assert_eq!(plan(&loaded, 0, Findings::default()).gone, [0]);
        assert_eq!(plan(&loaded, 1, Findings::default()), Plan::default());
    }

    #[test]
    fn a_library_that_got_another_name_takes_the_place_of_the_one_it_was() {
        let loaded = [Loaded::new(0, source("old", "/x.so"), None)];
        let found = Findings {
            candidates: vec![candidate("new", "/x.so")],
            ..Findings::default()
        };
        let plan = plan(&loaded, 0, found);
        assert_eq!(plan.load, [(candidate("new", "/x.so"), Some(0))]);
        assert_eq!(plan.gone, [0; 0]);
    }

    #[test]
    fn a_library_that_was_moved_and_the_one_put_where_it_was_have_a_place_each() {
        // One place for both would leave one of them registered for ever.
        let at = |paths: [(&str, &str); 2]| {
            let candidates = paths.map(|(name, path)| candidate(name, path)).to_vec();
            Findings {
                candidates,
                ..Findings::default()
            }
        };
        let loaded = [Loaded::new(0, source("a", "/x.so"), None)];
        for paths in [
            [("b", "/x.so"), ("a", "/y.so")],
            [("a", "/y.so"), ("b", "/x.so")],
        ] {
            let plan = plan(&loaded, 0, at(paths));
            for (candidate, place) in plan.load {
                let expected = (candidate.source.name == "a").then_some(0);
                assert_eq!(place, expected, "{}", candidate.source.name);
            }
            assert_eq!(plan.gone, [0; 0]);
        }
        let both = [
            Loaded::new(0, source("a", "/x.so"), None),
            Loaded::new(0, source("b", "/y.so"), None),
        ];
        let swapped = plan(&both, 0, at([("b", "/x.so"), ("a", "/y.so")]));
        let places: Vec<_> = swapped.load.iter().map(|(_, place)| *place).collect();
        assert_eq!(places, [Some(1), Some(0)]);
    }

    #[test]
    fn more_than_five_reloads_in_ten_seconds_are_a_loop() {
        // resources §12.4
        let mut loaded = Loaded::new(0, source("a", "/a"), None);
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        for ms in 0..5 {
            assert!(loaded.may_reload(after(ms * 100), 5));
        }
        assert!(!loaded.may_reload(after(9_000), 5));
        assert!(loaded.may_reload(after(10_100), 5));
        loaded.forget_reloads();
        assert!(loaded.may_reload(after(10_100), 5));
    }
}
