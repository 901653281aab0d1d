//! How `find` and `grep` walk directories: in the order of names, so that the same question has the
//! same answer; hidden files too; not what ignore files leave out, and not git's own directory.

use std::path::Path;

use ignore::WalkBuilder;

/// Sets what both tools have in common.
pub(crate) fn sorted(builder: &mut WalkBuilder) -> &mut WalkBuilder {
    builder
        .hidden(false)
        .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git")
        .sort_by_file_name(std::ffi::OsStr::cmp)
}

/// A relative path with slashes.
pub(crate) fn posix(path: &Path) -> String {
    let text = path.to_string_lossy();
    if cfg!(windows) {
        text.replace('\\', "/")
    } else {
        text.into_owned()
    }
}
