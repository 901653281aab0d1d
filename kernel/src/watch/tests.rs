//! Real files, saved in the ways that editors and builds save them (`plugin-abi.md` §13: "save styles of
//! section 10"). A test waits for what is told, never for time to pass.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::*;

struct Folder {
    dir: tempfile::TempDir,
    told: Receiver<Told>,
    _watcher: Watcher,
}

/// Pauses that are long enough for what one test writes, and short for who waits.
const PAUSES: Pauses = Pauses {
    library: Duration::from_millis(20),
    script: Duration::from_millis(20),
    text: Duration::from_millis(20),
};

fn watched(class: Class, prepare: impl FnOnce(&Path)) -> Folder {
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path());
    let place = Place {
        directory: dir.path().join("w"),
        recursive: true,
        class,
        only: Only::All,
    };
    let (tell, told) = channel();
    let tell = move |what| drop(tell.send(what));
    let watcher = Watcher::start(vec![place], None, PAUSES, tell).unwrap();
    Folder {
        dir,
        told,
        _watcher: watcher,
    }
}

fn with_a(dir: &Path) {
    fs::create_dir(dir.join("w")).unwrap();
    fs::write(dir.join("w/a"), "one").unwrap();
}

impl Folder {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("w").join(name)
    }

    /// What is told next, as names: `+a` for changed, `-a` for removed.
    fn next(&self) -> Vec<String> {
        let told = self
            .told
            .recv_timeout(Duration::from_secs(20))
            .expect("told");
        let Told::Changes(Changes { changed, removed }) = told else {
            panic!("{told:?}");
        };
        let inside = |path: &PathBuf| {
            let inside = path.strip_prefix(self.dir.path().join("w")).unwrap();
            inside.display().to_string()
        };
        let changed = changed.iter().map(|path| format!("+{}", inside(path)));
        let removed = removed.iter().map(|path| format!("-{}", inside(path)));
        changed.chain(removed).collect()
    }

    /// Nothing but this is told: a last change, and what came before it.
    fn then(&self, expected: &[&str]) {
        assert_eq!(self.next(), expected);
    }
}

#[test]
fn every_way_of_saving_is_one_change() {
    let folder = watched(Class::Script, with_a);
    let a = folder.path("a");
    fs::write(&a, "two").unwrap();
    folder.then(&["+a"]);
    // Over the old one, by renaming.
    fs::write(folder.path(".a.new"), "three").unwrap();
    fs::rename(folder.path(".a.new"), &a).unwrap();
    folder.then(&["+a"]);
    // Away and back under its name, as vim does, and as cargo does with a link.
    fs::rename(&a, folder.path("a~")).unwrap();
    fs::write(&a, "four").unwrap();
    folder.then(&["+a"]);
    fs::write(folder.path("b.tmp"), "five").unwrap();
    fs::remove_file(&a).unwrap();
    fs::hard_link(folder.path("b.tmp"), &a).unwrap();
    folder.then(&["+a"]);
    // In pieces.
    fs::write(&a, "").unwrap();
    fs::write(&a, "six").unwrap();
    folder.then(&["+a"]);
}

#[test]
fn what_goes_comes_back_and_is_moved_is_told() {
    // resources §12.3.5 and §12.3.6
    let folder = watched(Class::Script, with_a);
    fs::remove_file(folder.path("a")).unwrap();
    folder.then(&["-a"]);
    fs::write(folder.path("a"), "again").unwrap();
    folder.then(&["+a"]);
    fs::create_dir(folder.path("deep")).unwrap();
    fs::write(folder.path("deep/b"), "b").unwrap();
    folder.then(&["+deep/b"]);
    fs::rename(folder.path("deep"), folder.path("down")).unwrap();
    let mut told = folder.next();
    while told.len() < 2 {
        told.extend(folder.next());
    }
    told.sort();
    assert_eq!(told, ["+down/b", "-deep/b"]);
    fs::write(folder.path("down/b"), "bb").unwrap();
    folder.then(&["+down/b"]);
}

#[test]
fn reading_and_what_editors_leave_about_is_silent() {
    let folder = watched(Class::Script, with_a);
    fs::read(folder.path("a")).unwrap();
    for left in [".a.swp", "a~", "4913", "x.tmp"] {
        fs::write(folder.path(left), "x").unwrap();
        fs::remove_file(folder.path(left)).unwrap();
    }
    fs::create_dir_all(folder.path("node_modules/x")).unwrap();
    fs::write(folder.path("node_modules/x/y"), "y").unwrap();
    fs::write(folder.path("b"), "b").unwrap();
    folder.then(&["+b"]);
}

#[test]
fn a_directory_that_comes_later_and_goes_and_comes_again_is_watched() {
    let folder = watched(Class::Script, |_| ());
    let make = |content: &str| {
        fs::create_dir(folder.path("")).unwrap();
        fs::write(folder.path("a"), content).unwrap();
    };
    make("one");
    folder.then(&["+a"]);
    fs::write(folder.path("a"), "two").unwrap();
    folder.then(&["+a"]);
    fs::remove_dir_all(folder.path("")).unwrap();
    folder.then(&["-a"]);
    make("three");
    folder.then(&["+a"]);
    fs::write(folder.path("a"), "four").unwrap();
    folder.then(&["+a"]);
}

#[test]
fn links_to_files_and_to_the_place_itself_are_followed() {
    let folder = watched(Class::Script, |dir| {
        fs::create_dir_all(dir.join("real/w")).unwrap();
        fs::write(dir.join("real/b"), "b").unwrap();
        std::os::unix::fs::symlink(dir.join("real/w"), dir.join("w")).unwrap();
        std::os::unix::fs::symlink(dir.join("real/b"), dir.join("w/b")).unwrap();
    });
    fs::write(folder.dir.path().join("real/w/a"), "a").unwrap();
    folder.then(&["+a"]);
    fs::write(folder.dir.path().join("real/b"), "bb").unwrap();
    folder.then(&["+b"]);
}

#[test]
fn a_library_is_told_of_when_it_is_whole() {
    // plugin-abi §5.2
    // A header that says: one section of 64 bytes, described right behind the header.
    let mut whole = vec![0; 128];
    whole[..6].copy_from_slice(b"\x7fELF\x02\x01");
    (whole[0x28], whole[0x3a], whole[0x3c]) = (64, 64, 1);
    let folder = watched(Class::Library, with_a);
    fs::write(folder.path("l.so"), &whole[..100]).unwrap();
    fs::write(folder.path("b"), "no library at all").unwrap();
    folder.then(&["+b"]);
    fs::write(folder.path("l.so"), &whole).unwrap();
    folder.then(&["+l.so"]);
}

#[test]
fn other_places_can_be_watched_later() {
    let folder = watched(Class::Script, |dir| {
        with_a(dir);
        fs::create_dir(dir.join("w/other")).unwrap();
    });
    let place = Place {
        directory: folder.path("other"),
        recursive: false,
        class: Class::Text,
        only: Only::All,
    };
    folder._watcher.watch(vec![place], HashMap::new());
    fs::write(folder.path("a"), "not watched any more").unwrap();
    fs::write(folder.path("other/b"), "b").unwrap();
    // The first may have been seen before the places changed.
    let mut told = folder.next();
    if told == ["+a"] {
        told = folder.next();
    }
    assert_eq!(told, ["+other/b"]);
}

#[test]
fn what_changed_before_it_was_watched_is_told_where_it_was_known() {
    let dir = tempfile::tempdir().unwrap();
    with_a(dir.path());
    let path = |name: &str| dir.path().join("w").join(name);
    fs::write(path("same"), "one").unwrap();
    fs::write(path("gone"), "one").unwrap();
    let known = ["a", "same", "gone"].map(|name| (path(name), Stamp::of(&path(name)).unwrap()));
    fs::write(path("a"), "another one").unwrap();
    fs::write(path("new"), "one").unwrap();
    fs::remove_file(path("gone")).unwrap();
    let place = Place {
        directory: dir.path().join("w"),
        recursive: false,
        class: Class::Script,
        only: Only::All,
    };
    let (tell, told) = channel();
    let tell = move |what| drop(tell.send(what));
    let _watcher = Watcher::start(vec![place], Some(known.into()), PAUSES, tell).unwrap();
    let mut all = Changes::default();
    while all.changed.len() < 2 || all.removed.is_empty() {
        let Told::Changes(some) = told.recv_timeout(Duration::from_secs(20)).unwrap() else {
            panic!("another word")
        };
        all.changed.extend(some.changed);
        all.removed.extend(some.removed);
    }
    assert_eq!(all.changed, [path("a"), path("new")]);
    assert_eq!(all.removed, [path("gone")]);
}

#[test]
fn a_change_that_was_not_told_yet_is_told_although_other_places_are_watched_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    with_a(dir.path());
    let path = |name: &str| dir.path().join("w").join(name);
    fs::write(path("gone"), "one").unwrap();
    let place = |name: &str| Place {
        directory: dir.path().join(name),
        recursive: false,
        class: Class::Script,
        only: Only::All,
    };
    let (tell, told) = channel();
    let tell = move |what| drop(tell.send(what));
    // What is not known when the watch starts counts as changed, and is told when it has been quiet.
    let gone = [(path("gone"), Stamp::of(&path("gone")).unwrap())];
    fs::remove_file(path("gone")).unwrap();
    let watcher = Watcher::start(vec![place("w")], Some(gone.into()), PAUSES, tell).unwrap();
    fs::create_dir(dir.path().join("other")).unwrap();
    fs::write(dir.path().join("other/old"), "one").unwrap();
    watcher.watch(vec![place("w"), place("other")], HashMap::new());
    let mut all = Changes::default();
    while all.changed.is_empty() || all.removed.is_empty() {
        let Told::Changes(some) = told.recv_timeout(Duration::from_secs(20)).unwrap() else {
            panic!("another word")
        };
        all.changed.extend(some.changed);
        all.removed.extend(some.removed);
    }
    assert_eq!(
        all.changed,
        [path("a")],
        "what a new place holds is no news"
    );
    assert_eq!(all.removed, [path("gone")]);
}

#[test]
fn thousands_of_files_that_go_at_once_hold_nothing_up() {
    let dir = tempfile::tempdir().unwrap();
    with_a(dir.path());
    let path = |name: &str| dir.path().join("w").join(name);
    fs::create_dir(path("many")).unwrap();
    for number in 0..5000 {
        fs::write(path(&format!("many/f{number}")), "x").unwrap();
    }
    let place = Place {
        directory: dir.path().join("w"),
        recursive: true,
        class: Class::Script,
        only: Only::All,
    };
    let (tell, told) = channel();
    let tell = move |what| drop(tell.send(what));
    let _watcher = Watcher::start(vec![place], None, PAUSES, tell).unwrap();
    fs::remove_dir_all(path("many")).unwrap();
    fs::write(path("later"), "x").unwrap();
    let (mut removed, mut changed) = (0, Vec::new());
    while removed < 5000 || changed.is_empty() {
        let Told::Changes(some) = told.recv_timeout(Duration::from_secs(20)).unwrap() else {
            panic!("another word")
        };
        removed += some.removed.len();
        changed.extend(some.changed);
    }
    assert_eq!(changed, [path("later")]);
}
