//! `ls`: the entries of one directory (`extensions.md` §8.8).

use pliant_sdk::Error;
use pliant_sdk::host::{DirEntry, FileKind};
use pliant_sdk::tool::{Tool, ToolCtx, ToolResult, ToolSpec};
use serde_json::json;

use crate::listing::{Listing, Words};
use crate::paths;

const DEFAULT_LIMIT: f64 = 500.0;

/// The arguments.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct LsInput {
    /// The directory; the working directory when left out.
    path: Option<String>,
    /// Most entries to show, 500 when left out.
    limit: Option<f64>,
}

pub(crate) struct Ls;

impl Tool for Ls {
    type Input = LsInput;

    fn spec(&self) -> ToolSpec {
        let description = "List a directory by name, hidden entries included. Directories end in /. \
            At most 500 entries or 50KB.";
        ToolSpec {
            annotations: Some(json!({"readOnlyHint": true})),
            ..ToolSpec::new("ls", description).snippet("List a directory")
        }
        .inactive()
    }

    async fn execute(&self, input: LsInput, ctx: ToolCtx) -> Result<ToolResult, Error> {
        let given = input.path.as_deref().unwrap_or(".");
        let path = paths::resolve(given, &ctx);
        let failure = |error| paths::failure(given, error);
        let stat = ctx.host().stat(&path).await.map_err(failure)?;
        if stat.kind != FileKind::Directory {
            return Err(Error::invalid(format!("{given} is not a directory.")));
        }
        let mut entries = ctx.host().list(&path).await.map_err(failure)?;
        entries.sort_by_cached_key(|entry| (entry.name.to_lowercase(), entry.name.clone()));

        let mut listing = Listing::new(input.limit.unwrap_or(DEFAULT_LIMIT));
        for line in entries.iter().filter_map(line) {
            if !listing.push(&line) {
                break;
            }
        }
        Ok(listing.finish(Words {
            empty: format!("{given} is empty."),
            results: "entries",
            limit_field: "entryLimitReached",
        }))
    }
}

/// Nothing for an entry that cannot be inspected.
fn line(entry: &DirEntry) -> Option<String> {
    let slash = if entry.kind? == FileKind::Directory {
        "/"
    } else {
        ""
    };
    Some(format!("{}{slash}", entry.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Dir;

    #[test]
    fn entries_are_sorted_without_regard_to_case_and_directories_have_a_slash() {
        // extensions §8.8
        let dir = Dir::with(&[("b", ""), ("A", ""), ("C/x", ""), (".dot", ""), ("a", "")]);
        assert_eq!(dir.text(&Ls, json!({})), ".dot\nA\na\nb\nC/");
        assert_eq!(dir.text(&Ls, json!({"path": "C"})), "x");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_counts_as_what_it_leads_to_and_one_to_nothing_is_skipped() {
        let dir = Dir::with(&[("d/x", "")]);
        std::os::unix::fs::symlink("d", dir.path.join("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path.join("broken")).unwrap();
        assert_eq!(dir.text(&Ls, json!({})), "d/\nlink/");
    }

    #[test]
    fn an_empty_directory_has_a_placeholder() {
        let dir = Dir::new();
        assert_eq!(dir.text(&Ls, json!({})), ". is empty.");
        assert_eq!(dir.details(&Ls, json!({})), json!(null));
    }

    #[test]
    fn exactly_the_limit_is_whole_and_one_more_is_noted() {
        let dir = Dir::with(&[("a", ""), ("b", ""), ("c", "")]);
        let whole = dir.run(&Ls, json!({"limit": 3})).unwrap();
        assert_eq!(whole, ToolResult::text("a\nb\nc"));
        let text = dir.text(&Ls, json!({"limit": 2}));
        assert!(
            text.starts_with("a\nb\n\n[There are more than 2 entries"),
            "{text}"
        );
        let details = dir.details(&Ls, json!({"limit": 2}));
        assert_eq!(details, json!({"entryLimitReached": 2}));
    }

    #[test]
    fn a_listing_over_the_byte_limit_is_cut_between_names() {
        let dir = Dir::new();
        for number in 0..400 {
            dir.put(&format!("{number:0>200}"), b"");
        }
        let result = dir.run(&Ls, json!({})).unwrap();
        let cut = &result.details.unwrap()["truncation"];
        assert_eq!(cut["truncatedBy"], "bytes");
        // 201 bytes each, the last without a line feed
        assert_eq!(cut["outputLines"], (50 * 1024 + 1) / 201);
        assert_eq!(cut["totalLines"], 400);
    }

    #[test]
    fn what_is_no_directory_is_named() {
        let dir = Dir::with(&[("a", "")]);
        assert_eq!(
            dir.error(&Ls, json!({"path": "a"})),
            "a is not a directory."
        );
        let missing = dir.error(&Ls, json!({"path": "x"}));
        assert!(missing.starts_with("x does not exist."), "{missing}");
    }
}
