//! Tools: the stations of a call, calls inside calls, which tools there are.

mod active;
mod calls;
mod loadout;
mod nested;
mod restored;
mod unruly;

use std::future::Future;
use std::sync::{Arc, Mutex};

use pliant_sdk::history::replay;
use pliant_sdk::message::{Message, ToolResultMessage};
use pliant_sdk::tool::{ToolCtx, ToolResult, ToolSpec};
use pliant_sdk::{Error, Event, Tool};
use serde_json::{Value, json};

use crate::support::*;

/// A tool that does what a closure says.
pub struct Does<F> {
    spec: ToolSpec,
    run: F,
}

pub fn does<F, R>(name: &str, run: F) -> Does<F>
where
    F: Fn(Value, ToolCtx) -> R + Send + Sync + 'static,
    R: Future<Output = Result<ToolResult, Error>> + Send + 'static,
{
    let spec = ToolSpec::new(name, format!("The tool {name}."));
    does_as(spec, run)
}

/// With another declaration.
pub fn does_as<F, R>(mut spec: ToolSpec, run: F) -> Does<F>
where
    F: Fn(Value, ToolCtx) -> R + Send + Sync + 'static,
    R: Future<Output = Result<ToolResult, Error>> + Send + 'static,
{
    if spec.parameters.is_null() {
        spec.parameters = json!({"type": "object"});
    }
    Does { spec, run }
}

impl<F, R> Tool for Does<F>
where
    F: Fn(Value, ToolCtx) -> R + Send + Sync + 'static,
    R: Future<Output = Result<ToolResult, Error>> + Send + 'static,
{
    type Input = Value;

    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn execute(&self, input: Value, ctx: ToolCtx) -> Result<ToolResult, Error> {
        (self.run)(input, ctx).await
    }
}

/// A tool that says its name.
pub fn named(spec: ToolSpec) -> impl Tool {
    let name = spec.name.clone();
    does_as(spec, move |_, _| {
        let name = name.clone();
        async move { Ok(ToolResult::text(name)) }
    })
}

/// What tests hear of from inside tools and handlers.
#[derive(Clone, Default)]
pub struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    pub fn say(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// One call of the model with these arguments, then a last word.
pub fn one_call(name: &'static str, arguments: Value) -> Script {
    Script::new([calls([("1", name, arguments)]), Reply::Text("done")])
}

/// The results of the session, whole.
pub fn results(scene: &Scene) -> Vec<ToolResultMessage> {
    let result = |message: &Arc<Message>| match &**message {
        Message::ToolResult(result) => Some(result.clone()),
        _ => None,
    };
    scene.session.messages().iter().filter_map(result).collect()
}

/// Names of the tools that each request declared.
pub fn declared(script: &Script) -> Vec<Vec<String>> {
    let names = |request: &Vec<Arc<Message>>| {
        let systems = request.iter().filter_map(|message| match &**message {
            Message::System(system) => Some(system),
            _ => None,
        });
        let state = replay(systems).unwrap_or_default();
        let tools = state.tools_added.unwrap_or_default();
        tools.into_iter().map(|tool| tool.name).collect()
    };
    script.requests.lock().unwrap().iter().map(names).collect()
}

/// The events of tool calls so far: kind, id, and the parent's id.
pub fn tool_events(scene: &mut Scene) -> Vec<String> {
    let mut words = Vec::new();
    while let Ok(event) = scene.events.try_recv() {
        let (kind, id, parent) = match &*event {
            Event::ToolExecutionStart {
                tool_call_id,
                parent_tool_call_id,
                ..
            } => ("start", tool_call_id, parent_tool_call_id),
            Event::ToolExecutionUpdate {
                tool_call_id,
                parent_tool_call_id,
                ..
            } => ("update", tool_call_id, parent_tool_call_id),
            Event::ToolExecutionEnd {
                tool_call_id,
                parent_tool_call_id,
                ..
            } => ("end", tool_call_id, parent_tool_call_id),
            Event::AgentEnd { .. } => {
                words.push("agent_end".to_owned());
                continue;
            }
            _ => continue,
        };
        let inside = parent.as_ref().map(|parent| format!(" in {parent}"));
        words.push(format!("{kind} {id}{}", inside.unwrap_or_default()));
    }
    words
}
