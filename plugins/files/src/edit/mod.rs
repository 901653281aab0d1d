//! `edit`: replaces pieces of a file (`extensions.md` §8.4).
//!
//! The way of a call: [`source`] looks at the bytes as lines, [`matching`] finds where each piece
//! is (with [`fuzzy`] when it is not there to the letter, and [`nearest`] to explain when it is not
//! there at all), [`splice`] makes the new bytes, [`diff`] describes the change. All of that is
//! plain functions; the file itself is locked from before it is read until it is written.

mod source;

mod fuzzy;
mod matching;
mod nearest;

mod diff;
mod splice;

use pliant_sdk::tool::{Tool, ToolCtx, ToolResult, ToolSpec};
use pliant_sdk::{Error, error::code};
use serde_json::{Value, json};

use self::diff::Diff;
use self::source::Source;
use crate::paths;
use pliant_sdk::truncation::size;

/// Largest file that is edited; it is in memory several times meanwhile.
const MAX_FILE: usize = 64 * 1024 * 1024;

/// The arguments.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct EditInput {
    /// The file, absolute or relative to the working directory.
    path: String,
    /// What to replace. Each piece is looked up in the file as it is now, so edits do not see each
    /// other; they must not overlap.
    #[schemars(length(min = 1))]
    edits: Vec<Replace>,
}

/// One replacement.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Replace {
    /// Text of the file, to the letter. It must occur exactly once: add neighbouring lines until it
    /// does.
    pub(crate) old_text: String,
    /// What to put there instead.
    pub(crate) new_text: String,
}

pub(crate) struct Edit;

impl Tool for Edit {
    type Input = EditInput;

    fn spec(&self) -> ToolSpec {
        let description = "Change a file by replacing pieces of its text. Several changes of one file \
            go into one call. The file's own line endings are kept.";
        ToolSpec {
            annotations: Some(json!({"destructiveHint": true})),
            ..ToolSpec::new("edit", description)
                .snippet("Replace pieces of a file's text")
                .guideline(
                    "Give edit the smallest oldText that occurs once, copied from what read showed, \
                     and put all changes of a file into one call.",
                )
                .prepares()
        }
    }

    fn prepare(&self, arguments: Value) -> Value {
        with_edits_as_list(arguments)
    }

    async fn execute(&self, input: EditInput, ctx: ToolCtx) -> Result<ToolResult, Error> {
        let EditInput { path: given, edits } = input;
        if edits.is_empty() {
            return Err(Error::invalid("edits is empty. Give at least one."));
        }
        let path = paths::resolve(&given, &ctx);
        let failure = |error| paths::failure(&given, error);
        let _lock = ctx.host().lock_file(&path).await.map_err(failure)?;
        let old = read(&path, &given, &ctx).await?;
        let (count, name) = (edits.len(), given.clone());
        let planned = ctx
            .host()
            .blocking(move || plan(&name, &old, &edits))
            .await?;
        let (new, diff) = planned?;
        if ctx.cancelled() {
            return Err(Error::cancelled());
        }
        ctx.host()
            .write(&path, false, &new)
            .await
            .map_err(failure)?;
        let pieces = if count == 1 { "piece" } else { "pieces" };
        let text = format!("Replaced {count} {pieces} of {given}.");
        Ok(ToolResult::text(text).with_details(json!(diff)))
    }
}

async fn read(path: &str, given: &str, ctx: &ToolCtx) -> Result<Vec<u8>, Error> {
    let failure = |error: Error| match error.code.as_str() {
        code::NOT_FOUND => Error {
            message: format!("{given} does not exist. Check the path; new files are for write."),
            ..error
        },
        _ => paths::failure(given, error),
    };
    let mut stream = ctx.host().read(path, 0).await.map_err(failure)?;
    let mut bytes = Vec::new();
    while let Some(chunk) = stream.next().await {
        bytes.extend_from_slice(&chunk.map_err(failure)?);
        if ctx.cancelled() {
            return Err(Error::cancelled());
        }
        if bytes.len() > MAX_FILE {
            let limit = size(MAX_FILE);
            return Err(Error::failed(format!(
                "{given} is larger than {limit}. Change it with a shell command."
            )));
        }
    }
    Ok(bytes)
}

/// The file's new bytes and what is different.
fn plan(path: &str, old: &[u8], edits: &[Replace]) -> Result<(Vec<u8>, Diff), Error> {
    let source = Source::new(old);
    let mistake = |m: matching::Mistake| Error::invalid(m.message(path, edits.len()));
    let pieces = matching::locate(&source, edits).map_err(mistake)?;
    let new = splice::apply(&source, &pieces);
    if new == old {
        return Err(Error::invalid(format!(
            "The edits leave {path} as it is: what they put in is there already."
        )));
    }
    let diff = diff::describe(path, &source.text(), &Source::new(&new).text());
    Ok((new, diff))
}

/// Accepts shapes that models and older sessions use: the list as a JSON string, one edit without a
/// list, and `oldText` and `newText` beside the list or in its place.
fn with_edits_as_list(mut arguments: Value) -> Value {
    let Some(object) = arguments.as_object_mut() else {
        return arguments;
    };
    if let Some(Value::String(text)) = object.get("edits")
        && let Ok(parsed @ (Value::Array(_) | Value::Object(_))) = serde_json::from_str(text)
    {
        object.insert("edits".to_owned(), parsed);
    }
    if let Some(edits @ Value::Object(_)) = object.get_mut("edits") {
        *edits = Value::Array(vec![edits.take()]);
    }
    let is_text = |field: &str| object.get(field).is_some_and(Value::is_string);
    let has_list = object
        .get("edits")
        .is_none_or(|e| e.is_array() || e.is_null());
    if is_text("oldText") && is_text("newText") && has_list {
        let (old, new) = (
            object.shift_remove("oldText"),
            object.shift_remove("newText"),
        );
        let edits = object.entry("edits").or_insert(Value::Null);
        if edits.is_null() {
            *edits = Value::Array(Vec::new());
        }
        if let Value::Array(list) = edits {
            list.push(json!({"oldText": old, "newText": new}));
        }
    }
    arguments
}

#[cfg(test)]
mod tests;
