//! `find`: paths that fit a glob pattern (`extensions.md` §8.7), walked in process on the host's
//! blocking pool.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;
use pliant_sdk::Error;
use pliant_sdk::host::FileKind;
use pliant_sdk::tool::{Tool, ToolCtx, ToolResult, ToolSpec};
use serde_json::json;

use crate::listing::{Listing, Words};
use crate::{paths, walk};

const DEFAULT_LIMIT: f64 = 1000.0;

/// The arguments.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct FindInput {
    /// Glob, e.g. `*.rs`, `src/**/mod.rs`. Without a slash it is matched against names in every
    /// directory; with one, against the path from the searched directory.
    pattern: String,
    /// The directory to search; the working directory when left out.
    path: Option<String>,
    /// Most paths to show, 1000 when left out.
    limit: Option<f64>,
}

pub(crate) struct Find;

impl Tool for Find {
    type Input = FindInput;

    fn spec(&self) -> ToolSpec {
        let description = "Find files and directories whose name or path fits a glob. Hidden ones \
            are included, those that ignore files leave out are not. Paths are relative to the \
            searched directory; directories end in /. At most 1000 paths or 50KB.";
        ToolSpec {
            annotations: Some(json!({"readOnlyHint": true})),
            ..ToolSpec::new("find", description).snippet("Find files by a glob pattern")
        }
        .inactive()
    }

    async fn execute(&self, input: FindInput, ctx: ToolCtx) -> Result<ToolResult, Error> {
        let given = input.path.as_deref().unwrap_or(".");
        let root = paths::resolve(given, &ctx);
        let stat = ctx.host().stat(&root).await;
        if stat.map_err(|e| paths::failure(given, e))?.kind != FileKind::Directory {
            return Err(Error::invalid(format!("{given} is not a directory.")));
        }
        let pattern = Pattern::new(&input.pattern, &root)?;
        let mut listing = Listing::new(input.limit.unwrap_or(DEFAULT_LIMIT));
        let watch = ctx.clone();
        let listing = ctx.host().blocking(move || {
            search(&root, &pattern, &mut listing, &watch);
            listing
        });
        let listing = listing.await?;
        if ctx.cancelled() {
            return Err(Error::cancelled());
        }
        Ok(listing.finish(Words {
            empty: format!("Nothing in {given} fits {}.", input.pattern),
            results: "results",
            limit_field: "resultLimitReached",
        }))
    }
}

/// A glob and what it is matched against.
struct Pattern {
    glob: GlobMatcher,
    whole_path: bool,
}

impl Pattern {
    fn new(given: &str, root: &str) -> Result<Self, Error> {
        let pattern = given.strip_prefix("./").unwrap_or(given);
        // An absolute pattern under the searched directory is meant from there.
        let inside = pattern.strip_prefix(root).filter(|p| p.starts_with('/'));
        let pattern = inside.unwrap_or(pattern);
        let glob = GlobBuilder::new(pattern.strip_prefix('/').unwrap_or(pattern))
            .literal_separator(true)
            .case_insensitive(!pattern.chars().any(char::is_uppercase))
            .build()
            .map_err(|e| Error::invalid(format!("The pattern is not a glob: {e}.")))?;
        Ok(Self {
            glob: glob.compile_matcher(),
            whole_path: pattern.contains('/'),
        })
    }

    fn fits(&self, relative: &Path) -> bool {
        match relative.file_name() {
            Some(name) if !self.whole_path => self.glob.is_match(name),
            _ => self.glob.is_match(relative),
        }
    }
}

fn search(root: &str, pattern: &Pattern, listing: &mut Listing, ctx: &ToolCtx) {
    // Ignore files count outside git repositories too.
    let walk = walk::sorted(WalkBuilder::new(root).require_git(false)).build();
    for entry in walk.filter_map(Result::ok) {
        if ctx.cancelled() {
            return;
        }
        let Ok(relative) = entry.path().strip_prefix(root) else {
            continue;
        };
        if entry.depth() == 0 || !pattern.fits(relative) {
            continue;
        }
        let mut line = walk::posix(relative);
        if entry.file_type().is_some_and(|kind| kind.is_dir()) {
            line.push('/');
        }
        if !listing.push(&line) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Dir;

    fn check(files: &[&str], pattern: &str, expected: &[&str]) {
        let files: Vec<_> = files.iter().map(|name| (*name, "")).collect();
        let dir = Dir::with(&files);
        let text = dir.text(&Find, json!({"pattern": pattern}));
        match expected {
            [] => assert_eq!(text, format!("Nothing in . fits {pattern}.")),
            _ => assert_eq!(text.lines().collect::<Vec<_>>(), expected, "{pattern}"),
        }
    }

    #[test]
    fn a_pattern_without_a_slash_fits_names_at_any_depth() {
        // extensions §8.7
        let files = ["a.rs", "x/b.rs", "x/y/c.rs", "x/y/c.txt", ".h/d.rs"];
        check(&files, "*.rs", &[".h/d.rs", "a.rs", "x/b.rs", "x/y/c.rs"]);
        check(&files, "*.{txt,md}", &["x/y/c.txt"]);
        check(&files, "y", &["x/y/"]);
        check(&files, "*.go", &[]);
    }

    #[test]
    fn a_pattern_with_a_slash_is_anchored() {
        let files = ["a.rs", "src/a.rs", "src/m/a.rs", "t/src/a.rs"];
        check(&files, "src/*.rs", &["src/a.rs"]);
        check(&files, "./src/*.rs", &["src/a.rs"]);
        check(&files, "/src/*.rs", &["src/a.rs"]);
        check(&files, "src/**/*.rs", &["src/a.rs", "src/m/a.rs"]);
        check(&files, "**/src/*.rs", &["src/a.rs", "t/src/a.rs"]);
        check(
            &files,
            "**/a.rs",
            &["a.rs", "src/a.rs", "src/m/a.rs", "t/src/a.rs"],
        );
    }

    #[test]
    fn an_absolute_pattern_under_the_directory_is_meant_from_there() {
        let dir = Dir::with(&[("src/a.rs", "")]);
        let pattern = format!("{}/src/*.rs", dir.path.display());
        assert_eq!(dir.text(&Find, json!({"pattern": pattern})), "src/a.rs");
    }

    #[test]
    fn only_a_pattern_in_lower_case_disregards_case() {
        let files = ["readme.md", "sub/README.md"];
        check(&files, "readme.md", &["readme.md", "sub/README.md"]);
        check(&files, "README.md", &["sub/README.md"]);
    }

    #[test]
    fn ignore_files_count_outside_repositories_and_hidden_files_are_found() {
        let dir = Dir::with(&[
            (".gitignore", "*.log\nbuild/\n"),
            ("sub/.ignore", "b.txt\n"),
            ("a.log", ""),
            ("build/x.txt", ""),
            ("sub/b.txt", ""),
            ("sub/.c.txt", ""),
            (".git/d.txt", ""),
        ]);
        assert_eq!(
            dir.text(&Find, json!({"pattern": "*.{txt,log}"})),
            "sub/.c.txt"
        );
    }

    #[test]
    fn exactly_the_limit_is_whole_and_one_more_is_noted() {
        let dir = Dir::with(&[("a", ""), ("b", ""), ("c", "")]);
        let whole = dir.run(&Find, json!({"pattern": "*", "limit": 3})).unwrap();
        assert_eq!(whole, ToolResult::text("a\nb\nc"));
        let arguments = json!({"pattern": "*", "limit": 2});
        let text = dir.text(&Find, arguments.clone());
        assert!(
            text.starts_with("a\nb\n\n[There are more than 2 results"),
            "{text}"
        );
        assert_eq!(
            dir.details(&Find, arguments),
            json!({"resultLimitReached": 2})
        );
    }

    #[test]
    fn paths_are_relative_to_the_searched_directory() {
        let dir = Dir::with(&[("x/y/a", ""), ("b", "")]);
        assert_eq!(
            dir.text(&Find, json!({"pattern": "*", "path": "x"})),
            "y/\ny/a"
        );
    }

    #[test]
    fn mistakes_are_named() {
        let dir = Dir::with(&[("a", "")]);
        let error = |arguments| dir.error(&Find, arguments);
        assert!(error(json!({"pattern": "a["})).starts_with("The pattern is not a glob"));
        assert_eq!(
            error(json!({"pattern": "a", "path": "a"})),
            "a is not a directory."
        );
        assert!(error(json!({"pattern": "a", "path": "x"})).starts_with("x does not exist"));
    }

    #[test]
    fn an_abort_ends_the_walk() {
        let mut dir = Dir::with(&[("a", "")]);
        dir.cancel_at = "stat";
        assert_eq!(
            dir.run(&Find, json!({"pattern": "*"})),
            Err(Error::cancelled())
        );
    }
}
