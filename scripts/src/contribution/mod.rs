//! What a script can contribute, one kind a file: reading the declaration, and running its
//! operations.

mod autocomplete;
mod command;
mod flag;
mod hook;
mod mcp_server;
mod provider;
mod renderer;
mod shortcut;
mod tool;
mod virtual_model;

pub(crate) use hook::Listening;
pub(crate) use tool::to_result;

use std::sync::Arc;

use pliant_kernel::registry::Kind;
use pliant_sdk::Error;
use pliant_sdk::error::code;
use rhai::{Dynamic, FnPtr, Map};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::Ctx;
use crate::call::{Call, ScriptResult, fail};
use crate::convert;
use crate::error::Failure;
use crate::program::{Callback, Program};

/// Runs the operations of one contribution.
pub(crate) trait Handler: Send + Sync {
    /// One operation, on a script thread. JSON in, JSON out.
    fn run(&self, op: &str, payload: &[u8], running: &Running<'_>) -> Result<Vec<u8>, Error>;
}

/// One thing a script registered.
pub(crate) struct Registration {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) spec: Value,
    pub(crate) handler: Arc<dyn Handler>,
}

/// What a top level registered so far.
#[derive(Default)]
pub(crate) struct Registrations(Vec<Registration>);

impl Registrations {
    /// Adds one. Hooks add up; anything else of the same kind and name is replaced.
    pub(crate) fn add(&mut self, new: Registration) {
        let same = |old: &&mut Registration| {
            new.kind != Kind::Hook && old.kind == new.kind && old.name == new.name
        };
        match self.0.iter_mut().find(same) {
            Some(old) => *old = new,
            None => self.0.push(new),
        }
    }

    /// Takes one away; `false` when there is none.
    pub(crate) fn remove(&mut self, kind: Kind, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|one| one.kind != kind || one.name != name);
        self.0.len() < before
    }

    /// The declaration of one.
    pub(crate) fn spec(&self, kind: Kind, name: &str) -> Option<&Value> {
        let mut all = self.0.iter();
        let found = all.find(|one| one.kind == kind && one.name == name)?;
        Some(&found.spec)
    }

    pub(crate) fn into_list(self) -> Vec<Registration> {
        self.0
    }
}

/// Declares a contribution: reads what the script gave, and refuses what cannot work.
pub(crate) type Declare = fn(&Program, &str, Map) -> ScriptResult<Registration>;

/// The declarations by kind, for `register_…`.
pub(crate) mod declare {
    pub(crate) use super::autocomplete::declare as autocomplete;
    pub(crate) use super::command::declare as command;
    pub(crate) use super::flag::declare as flag;
    pub(crate) use super::hook::declare as hook;
    pub(crate) use super::mcp_server::declare as mcp_server;
    pub(crate) use super::provider::declare as provider;
    pub(crate) use super::renderer::declare_entry as entry_renderer;
    pub(crate) use super::renderer::declare_markdown as markdown_transformer;
    pub(crate) use super::renderer::declare_message as message_renderer;
    pub(crate) use super::renderer::declare_tool as tool_renderer;
    pub(crate) use super::shortcut::declare as shortcut;
    pub(crate) use super::tool::declare as tool;
    pub(crate) use super::virtual_model::declare as virtual_model;
}

/// An operation under way.
pub(crate) struct Running<'a> {
    call: &'a Arc<Call>,
}

impl<'a> Running<'a> {
    pub(crate) fn new(call: &'a Arc<Call>) -> Self {
        Self { call }
    }

    pub(crate) fn call(&self) -> &'a Arc<Call> {
        self.call
    }

    /// The `ctx` argument, for a call of that id in that directory.
    fn ctx(&self, call_id: &str, cwd: Option<&str>) -> Dynamic {
        Dynamic::from(Ctx::new(Arc::clone(self.call), call_id, cwd))
    }

    /// Calls a closure; a failure comes taken apart.
    fn try_call<const N: usize>(
        &self,
        callback: &Callback,
        arguments: [Dynamic; N],
    ) -> Result<Dynamic, Failure> {
        callback
            .call(self.call.program(), arguments)
            .map_err(Failure::from)
    }

    /// Calls a closure.
    fn run<const N: usize>(
        &self,
        callback: &Callback,
        arguments: [Dynamic; N],
    ) -> Result<Dynamic, Error> {
        self.try_call(callback, arguments)
            .map_err(|failure| self.error(failure))
    }

    fn error(&self, failure: impl Into<Failure>) -> Error {
        failure.into().into_error(self.call.program())
    }

    /// The closure's answer has a shape that the operation cannot use.
    fn wrong_answer(&self, what: &str, wanted: &str, answer: &Dynamic) -> Error {
        let (file, kind) = (self.call.program().name(), convert::a_kind_of(answer));
        Error::new(
            code::INVALID,
            format!("{file}: {what} answered {kind}; it has to answer {wanted}"),
        )
    }

    /// An answer as JSON.
    fn json(&self, answer: &Dynamic) -> Result<Vec<u8>, Error> {
        convert::to_json(answer).map_err(|error| self.error(error))
    }
}

/// Takes a required function out of a declaration.
fn function(
    program: &Program,
    fields: &mut Map,
    name: &str,
    offered: &[&str],
) -> ScriptResult<Callback> {
    optional_function(program, fields, name, offered)?.ok_or_else(|| {
        let arguments = offered.join(", ");
        fail(format!(
            "`{name}` is missing: give it a closure |{arguments}| …"
        ))
    })
}

/// Takes an optional function out of a declaration.
fn optional_function(
    program: &Program,
    fields: &mut Map,
    name: &str,
    offered: &[&str],
) -> ScriptResult<Option<Callback>> {
    let value = match fields.remove(name) {
        None => return Ok(None),
        Some(value) if value.is_unit() => return Ok(None),
        Some(value) => value.flatten(),
    };
    let kind = convert::kind_of(&value).to_owned();
    match value.try_cast::<FnPtr>() {
        Some(pointer) => program.callback(pointer, offered).map(Some),
        None => Err(fail(format!("`{name}` has to be a function, not a {kind}"))),
    }
}

/// Reads the fields of a declaration as the SDK's type, and writes them as the registry's JSON.
fn spec<T: DeserializeOwned + Serialize>(fields: Map) -> ScriptResult<(T, Value)> {
    let typed: T = convert::to_typed(&Dynamic::from(fields))?;
    let json = serde_json::to_value(&typed).map_err(|error| fail(error.to_string()))?;
    Ok((typed, json))
}

fn unsupported(kind: &str, op: &str) -> Error {
    Error::unsupported(&format!("the {kind} operation \"{op}\""))
}

fn answer(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    Ok(serde_json::to_vec(value)?)
}
