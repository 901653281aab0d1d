//! The session as a file to read or to pass on (`interfaces.md` §13).

use std::path::{Path, PathBuf};

use super::Session;
use crate::export::{self, ExportError, View};

impl Session {
    /// Writes the session as one page of HTML, or its active branch if `path` ends in `.jsonl`, over
    /// what is there. Relative paths are those of the session's directory, where the page is called
    /// after the session's file unless `path` names it. Answers that path.
    ///
    /// # Errors
    /// [`ExportError`]; what was there is then as it was.
    pub async fn export_html(&self, path: Option<&Path>) -> Result<PathBuf, ExportError> {
        let (view, name) = {
            let tree = self.0.tree();
            let file = tree.path().ok_or(ExportError::InMemory)?;
            if !tree.is_on_disk() {
                return Err(ExportError::Nothing);
            }
            (View::of(&tree), export::page_name(file))
        };
        let path = path.map_or(name, Path::to_owned);
        let file = self.0.cwd.join(&path);
        let work = move || export::to_file(&view, &file);
        // A large session takes its time, and a run may go on meanwhile.
        match tokio::task::spawn_blocking(work).await {
            Ok(written) => written.map(|()| path),
            Err(_) => Err(ExportError::Stopped),
        }
    }
}
