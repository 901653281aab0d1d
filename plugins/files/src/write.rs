//! `write`: a file with exactly this content (`extensions.md` §8.5).

use pliant_sdk::Error;
use pliant_sdk::tool::{Tool, ToolCtx, ToolResult, ToolSpec};
use serde_json::json;

use crate::paths;

/// The arguments.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct WriteInput {
    /// The file, absolute or relative to the working directory.
    path: String,
    /// The whole new content.
    content: String,
}

pub(crate) struct Write;

impl Tool for Write {
    type Input = WriteInput;

    fn spec(&self) -> ToolSpec {
        let description = "Create a file, or replace everything in it. Directories that are missing \
            are made.";
        ToolSpec {
            annotations: Some(json!({"destructiveHint": true, "idempotentHint": true})),
            ..ToolSpec::new("write", description)
                .snippet("Create a file or replace all of its content")
                .guideline("Use write for new files and full rewrites; small changes are for edit.")
        }
    }

    async fn execute(&self, input: WriteInput, ctx: ToolCtx) -> Result<ToolResult, Error> {
        let path = paths::resolve(&input.path, &ctx);
        let failure = |error| paths::failure(&input.path, error);
        let _lock = ctx.host().lock_file(&path).await.map_err(failure)?;
        if ctx.cancelled() {
            return Err(Error::cancelled());
        }
        let content = input.content.as_bytes();
        ctx.host()
            .write(&path, true, content)
            .await
            .map_err(failure)?;
        let bytes = content.len();
        Ok(ToolResult::text(format!(
            "Wrote {bytes} bytes to {}.",
            input.path
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Dir;

    #[test]
    fn a_file_gets_exactly_the_content_and_its_directories() {
        // extensions §8.5
        let dir = Dir::new();
        let content = "\u{feff}a\r\nb\rc\n";
        let text = dir.text(&Write, json!({"path": "x/y/a.txt", "content": content}));
        assert_eq!(text, "Wrote 10 bytes to x/y/a.txt.");
        assert_eq!(dir.get("x/y/a.txt"), content.as_bytes());
    }

    #[test]
    fn an_existing_file_is_replaced() {
        let dir = Dir::with(&[("a", "much longer than before")]);
        dir.text(&Write, json!({"path": "a", "content": ""}));
        assert_eq!(dir.get("a"), b"");
    }

    #[test]
    fn the_file_is_locked_for_the_whole_operation() {
        // extensions §8.1, file mutation queue
        let dir = Dir::new();
        dir.text(&Write, json!({"path": "a", "content": "x"}));
        assert_eq!(dir.log(), ["lock a", "write a", "unlock"]);
    }

    #[test]
    fn an_abort_before_writing_writes_nothing_and_unlocks() {
        let mut dir = Dir::with(&[("a", "old")]);
        dir.cancel_at = "lock";
        let error = dir.run(&Write, json!({"path": "a", "content": "new"}));
        assert_eq!(error, Err(Error::cancelled()));
        assert_eq!(dir.get("a"), b"old");
        assert_eq!(dir.log(), ["lock a", "unlock"]);
    }

    #[test]
    fn a_failure_names_the_path() {
        let dir = Dir::with(&[("d/x", "")]);
        let error = dir.error(&Write, json!({"path": "d", "content": ""}));
        assert!(error.starts_with("d: "), "{error}");
    }
}
