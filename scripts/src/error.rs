//! Script errors as text for authors: `file:line:column: message`, the innermost position first,
//! then one line per call that led there, then a hint for mistakes that others made before.

use std::fmt::Write;

use pliant_sdk::Error;
use pliant_sdk::error::code;
use rhai::{Dynamic, EvalAltResult, ParseError, Position};

use crate::call::fail;
use crate::convert;
use crate::hint;
use crate::program::Program;

/// What a script threw, as opposed to what went wrong in it.
pub(crate) struct Thrown {
    pub(crate) message: String,
    pub(crate) code: Option<String>,
    pub(crate) details: Option<serde_json::Value>,
}

impl Thrown {
    /// Reads a thrown value: a text, a map with `message`, or anything.
    fn read(value: &Dynamic) -> Self {
        let field = |name: &str| {
            let map = value.as_map_ref().ok()?;
            map.get(name).filter(|field| !field.is_unit()).cloned()
        };
        let text = |field: Dynamic| convert::display(&field);
        Self {
            message: match field("message") {
                Some(message) => text(message),
                None if value.is_unit() => "the script threw nothing".to_owned(),
                None => convert::display(value),
            },
            code: field("code").map(text),
            details: field("details").and_then(|details| convert::to_typed(&details).ok()),
        }
    }
}

/// One step of the way to an error.
struct Frame {
    /// What was called; nothing for a file that was imported.
    function: Option<String>,
    /// The file it is in.
    file: String,
    called_at: Position,
}

/// An evaluation error taken apart.
pub(crate) struct Failure {
    cause: EvalAltResult,
    at: Position,
    frames: Vec<Frame>,
}

impl From<Box<EvalAltResult>> for Failure {
    fn from(error: Box<EvalAltResult>) -> Self {
        let mut frames = Vec::new();
        let mut cause = *error;
        loop {
            let (function, file, inner, called_at) = match cause {
                EvalAltResult::ErrorInFunctionCall(function, file, inner, at) => {
                    (Some(function), file, inner, at)
                }
                EvalAltResult::ErrorInModule(file, inner, at) => (None, file, inner, at),
                _ => break,
            };
            frames.push(Frame {
                function,
                file,
                called_at,
            });
            cause = *inner;
        }
        frames.reverse();
        let at = cause.take_position();
        Self { cause, at, frames }
    }
}

impl Failure {
    /// What the script threw, if it threw; misuse of a host function does not count.
    pub(crate) fn thrown(&self) -> Option<Thrown> {
        match &self.cause {
            EvalAltResult::ErrorRuntime(value, _) => {
                Some(Thrown::read(value)).filter(|t| t.code.as_deref() != Some(code::INVALID))
            }
            _ => None,
        }
    }

    /// The whole story.
    pub(crate) fn into_error(self, program: &Program) -> Error {
        let (kind, message, details) = match &self.cause {
            EvalAltResult::ErrorRuntime(value, _) => {
                let Thrown {
                    message,
                    code,
                    details,
                } = Thrown::read(value);
                (code, message, details)
            }
            other => (None, sentence(other), None),
        };
        let (position, file) = self.position();
        let mut text = place(self.file(file, program), position, &message);
        for (index, frame) in self.frames.iter().enumerate() {
            let caller = self.frames.get(index + 1);
            if frame.is_closure() && caller.is_none_or(|next| next.called_at == frame.called_at) {
                continue; // called by the host, or by the function of the next line
            }
            frame.write(self.file(index + 1, program), &mut text);
        }
        if let Some(hint) = hint::of_failure(program, &self.cause) {
            let _ = write!(text, "\n  hint: {hint}");
        }
        let mut error = Error::new(kind.unwrap_or_else(|| code::FAILED.to_owned()), text);
        error.details = details.map(Box::new);
        error
    }

    /// The innermost position known, and how many frames out; host functions called by host functions
    /// have none.
    fn position(&self) -> (Position, usize) {
        let frames = self.frames.iter().map(|frame| frame.called_at);
        std::iter::once(self.at)
            .chain(frames)
            .zip(0..)
            .find(|(position, _)| !position.is_none())
            .unwrap_or((Position::NONE, 0))
    }

    /// The file that is so many frames out.
    fn file<'a>(&'a self, frames_out: usize, program: &'a Program) -> &'a str {
        let frame = self.frames.get(frames_out);
        let file = frame.map(|frame| frame.file.as_str());
        file.filter(|file| !file.is_empty())
            .unwrap_or(program.name())
    }
}

impl Frame {
    fn is_closure(&self) -> bool {
        let function = self.function.as_deref();
        function.is_some_and(|function| function.starts_with("anon$"))
    }

    fn write(&self, file: &str, text: &mut String) {
        let (name, how) = match &self.function {
            None => (self.file.clone(), "imported"),
            Some(_) if self.is_closure() => ("a closure".to_owned(), "called"),
            Some(function) => (format!("`{function}`"), "called"),
        };
        let _ = match (self.called_at.line(), self.called_at.position()) {
            (Some(line), Some(column)) => {
                write!(text, "\n  in {name}, {how} at {file}:{line}:{column}")
            }
            _ => write!(text, "\n  in {name}"),
        };
    }
}

/// The cause without position.
fn sentence(cause: &EvalAltResult) -> String {
    match cause {
        EvalAltResult::ErrorDataTooLarge(what, _) => {
            format!("{what} is over the limit for scripts")
        }
        EvalAltResult::ErrorTerminated(why, _) => why.to_string(),
        other => other.to_string(),
    }
}

/// An error of the compiler.
pub(crate) fn from_parse(file: &str, source: &str, error: &ParseError) -> Error {
    let mut text = place(file, error.position(), &error.err_type().to_string());
    if let Some(hint) = hint::of_parse(source, error) {
        let _ = write!(text, "\n  hint: {hint}");
    }
    Error::invalid(text)
}

/// The same, thrown in the script that imports the text.
pub(crate) fn thrown_by_parser(source: &str, error: &ParseError) -> Box<EvalAltResult> {
    let mut message = error.err_type().to_string();
    if let Some(hint) = hint::of_parse(source, error) {
        let _ = write!(message, "\n  hint: {hint}");
    }
    let mut thrown = fail(message);
    thrown.set_position(error.position());
    thrown
}

fn place(file: &str, position: Position, message: &str) -> String {
    match (position.line(), position.position()) {
        (Some(line), Some(column)) => format!("{file}:{line}:{column}: {message}"),
        (Some(line), None) => format!("{file}:{line}: {message}"),
        _ => format!("{file}: {message}"),
    }
}
