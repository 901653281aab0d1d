//! Scripts line by line, for trying things out: what was defined stays, and what was registered counts
//! at once. It is a source of the registry like any script, and what is typed is run as a command of it.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use pliant_kernel::registry::{Contribution, Generation, Kind, Rank, Source};
use pliant_sdk::Error;
use pliant_sdk::host::BoxFuture;
use pliant_sdk::plugin::Invocation;
use rhai::{LexError, ParseErrorType, Scope};
use serde_json::{Value, json};

use crate::api::Ctx;
use crate::call::{Call, Phase};
use crate::contribution::{Handler, Registration, Running};
use crate::convert;
use crate::engine::Profile;
use crate::error::Failure;
use crate::extension::{Limits, on_script_thread};
use crate::program::Program;

/// The command that runs what is typed.
pub const EVAL: &str = "repl-eval";

const NAME: &str = "repl";

/// What was typed so far.
pub struct Repl {
    source: Source,
    program: ArcSwap<Program>,
    variables: Arc<Mutex<Scope<'static>>>,
    said: Arc<Mutex<Option<Result<Option<String>, Error>>>>,
}

impl std::fmt::Debug for Repl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Repl")
    }
}

/// Runs as part of [`Repl::invoke`]; the registry only has to know its name.
struct Evaluates;

impl Handler for Evaluates {
    fn run(&self, op: &str, _: &[u8], _: &Running<'_>) -> Result<Vec<u8>, Error> {
        Err(Error::unsupported(&format!("the repl operation \"{op}\"")))
    }
}

impl Repl {
    /// One in which nothing was typed yet.
    ///
    /// # Errors
    /// Never, unless the language changes: an empty script is none any more.
    pub fn new() -> Result<Arc<Self>, Error> {
        let program = Program::compile(NAME, None, "", Profile::Extension)?;
        program.contributed().add([Registration {
            kind: Kind::Command,
            name: EVAL.to_owned(),
            spec: json!({"name": EVAL, "description": "Runs what is typed."}),
            handler: Arc::new(Evaluates),
        }])?;
        Ok(Arc::new(Self {
            source: Source::inline(NAME, Rank::CommandLine),
            program: ArcSwap::from_pointee(program),
            variables: Arc::default(),
            said: Arc::default(),
        }))
    }

    /// Whether a text could become a script by more lines.
    #[must_use]
    pub fn is_unfinished(text: &str) -> bool {
        let Err(error) = Profile::Extension.engine().compile(text) else {
            return false;
        };
        let lines = text.lines().count();
        let at_end = error.position().line().is_none_or(|line| line >= lines);
        match error.err_type() {
            ParseErrorType::UnexpectedEOF => true,
            ParseErrorType::BadInput(LexError::UnterminatedString) => {
                text.matches('`').count() % 2 == 1
            }
            // A bracket that is open at the end.
            ParseErrorType::MissingToken(token, _) => {
                let open = |opens: char, closes: char| {
                    text.matches(opens).count() > text.matches(closes).count()
                };
                at_end
                    && match token.as_str() {
                        "}" => open('{', '}'),
                        ")" => open('(', ')'),
                        "]" => open('[', ']'),
                        _ => open('{', '}') || open('(', ')') || open('[', ']'),
                    }
            }
            _ => false,
        }
    }

    /// What the last text came to, as text; nothing for a statement without a value.
    pub fn take_said(&self) -> Option<Result<Option<String>, Error>> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.take()
    }

    fn evaluate(
        &self,
        text: String,
        invocation: Invocation,
    ) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        let variables = Arc::clone(&self.variables);
        // A statement is not asked for its value.
        let is_statement = text.trim_end().ends_with(';');
        let program = {
            let variables = variables.lock().unwrap_or_else(PoisonError::into_inner);
            self.program.load().with(&text, &variables)
        };
        let said = Arc::clone(&self.said);
        let keep = move |answer: Result<Option<String>, Error>| {
            *said.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
            Ok(b"null".to_vec())
        };
        let program = match program {
            Ok(program) => Arc::new(program),
            Err(error) => return Box::pin(std::future::ready(keep(Err(error)))),
        };
        self.program.store(Arc::clone(&program));
        let host = invocation.ctx.host().clone();
        let call = Call::new(program, Phase::Serving(invocation.ctx), host, None);
        Box::pin(async move {
            let answer = on_script_thread(call, move |call| {
                let mut variables = variables.lock().unwrap_or_else(PoisonError::into_inner);
                variables.set_or_push("ctx", Ctx::new(Arc::clone(call), "", None));
                let value = call.program().evaluate(&mut variables);
                let value =
                    value.map_err(|error| Failure::from(error).into_error(call.program()))?;
                Ok((!value.is_unit() && !is_statement).then(|| convert::display(&value)))
            });
            keep(answer.await)
        })
    }
}

impl Generation for Repl {
    fn source(&self) -> &Source {
        &self.source
    }

    fn contributions(&self) -> Arc<[Contribution]> {
        self.program.load().contributed().items()
    }

    fn invoke(
        &self,
        contribution: u32,
        invocation: Invocation,
    ) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        let program = self.program.load_full();
        let Some((kind, handler)) = program.contributed().handler(contribution) else {
            let error = Error::unsupported(&format!("contribution {contribution}"));
            return Box::pin(std::future::ready(Err(error)));
        };
        // The first that was registered.
        if contribution == 0 {
            let text = match serde_json::from_slice::<Value>(&invocation.payload) {
                Ok(Value::String(text)) => text,
                _ => String::new(),
            };
            return self.evaluate(text, invocation);
        }
        let limit = (kind == Kind::Hook).then_some(Limits::default().handler);
        let Invocation { op, payload, ctx } = invocation;
        Box::pin(async move {
            let host = ctx.host().clone();
            let call = Call::new(program, Phase::Serving(ctx), host, limit);
            on_script_thread(call, move |call| {
                handler.run(&op, &payload, &Running::new(call))
            })
            .await
        })
    }

    fn control(&self, op: &str, _: &[u8]) -> Result<Vec<u8>, Error> {
        Err(Error::unsupported(&format!("the operation \"{op}\"")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_something_open_goes_on() {
        for open in [
            "fn a() {",
            "let x = [1,",
            "register_tool(#{",
            "foo(1,",
            "let t = `a",
            "if true {\n  1",
        ] {
            assert!(Repl::is_unfinished(open), "{open}");
        }
        for whole in [
            "",
            "1 + 1",
            "let x = ;",
            "fn a() { 1 }",
            "\"open",
            "}",
            "a b",
            "let t = `a`",
        ] {
            assert!(!Repl::is_unfinished(whole), "{whole}");
        }
    }
}
