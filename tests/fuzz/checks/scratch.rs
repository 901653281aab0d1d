//! A folder for the files of one fuzzing process, in memory where the system offers that.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Calls `f` with the folder. What is left in it is gone with the next boot.
pub fn with_folder(f: impl FnOnce(&Path)) {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    f(FOLDER.get_or_init(|| {
        let memory = PathBuf::from("/dev/shm");
        let parent = if memory.is_dir() {
            memory
        } else {
            std::env::temp_dir()
        };
        let folder = parent.join(format!("pliant-fuzz-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the folder for temporary files is writable");
        folder
    }))
}
