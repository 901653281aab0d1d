//! `grep`: lines that match a regular expression (`extensions.md` §8.6). The arguments become a
//! [`Search`], which runs on the host's blocking pool.

mod search;

use std::path::PathBuf;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use pliant_sdk::Error;
use pliant_sdk::host::FileKind;
use pliant_sdk::tool::{Tool, ToolCtx, ToolResult, ToolSpec};
use serde_json::json;

use self::search::Search;
use crate::listing::{Listing, Words};
use crate::paths;

const DEFAULT_LIMIT: f64 = 100.0;
/// Lines around a match that are shown at most.
const MAX_CONTEXT: f64 = 1000.0;

/// The arguments.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GrepInput {
    /// Regular expression, or plain text with `literal`.
    pattern: String,
    /// File or directory to search; the working directory when left out.
    path: Option<String>,
    /// Search only files that fit this glob, e.g. `*.rs` or `src/**/*.ts`; `!` in front leaves them
    /// out.
    glob: Option<String>,
    /// Upper and lower case are the same.
    ignore_case: Option<bool>,
    /// The pattern is plain text.
    literal: Option<bool>,
    /// Lines to show before and after each match.
    context: Option<f64>,
    /// Most matching lines to show, 100 when left out.
    limit: Option<f64>,
}

pub(crate) struct Grep;

impl Tool for Grep {
    type Input = GrepInput;

    fn spec(&self) -> ToolSpec {
        let description = "Search the content of files for a pattern, line by line. Hidden files are \
            included, those that ignore files leave out are not. Shows path:line: text. At most 100 \
            matches or 50KB; long lines are cut after 500 characters.";
        ToolSpec {
            annotations: Some(json!({"readOnlyHint": true})),
            ..ToolSpec::new("grep", description).snippet("Search file contents for a pattern")
        }
        .inactive()
    }

    async fn execute(&self, input: GrepInput, ctx: ToolCtx) -> Result<ToolResult, Error> {
        let given = input.path.as_deref().unwrap_or(".");
        let root = paths::resolve(given, &ctx);
        let stat = ctx.host().stat(&root).await;
        let stat = stat.map_err(|e| paths::failure(given, e))?;
        if stat.kind == FileKind::Other {
            return Err(Error::invalid(format!(
                "{given} is neither a file nor a directory, so it cannot be searched."
            )));
        }
        let search = Search {
            matcher: matcher(&input)?,
            globs: globs(&root, input.glob.as_deref())?,
            is_directory: stat.kind == FileKind::Directory,
            root: PathBuf::from(root),
            context: lines(input.context),
            listing: Listing::new(input.limit.unwrap_or(DEFAULT_LIMIT)),
            ctx: ctx.clone(),
        };
        let listing = ctx.host().blocking(move || search.run()).await??;
        if ctx.cancelled() {
            return Err(Error::cancelled());
        }
        Ok(listing.finish(Words {
            empty: format!("No line in {given} matches {}.", input.pattern),
            results: "matches",
            limit_field: "matchLimitReached",
        }))
    }
}

fn lines(count: Option<f64>) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates at 0 and above"
    )]
    let lines = count.unwrap_or(0.0).min(MAX_CONTEXT) as usize;
    lines
}

fn matcher(input: &GrepInput) -> Result<RegexMatcher, Error> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .case_insensitive(input.ignore_case.unwrap_or(false))
        .fixed_strings(input.literal.unwrap_or(false));
    builder.build(&input.pattern).map_err(|e| {
        Error::invalid(format!(
            "The pattern cannot be searched for: {e}. For plain text set literal; a match never \
             spans lines."
        ))
    })
}

fn globs(root: &str, glob: Option<&str>) -> Result<Override, Error> {
    let mut builder = OverrideBuilder::new(root);
    let built = match glob {
        Some(glob) => builder
            .add(glob.strip_prefix("./").unwrap_or(glob))
            .map(drop),
        None => Ok(()),
    };
    built
        .and_then(|()| builder.build())
        .map_err(|e| Error::invalid(format!("glob is not a glob: {e}.")))
}

#[cfg(test)]
mod tests;
