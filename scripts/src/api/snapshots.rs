//! `snapshot_files()`, `file_changes(id)`, `restore_files(id)`: the files of the session's folder as they
//! are, and going back to that.

use rhai::Engine;
use serde_json::{Value, json};

use super::ask::ask;

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("snapshot_files", || {
        ask("snapshot_files", "files.snapshot", &Value::Null)
    });
    engine.register_fn("file_changes", |id: &str| {
        ask("file_changes", "files.changes", &json!({ "id": id }))
    });
    engine.register_fn("restore_files", |id: &str| {
        ask("restore_files", "files.restore", &json!({ "id": id }))
    });
}
