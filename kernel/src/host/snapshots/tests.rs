use std::os::unix::fs::{PermissionsExt, symlink};

use proptest::prelude::*;
use serde_json::Value;
use tempfile::TempDir;

use super::*;

struct Scene {
    dir: TempDir,
    snapshots: Arc<Snapshots>,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("p")).unwrap();
        let home = dir.path().join("home");
        fs::create_dir(&home).unwrap();
        let snapshots = Snapshots::new(dir.path().join("store"), Some(home));
        Self {
            snapshots: Arc::new(snapshots),
            dir,
        }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("p")
    }

    fn write(&self, path: &str, text: &str) {
        let file = self.root().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap_or_else(|_| "-".to_owned())
    }

    fn going() -> Going {
        Going(Arc::default())
    }

    fn take(&self) -> String {
        let taken = self
            .snapshots
            .folder(&self.root())
            .unwrap()
            .take(&Self::going());
        taken.unwrap()["id"].as_str().unwrap().to_owned()
    }

    fn changes(&self, id: &str) -> Vec<String> {
        let changes = self.snapshots.folder(&self.root()).unwrap();
        let changes = changes.changes(id, &Self::going()).unwrap();
        let word = |one: &Value| {
            format!(
                "{} {}",
                one["what"].as_str().unwrap(),
                one["path"].as_str().unwrap()
            )
        };
        changes.as_array().unwrap().iter().map(word).collect()
    }

    fn restore(&self, id: &str) -> Value {
        let folder = self.snapshots.folder(&self.root()).unwrap();
        folder.restore(id, &Self::going()).unwrap()
    }
}

#[test]
fn what_was_changed_made_and_removed_is_as_it_was() {
    let scene = Scene::new();
    scene.write("kept", "same");
    scene.write("changed", "before");
    scene.write("gone/deep", "here");
    let script = scene.root().join("changed");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let id = scene.take();
    assert_eq!(scene.changes(&id), [""; 0]);
    scene.write("changed", "after");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o644)).unwrap();
    scene.write("new/one", "x");
    fs::remove_dir_all(scene.root().join("gone")).unwrap();
    assert_eq!(
        scene.changes(&id),
        ["changed changed", "removed gone/deep", "added new/one"]
    );
    let done = scene.restore(&id);
    assert_eq!((&done["written"], &done["removed"]), (&json!(2), &json!(1)));
    assert_eq!(
        (
            scene.read("changed").as_str(),
            scene.read("gone/deep").as_str()
        ),
        ("before", "here")
    );
    assert!(!scene.root().join("new").exists());
    let mode = fs::metadata(&script).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o755);
    // And back.
    scene.restore(done["undo"].as_str().unwrap());
    assert_eq!(
        (
            scene.read("changed").as_str(),
            scene.read("new/one").as_str()
        ),
        ("after", "x")
    );
    assert!(!scene.root().join("gone").exists());
}

#[test]
fn the_same_files_are_the_same_snapshot_and_equal_contents_are_kept_once() {
    let scene = Scene::new();
    scene.write("a", "text");
    scene.write("b", "text");
    let id = scene.take();
    assert_eq!(scene.take(), id);
    let blobs = scene
        .snapshots
        .folder(&scene.root())
        .unwrap()
        .store
        .join("blobs");
    let count = || fs::read_dir(&blobs).unwrap().count();
    assert_eq!(count(), 1);
    scene.write("a", "other");
    assert_ne!(scene.take(), id);
}

#[test]
fn what_is_ignored_is_neither_kept_nor_removed() {
    let scene = Scene::new();
    scene.write(".gitignore", "secret\n/out/\n");
    scene.write(".hidden", "seen");
    let id = scene.take();
    scene.write("secret", "s");
    scene.write("out/made", "m");
    scene.write("node_modules/x", "n");
    scene.write(".git/HEAD", "h");
    scene.write(".hidden", "changed");
    assert_eq!(scene.changes(&id), ["changed .hidden"]);
    scene.restore(&id);
    assert_eq!(scene.read(".hidden"), "seen");
    for path in ["secret", "out/made", "node_modules/x", ".git/HEAD"] {
        assert_ne!(scene.read(path), "-", "{path}");
    }
}

#[test]
fn what_was_left_out_is_told_and_stays() {
    let scene = Scene::new();
    let large = "x".repeat(usize::try_from(LARGEST_FILE).unwrap() + 1);
    scene.write("large", &large);
    let folder = scene.snapshots.folder(&scene.root()).unwrap();
    let taken = folder.take(&Scene::going()).unwrap();
    assert_eq!(taken["leftOut"][0]["path"], "large");
    scene.write("large", "small now");
    let id = taken["id"].as_str().unwrap();
    assert_eq!(scene.changes(id), [""; 0]);
    scene.restore(id);
    assert_eq!(scene.read("large"), "small now");
}

#[test]
fn files_folders_and_links_take_each_others_places() {
    let scene = Scene::new();
    scene.write("file", "f");
    scene.write("folder/in", "i");
    symlink("file", scene.root().join("link")).unwrap();
    let id = scene.take();
    let at = |path: &str| scene.root().join(path);
    fs::remove_file(at("file")).unwrap();
    scene.write("file/now", "a folder");
    fs::remove_dir_all(at("folder")).unwrap();
    scene.write("folder", "a file");
    fs::remove_file(at("link")).unwrap();
    scene.write("link", "a file");
    let done = scene.restore(&id);
    assert_eq!(done["failed"], json!([]));
    assert_eq!(
        (
            scene.read("file").as_str(),
            scene.read("folder/in").as_str()
        ),
        ("f", "i")
    );
    assert_eq!(fs::read_link(at("link")).unwrap(), Path::new("file"));
}

#[test]
fn nothing_is_written_or_removed_through_a_link() {
    let scene = Scene::new();
    scene.write("folder/in", "before");
    let id = scene.take();
    fs::remove_dir_all(scene.root().join("folder")).unwrap();
    let outside = scene.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("in"), "theirs").unwrap();
    symlink(&outside, scene.root().join("folder")).unwrap();
    scene.restore(&id);
    assert_eq!(fs::read_to_string(outside.join("in")).unwrap(), "theirs");
    assert_eq!(scene.read("folder/in"), "before");
    // A snapshot that somebody wrote.
    let folder = scene.snapshots.folder(&scene.root()).unwrap();
    let items = [(
        "../outside/in".to_owned(),
        Item::Link {
            target: "x".to_owned(),
        },
    )];
    let manifest = Manifest {
        taken_ms: 1,
        items: items.into(),
        ..Manifest::default()
    };
    let id = folder.write(&manifest).unwrap();
    let done = scene.restore(&id);
    assert_eq!(done["failed"][0]["path"], "../outside/in");
    assert_eq!(fs::read_to_string(outside.join("in")).unwrap(), "theirs");
}

#[test]
fn what_is_damaged_is_told_and_nothing_is_overwritten_with_it() {
    let scene = Scene::new();
    scene.write("a", "before");
    let id = scene.take();
    let folder = scene.snapshots.folder(&scene.root()).unwrap();
    let hash = Digest::of(b"before").to_string();
    fs::write(
        folder.store.join("blobs").join(&hash[..2]).join(&hash),
        "befo",
    )
    .unwrap();
    scene.write("a", "after");
    let done = scene.restore(&id);
    assert!(
        done["failed"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("damaged"),
        "{done}"
    );
    assert_eq!(scene.read("a"), "after");
    fs::write(folder.store.join(format!("{id}.json")), "{").unwrap();
    let error = folder.restore(&id, &Scene::going()).unwrap_err();
    assert!(error.message.contains("damaged"), "{error}");
    for id in ["nothing", "../x", "9999999999999"] {
        let error = folder.changes(id, &Scene::going()).unwrap_err();
        assert!(error.is(code::NOT_FOUND), "{error}");
    }
}

#[test]
fn the_home_and_what_holds_it_are_refused() {
    let scene = Scene::new();
    for folder in [
        scene.dir.path().join("home"),
        scene.dir.path().to_owned(),
        "/".into(),
    ] {
        let refused = scene.snapshots.folder(&folder).err().unwrap();
        assert!(refused.message.contains("more than a project"), "{refused}");
    }
}

#[test]
fn old_snapshots_are_cleared_away_with_what_only_they_had() {
    let scene = Scene::new();
    scene.write("kept", "always");
    let first = scene.take();
    for at in 0..KEPT + 5 {
        scene.write("a", &format!("{at}"));
        scene.take();
    }
    let folder = scene.snapshots.folder(&scene.root()).unwrap();
    assert!(folder.ids().len() <= KEPT);
    assert!(folder.manifest(&first).is_err());
    assert!(!folder.blobs.has(&Digest::of(b"0").to_string()));
    assert!(folder.blobs.has(&Digest::of(b"always").to_string()));
    let newest = folder.ids().pop().unwrap();
    scene.write("a", "x");
    assert_eq!(scene.restore(&newest)["failed"], json!([]));
}

#[test]
fn whoever_gives_up_stops_it() {
    let scene = Scene::new();
    scene.write("a", "x");
    let folder = scene.snapshots.folder(&scene.root()).unwrap();
    let going = Going(Arc::new(AtomicBool::new(true)));
    assert!(folder.take(&going).unwrap_err().is(code::CANCELLED));
}

/// What happens to a folder.
fn deeds() -> impl Strategy<Value = Vec<(u8, u8, u8)>> {
    proptest::collection::vec((0..6_u8, 0..8_u8, 0..4_u8), 0..24)
}

fn act(root: &Path, (deed, place, content): (u8, u8, u8)) {
    let path = root.join(["a", "b", "d/a", "d/b", "d/e/a", "f", "f/g", "l"][usize::from(place)]);
    let _ = match deed {
        0 | 1 => path
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&path, [content; 3])),
        2 => fs::remove_file(&path),
        3 => fs::remove_dir_all(&path),
        4 => fs::create_dir_all(&path),
        _ => symlink(["a", "d", "nowhere", ".."][usize::from(content)], &path),
    };
}

/// Every path with what is there.
fn picture(folder: &FolderSnapshots) -> BTreeMap<String, Item> {
    let scanned = scan::scan(
        &folder.root,
        &folder.all,
        None,
        &mut Seen::default(),
        &Scene::going(),
    );
    scanned.unwrap().items
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_to_a_folder_it_comes_back(before in deeds(), after in deeds()) {
        let scene = Scene::new();
        let folder = scene.snapshots.folder(&scene.root()).unwrap();
        before.into_iter().for_each(|deed| act(&scene.root(), deed));
        let id = scene.take();
        let then = picture(&folder);
        after.into_iter().for_each(|deed| act(&scene.root(), deed));
        let later = picture(&folder);
        let done = scene.restore(&id);
        prop_assert_eq!(&done["failed"], &json!([]));
        prop_assert_eq!(picture(&folder), then);
        scene.restore(done["undo"].as_str().unwrap());
        prop_assert_eq!(picture(&folder), later);
    }
}
