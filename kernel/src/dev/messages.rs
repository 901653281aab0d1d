//! What cargo says on its standard output with `--message-format=json`: one object a line.

use std::fmt;

use serde::Deserialize;

/// An error of the compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompilerError {
    /// The file, as the compiler names it: from the folder of the workspace.
    pub file: String,
    /// From 1; 0 where the error has no place.
    pub line: u64,
    /// From 1; 0 where the error has no place.
    pub column: u64,
    /// What is wrong, in a line.
    pub message: String,
    /// All of it, as the compiler would print it.
    pub rendered: String,
}

impl fmt::Display for CompilerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            column,
            message,
            ..
        } = self;
        match line {
            0 => write!(f, "{message}"),
            _ => write!(f, "{file}:{line}:{column}: {message}"),
        }
    }
}

#[derive(Deserialize)]
struct Line {
    reason: String,
    message: Option<Diagnostic>,
}

#[derive(Deserialize)]
struct Diagnostic {
    level: String,
    message: String,
    #[serde(default)]
    spans: Vec<Span>,
    #[serde(default)]
    rendered: Option<String>,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    line_start: u64,
    column_start: u64,
    is_primary: bool,
}

/// The error in a line, if there is one. That so many errors were found is none of its own.
pub(super) fn error_in(line: &str) -> Option<CompilerError> {
    let line: Line = serde_json::from_str(line).ok()?;
    let diagnostic = line.message.filter(|_| line.reason == "compiler-message")?;
    if !diagnostic.level.starts_with("error") {
        return None;
    }
    let span = diagnostic.spans.iter().find(|span| span.is_primary);
    let is_summary = span.is_none() && diagnostic.message.starts_with("aborting due to");
    (!is_summary).then(|| CompilerError {
        file: span.map(|span| span.file_name.clone()).unwrap_or_default(),
        line: span.map_or(0, |span| span.line_start),
        column: span.map_or(0, |span| span.column_start),
        message: diagnostic.message.clone(),
        rendered: diagnostic.rendered.clone().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_have_their_place_and_everything_else_is_passed_by() {
        let said = |level: &str, message: &str, spans| {
            json!({"reason": "compiler-message", "message": {
                "level": level, "message": message, "spans": spans, "rendered": "all of it"}})
        };
        let spans = json!([
            {"file_name": "src/other.rs", "line_start": 1, "column_start": 1, "is_primary": false},
            {"file_name": "src/lib.rs", "line_start": 12, "column_start": 5, "is_primary": true},
        ]);
        let error = error_in(&said("error", "expected `;`", spans.clone()).to_string()).unwrap();
        assert_eq!(error.to_string(), "src/lib.rs:12:5: expected `;`");
        assert_eq!(error.rendered, "all of it");
        for other in [
            said("warning", "unused", spans).to_string(),
            said("error", "aborting due to 2 previous errors", json!([])).to_string(),
            json!({"reason": "build-finished", "success": false}).to_string(),
            "no JSON".to_owned(),
        ] {
            assert_eq!(error_in(&other), None, "{other}");
        }
        let placeless = said("error: internal compiler error", "no idea", json!([]));
        assert_eq!(
            error_in(&placeless.to_string()).unwrap().to_string(),
            "no idea"
        );
    }
}
