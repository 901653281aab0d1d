//! Going back to a snapshot: the present is kept first, so that going back can itself be undone; then
//! what was not there is removed, and what was there is written. What fails is told, and the rest done.
//! Nothing is written or removed through a symbolic link.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use pliant_sdk::Error;
use serde_json::{Value, json};

use super::blobs::beside;
use super::{Difference, FolderSnapshots, Going, Item, Manifest, differences, told};

/// What was done.
#[derive(Default)]
struct Done {
    written: usize,
    removed: usize,
    /// What was not, by path, with the reason.
    failed: BTreeMap<String, String>,
}

impl FolderSnapshots {
    pub(super) fn restore(&self, id: &str, going: &Going) -> Result<Value, Error> {
        let _shared = self.lock()?;
        let then = self.manifest(id)?;
        let (undo, now) = self.keep_present(going)?;
        let mut done = Done::default();
        self.remove_added(&then, &now, going, &mut done)?;
        for (path, item) in &then.items {
            going.check()?;
            if now.items.get(path) != Some(item) {
                match self.put(path, item) {
                    Ok(()) if *item == Item::Folder => {}
                    Ok(()) => done.written += 1,
                    Err(cause) => drop(done.failed.insert(path.clone(), cause.to_string())),
                }
            }
        }
        Ok(json!({
            "undo": undo,
            "written": done.written,
            "removed": done.removed,
            "failed": told(&done.failed),
        }))
    }

    /// Files first, then the folders that are empty by it, the innermost first.
    fn remove_added(
        &self,
        then: &Manifest,
        now: &Manifest,
        going: &Going,
        done: &mut Done,
    ) -> Result<(), Error> {
        for (path, how) in differences(then, now) {
            going.check()?;
            let is_folder_now = now.items.get(&path) == Some(&Item::Folder);
            if how == Difference::Removed || is_folder_now {
                continue;
            }
            // What is changed into a file or link of another content is replaced in one step.
            if how == Difference::Changed && then.items.get(&path) != Some(&Item::Folder) {
                continue;
            }
            match self.inside(&path).and_then(fs::remove_file) {
                Ok(()) => done.removed += 1,
                Err(cause) => drop(done.failed.insert(path, cause.to_string())),
            }
        }
        let folders = now.items.iter().rev();
        for (path, item) in folders {
            let stays = then.items.get(path) == Some(&Item::Folder) || then.leaves_out(path);
            if *item == Item::Folder && !stays {
                // One that is not empty holds what is in no snapshot.
                let _ = self.inside(path).and_then(fs::remove_dir);
            }
        }
        Ok(())
    }

    fn put(&self, path: &str, item: &Item) -> io::Result<()> {
        let place = self.inside(path)?;
        if *item == Item::Folder {
            return match place.is_dir() {
                true => Ok(()),
                false => fs::create_dir_all(&place),
            };
        }
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder)?;
        }
        let begun = beside(&place);
        let written = match item {
            Item::File { hash, mode, .. } => self.blobs.read(hash).and_then(|content| {
                fs::write(&begun, content)?;
                fs::set_permissions(&begun, Permissions::from_mode(*mode))
            }),
            Item::Link { target } => std::os::unix::fs::symlink(target, &begun),
            Item::Folder => Ok(()),
        };
        let placed = written.and_then(|()| fs::rename(&begun, &place));
        if placed.is_err() {
            let _ = fs::remove_file(&begun);
        }
        placed
    }

    /// A path of a snapshot, if it does not lead out of the folder: by `..`, which none of ours has, or by a
    /// link in its way.
    fn inside(&self, path: &str) -> io::Result<PathBuf> {
        let refused = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why.to_owned()));
        let relative = Path::new(path);
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        if path.is_empty() || !relative.components().all(plain) {
            return refused("its path leads out of the folder");
        }
        let mut folder = self.root.clone();
        for part in relative.parent().unwrap_or(Path::new("")).components() {
            folder.push(part);
            match fs::symlink_metadata(&folder) {
                Ok(metadata) if metadata.is_symlink() => {
                    return refused("a symbolic link stands in its way");
                }
                _ => {}
            }
        }
        Ok(self.root.join(relative))
    }
}
