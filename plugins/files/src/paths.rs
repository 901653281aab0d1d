//! Paths as a model writes them become absolute paths (`extensions.md` §8.1), and failures of the
//! host become sentences that name the path.

use pliant_sdk::error::code;
use pliant_sdk::{Error, ToolCtx};
use unicode_normalization::UnicodeNormalization;

/// Where a path argument points for this call.
pub(crate) fn resolve(path: &str, ctx: &ToolCtx) -> String {
    absolute(path, ctx.cwd(), home().as_deref())
}

/// Other spellings under which a file that was not found may exist: macOS writes a narrow no-break
/// space before AM and PM and a curly apostrophe into names of screenshots, and stores names
/// decomposed.
pub(crate) fn variants(path: &str) -> Vec<String> {
    let decomposed: String = path.nfd().collect();
    let mut variants = Vec::new();
    for variant in [
        narrow_before_am_pm(path),
        decomposed.clone(),
        path.replace('\'', "\u{2019}"),
        decomposed.replace('\'', "\u{2019}"),
    ] {
        if variant != path && !variants.contains(&variant) {
            variants.push(variant);
        }
    }
    variants
}

/// A failure of the host, with the path that the model named and what it may do next.
pub(crate) fn failure(path: &str, error: Error) -> Error {
    if error.is(code::CANCELLED) {
        return error;
    }
    let message = if error.is(code::NOT_FOUND) {
        format!("{path} does not exist. Check the path, or list its directory.")
    } else {
        format!("{path}: {}", error.message)
    };
    Error { message, ..error }
}

fn home() -> Option<String> {
    std::env::home_dir()?.into_os_string().into_string().ok()
}

fn absolute(path: &str, cwd: &str, home: Option<&str>) -> String {
    let path = path.strip_prefix('@').unwrap_or(path);
    let path: String = path
        .chars()
        .map(|c| if is_odd_space(c) { ' ' } else { c })
        .collect();
    let path = match (path.strip_prefix('~'), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            format!("{home}{rest}")
        }
        _ => path,
    };
    if path.starts_with('/') || std::path::Path::new(&path).is_absolute() {
        without_dots(&path)
    } else {
        without_dots(&format!("{cwd}/{path}"))
    }
}

/// Spaces that models copy from names and prose, but that a typed path rarely means.
fn is_odd_space(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

/// Takes out `.` and `..` by their spelling, as a shell's `cd` does.
fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    if cfg!(windows) {
        parts.join("/")
    } else {
        format!("/{}", parts.join("/"))
    }
}

fn narrow_before_am_pm(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for (at, c) in path.char_indices() {
        let next = path.get(at + 1..at + 4).unwrap_or_default();
        let narrow = c == ' ' && ["am.", "pm."].contains(&next.to_ascii_lowercase().as_str());
        out.push(if narrow { '\u{202f}' } else { c });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_resolved_as_a_model_means_them() {
        for (given, expected) in [
            ("a.txt", "/work/dir/a.txt"),
            ("./a.txt", "/work/dir/a.txt"),
            ("../b/../c", "/work/c"),
            ("../../../..", "/"),
            (".", "/work/dir"),
            ("", "/work/dir"),
            ("/etc//hosts/", "/etc/hosts"),
            ("@src/main.rs", "/work/dir/src/main.rs"),
            ("@@odd", "/work/dir/@odd"),
            ("@/abs", "/abs"),
            ("~", "/home/u"),
            ("~/x", "/home/u/x"),
            ("@~/x", "/home/u/x"),
            ("~other/x", "/work/dir/~other/x"),
            ("a\u{a0}b\u{202f}c\u{3000}d", "/work/dir/a b c d"),
        ] {
            assert_eq!(
                absolute(given, "/work/dir", Some("/home/u")),
                expected,
                "{given:?}"
            );
        }
        assert_eq!(absolute("~/x", "/w", None), "/w/~/x");
    }

    #[test]
    fn names_that_macos_gives_are_found_by_their_plain_spelling() {
        let am = variants("/d/Screenshot at 9.41.00 AM.png");
        assert_eq!(am, ["/d/Screenshot at 9.41.00\u{202f}AM.png"]);
        let both = variants("/d/Capture d'écran.png");
        assert_eq!(
            both,
            [
                "/d/Capture d'e\u{301}cran.png",
                "/d/Capture d\u{2019}écran.png",
                "/d/Capture d\u{2019}e\u{301}cran.png"
            ]
        );
        assert_eq!(variants("/plain"), Vec::<String>::new());
    }

    #[test]
    fn a_failure_names_the_path_and_keeps_its_code() {
        let error = failure("a.txt", Error::new(code::NOT_FOUND, "os error 2"));
        assert!(error.is(code::NOT_FOUND) && error.message.starts_with("a.txt does not exist."));
        let error = failure("a.txt", Error::new(code::IO, "permission denied"));
        assert_eq!(error.message, "a.txt: permission denied");
        assert_eq!(failure("a.txt", Error::cancelled()), Error::cancelled());
    }
}
