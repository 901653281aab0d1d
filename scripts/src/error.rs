//! Script errors as text for authors: `file:line:column: message`, the innermost position first,
//! then one line per call that led there, then a hint for mistakes that others made before.

use std::fmt::Write;

use pliant_sdk::Error;
use pliant_sdk::error::code;
use rhai::{Dynamic, EvalAltResult, ParseError, Position};

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
    function: String,
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
        while let EvalAltResult::ErrorInFunctionCall(function, _, inner, called_at) = cause {
            frames.push(Frame {
                function,
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
        let mut text = place(program.name(), self.position(), &message);
        for (index, frame) in self.frames.iter().enumerate() {
            let caller = self.frames.get(index + 1);
            if frame.is_closure() && caller.is_none_or(|next| next.called_at == frame.called_at) {
                continue; // called by the host, or by the function of the next line
            }
            frame.write(program.name(), &mut text);
        }
        if let Some(hint) = hint::of_failure(program, &self.cause) {
            let _ = write!(text, "\n  hint: {hint}");
        }
        let mut error = Error::new(kind.unwrap_or_else(|| code::FAILED.to_owned()), text);
        error.details = details.map(Box::new);
        error
    }

    /// The innermost position known; host functions called by host functions have none.
    fn position(&self) -> Position {
        let frames = self.frames.iter().map(|frame| frame.called_at);
        std::iter::once(self.at)
            .chain(frames)
            .find(|position| !position.is_none())
            .unwrap_or(Position::NONE)
    }
}

impl Frame {
    fn is_closure(&self) -> bool {
        self.function.starts_with("anon$")
    }

    fn write(&self, file: &str, text: &mut String) {
        let name = match self.is_closure() {
            true => "a closure".to_owned(),
            false => format!("`{}`", self.function),
        };
        let _ = match (self.called_at.line(), self.called_at.position()) {
            (Some(line), Some(column)) => {
                write!(text, "\n  in {name}, called at {file}:{line}:{column}")
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

fn place(file: &str, position: Position, message: &str) -> String {
    match (position.line(), position.position()) {
        (Some(line), Some(column)) => format!("{file}:{line}:{column}: {message}"),
        (Some(line), None) => format!("{file}:{line}: {message}"),
        _ => format!("{file}: {message}"),
    }
}
