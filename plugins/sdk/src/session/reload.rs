//! Loading plugins and scripts anew.

use serde_json::Value;

use super::Session;
use crate::error::Error;
use crate::event::SourceChange;

impl Session<'_> {
    /// Loads every plugin and script anew, as `/reload` does, and answers what became of each. For
    /// commands only, and the last thing that one does: its own code may be replaced by then, and every
    /// later question to the session is answered `stale`.
    ///
    /// # Errors
    /// As [`Session::info`]; `unavailable` in a handler or tool, and while a run or compaction is
    /// active.
    pub async fn reload(&self) -> Result<Vec<SourceChange>, Error> {
        self.host.call("session.reload", &Value::Null).await
    }
}
