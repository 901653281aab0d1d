//! A plugin as its author builds it: contributions added one by one, each with what runs it.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::autocomplete::Autocomplete;
use crate::command::{Command, CommandCtx};
use crate::display::{EntryShown, MarkdownShown, MessageShown, ToolShown};
use crate::error::Error;
use crate::flag::FlagSpec;
use crate::guard;
use crate::hook::Hook;
use crate::host::{BoxFuture, Host};
use crate::late::Late;
use crate::mcp::McpServerSpec;
use crate::provider::{Conversations, Provider, StreamOut, StreamPayload, Wire};
use crate::shortcut::Shortcut;
use crate::tool::{Tool, ToolCtx, ToolExecute, schema_of};
use crate::view::View;
use crate::virtual_model::VirtualModel;

/// What the caller wants after an emitted event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// More.
    Continue,
    /// More, but it is behind: await the service `emit.ready` first.
    Slow,
    /// Nothing; it no longer listens.
    Stop,
}

/// The caller's side of one invocation.
pub trait Caller: Send + Sync {
    /// Whether the caller has given up.
    fn cancelled(&self) -> bool;
    /// Pushes JSON to the caller: of a stream what [`crate::crossing::write`] makes of the events that
    /// came at once.
    fn emit(&self, payload: &[u8]) -> Flow;
}

/// One running invocation: the caller, and services bound to it.
#[derive(Clone)]
pub struct CallCtx {
    caller: Arc<dyn Caller>,
    host: Host,
}

impl fmt::Debug for CallCtx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallCtx")
    }
}

impl CallCtx {
    /// Joins a caller and its services.
    #[must_use]
    pub fn new(caller: Arc<dyn Caller>, host: Host) -> Self {
        Self { caller, host }
    }

    /// A call whose caller wants only the answer: nothing is cancelled, what is emitted goes nowhere.
    #[must_use]
    pub fn answer_only(host: Host) -> Self {
        struct AnswerOnly;
        impl Caller for AnswerOnly {
            fn cancelled(&self) -> bool {
                false
            }
            fn emit(&self, _: &[u8]) -> Flow {
                Flow::Continue
            }
        }
        Self::new(Arc::new(AnswerOnly), host)
    }

    /// Whether the caller has given up.
    #[must_use]
    pub fn cancelled(&self) -> bool {
        self.caller.cancelled()
    }

    /// Pushes JSON to the caller.
    pub fn emit(&self, payload: &[u8]) -> Flow {
        self.caller.emit(payload)
    }

    /// The caller.
    #[must_use]
    pub fn caller(&self) -> Arc<dyn Caller> {
        Arc::clone(&self.caller)
    }

    /// The services.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }
}

/// One invocation of a contribution.
#[derive(Debug)]
pub struct Invocation {
    /// Operation, e.g. `execute`.
    pub op: String,
    /// JSON argument.
    pub payload: Vec<u8>,
    /// The running call.
    pub ctx: CallCtx,
}

type Run = Arc<dyn Fn(Invocation) -> BoxFuture<'static, Result<Vec<u8>, Error>> + Send + Sync>;
type Control = Box<dyn Fn(&[u8]) -> Result<Vec<u8>, Error> + Send + Sync>;

pub(crate) struct Contribution {
    kind: &'static str,
    spec: Value,
    run: Run,
}

impl Contribution {
    /// As the kernel is told of it: `{id, kind, …spec}`.
    pub(crate) fn describe(&self, id: usize) -> Value {
        let mut entry = json!({"id": id, "kind": self.kind});
        if let (Value::Object(entry), Value::Object(spec)) = (&mut entry, &self.spec) {
            entry.extend(spec.clone());
        }
        entry
    }
}

/// A plugin under construction; what the exported `create` function answers.
///
/// Contributions get their ids in the order they are added.
#[derive(Default)]
pub struct Plugin {
    contributions: Vec<Contribution>,
    late: Option<Late>,
    controls: Vec<(&'static str, Control)>,
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self
            .contributions
            .iter()
            .map(|c| (c.kind, c.spec.get("name")));
        f.debug_map().entries(names).finish()
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        // Nobody is there to hear of a panic; the process must go on.
        let _ = self.end();
    }
}

impl Plugin {
    /// Drops what was contributed and answers the panics of that. One by one: were two of them to panic in
    /// one go, the second would end the process.
    pub(crate) fn end(&mut self) -> Vec<Error> {
        let contributions = self.contributions.drain(..);
        let ended = contributions.map(|one| guard::catch(move || drop(one)));
        let mut panics: Vec<Error> = ended.filter_map(Result::err).collect();
        let controls = self.controls.drain(..);
        let ended = controls.map(|one| guard::catch(move || drop(one)));
        panics.extend(ended.filter_map(Result::err));
        panics
    }

    /// What was contributed so far, to be taken.
    pub(crate) fn contributions_mut(&mut self) -> &mut Vec<Contribution> {
        &mut self.contributions
    }

    /// Lets [`Late::add`] register more while the plugin serves.
    #[must_use]
    pub fn later(mut self, late: &Late) -> Self {
        self.late = Some(late.clone());
        self
    }

    /// A plugin that contributes nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool<T: Tool>(self, tool: T) -> Self {
        let mut spec = tool.spec();
        if spec.parameters.is_null() {
            spec.parameters = schema_of::<T::Input>();
        }
        let tool = Arc::new(tool);
        self.add("tool", &spec, move |call: Invocation| {
            let tool = Arc::clone(&tool);
            async move {
                match call.op.as_str() {
                    "execute" => {
                        let ToolExecute {
                            tool_call_id,
                            input,
                            scene,
                        } = serde_json::from_slice(&call.payload)?;
                        let input = serde_json::from_value(Value::Object(input)).map_err(|e| {
                            Error::invalid(format!("the arguments do not fit the tool: {e}"))
                        })?;
                        answer(
                            &tool
                                .execute(input, ToolCtx::new(call.ctx, tool_call_id, scene))
                                .await?,
                        )
                    }
                    "prepare" => answer(&tool.prepare(serde_json::from_slice(&call.payload)?)),
                    "prepare_loadout" => {
                        answer(&tool.prepare_loadout(serde_json::from_slice(&call.payload)?)?)
                    }
                    "render" => answer(&tool.render(serde_json::from_slice(&call.payload)?)?),
                    op => Err(Error::unsupported(&format!("the tool operation \"{op}\""))),
                }
            }
        })
    }

    /// Adds a wire.
    #[must_use]
    pub fn wire<W: Wire>(self, wire: W) -> Self {
        let spec = json!({"name": wire.api()});
        let wire = Arc::new(wire);
        let conversations = Arc::new(Conversations::default());
        self.add("wire", &spec, move |call: Invocation| {
            let (wire, conversations) = (Arc::clone(&wire), Arc::clone(&conversations));
            async move {
                if call.op != "stream" {
                    return Err(Error::unsupported(&format!(
                        "the wire operation \"{}\"",
                        call.op
                    )));
                }
                let payload: StreamPayload = serde_json::from_slice(&call.payload)?;
                let request = conversations.request(payload)?;
                answer(&wire.stream(request, StreamOut::new(call.ctx)).await?)
            }
        })
    }

    /// Adds a provider.
    #[must_use]
    pub fn provider<P: Provider>(self, provider: P) -> Self {
        let spec = provider.spec();
        let provider = Arc::new(provider);
        self.add("provider", &spec, move |call: Invocation| {
            let provider = Arc::clone(&provider);
            async move {
                match call.op.as_str() {
                    "models" => answer(&provider.models()),
                    op => Err(Error::unsupported(&format!(
                        "the provider operation \"{op}\""
                    ))),
                }
            }
        })
    }

    /// Adds a virtual model.
    #[must_use]
    pub fn virtual_model<V: VirtualModel>(self, virtual_model: V) -> Self {
        let spec = virtual_model.spec();
        let virtual_model = Arc::new(virtual_model);
        self.add("virtual_model", &spec, move |call: Invocation| {
            let virtual_model = Arc::clone(&virtual_model);
            async move {
                match call.op.as_str() {
                    "route" => {
                        let request = serde_json::from_slice(&call.payload)?;
                        answer(&virtual_model.route(request, call.ctx).await?)
                    }
                    op => Err(Error::unsupported(&format!(
                        "the virtual model operation \"{op}\""
                    ))),
                }
            }
        })
    }

    /// Adds a command.
    #[must_use]
    pub fn command<C: Command>(self, command: C) -> Self {
        let spec = command.spec();
        let command = Arc::new(command);
        self.add("command", &spec, move |call: Invocation| {
            let command = Arc::clone(&command);
            async move {
                match call.op.as_str() {
                    "run" => {
                        let args: String = serde_json::from_slice(&call.payload)?;
                        answer(&command.run(args, CommandCtx::new(call.ctx)).await?)
                    }
                    "complete" => {
                        let prefix: String = serde_json::from_slice(&call.payload)?;
                        answer(&command.complete(&prefix))
                    }
                    op => Err(Error::unsupported(&format!(
                        "the command operation \"{op}\""
                    ))),
                }
            }
        })
    }

    /// Declares an option of the command line; its value is asked of [`crate::Host::flag`].
    #[must_use]
    pub fn flag(self, spec: FlagSpec) -> Self {
        self.add("flag", &spec, |call: Invocation| async move {
            Err(Error::unsupported(&format!(
                "the flag operation \"{}\"",
                call.op
            )))
        })
    }

    /// Gives a key something to do.
    #[must_use]
    pub fn shortcut<S: Shortcut>(self, shortcut: S) -> Self {
        let spec = shortcut.spec();
        let shortcut = Arc::new(shortcut);
        self.add("shortcut", &spec, move |call: Invocation| {
            let shortcut = Arc::clone(&shortcut);
            async move {
                match call.op.as_str() {
                    "press" => answer(&shortcut.press(CommandCtx::new(call.ctx)).await?),
                    op => Err(Error::unsupported(&format!(
                        "the shortcut operation \"{op}\""
                    ))),
                }
            }
        })
    }

    /// Completes what the user types.
    #[must_use]
    pub fn autocomplete<A: Autocomplete>(self, autocomplete: A) -> Self {
        let spec = autocomplete.spec();
        let autocomplete = Arc::new(autocomplete);
        self.add("autocomplete", &spec, move |call: Invocation| {
            let autocomplete = Arc::clone(&autocomplete);
            async move {
                match call.op.as_str() {
                    "suggest" => {
                        let typed = serde_json::from_slice(&call.payload)?;
                        answer(&autocomplete.suggest(typed, call.ctx).await?)
                    }
                    op => Err(Error::unsupported(&format!(
                        "the autocomplete operation \"{op}\""
                    ))),
                }
            }
        })
    }

    /// Shows the custom messages of a type ([`crate::display`]).
    #[must_use]
    pub fn message_renderer<F, R>(self, custom_type: &str, render: F) -> Self
    where
        F: Fn(MessageShown, CallCtx) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Option<View>, Error>> + Send + 'static,
    {
        self.answering("message_renderer", custom_type, "render", render)
    }

    /// Shows the custom entries of a type, which no model sees ([`crate::display`]).
    #[must_use]
    pub fn entry_renderer<F, R>(self, custom_type: &str, render: F) -> Self
    where
        F: Fn(EntryShown, CallCtx) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Option<View>, Error>> + Send + 'static,
    {
        self.answering("entry_renderer", custom_type, "render", render)
    }

    /// Shows calls of any tool. One that answers nothing leaves it to the next;
    /// [`Host::next_view`] asks what that would be.
    #[must_use]
    pub fn tool_renderer<F, R>(self, render: F) -> Self
    where
        F: Fn(ToolShown, CallCtx) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Option<View>, Error>> + Send + 'static,
    {
        self.answering("tool_renderer", "tools", "render", render)
    }

    /// Changes Markdown before it is shown; the last one of a plugin counts.
    #[must_use]
    pub fn markdown_transformer<F, R>(self, transform: F) -> Self
    where
        F: Fn(MarkdownShown, CallCtx) -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, Error>> + Send + 'static,
    {
        self.answering("markdown_transformer", "markdown", "transform", transform)
    }

    /// Brings a server of the Model Context Protocol.
    #[must_use]
    pub fn mcp_server(self, spec: McpServerSpec) -> Self {
        self.add("mcp_server", &spec, |call: Invocation| async move {
            Err(Error::unsupported(&format!(
                "the MCP server operation \"{}\"",
                call.op
            )))
        })
    }

    /// Attaches a handler to a typed event.
    #[must_use]
    pub fn on<H, F, R>(self, handler: F) -> Self
    where
        H: Hook,
        F: Fn(H, CallCtx) -> R + Send + Sync + 'static,
        R: Future<Output = Result<H::Answer, Error>> + Send + 'static,
        H::Answer: Send,
    {
        let handler = Arc::new(handler);
        self.add(
            "hook",
            &json!({"name": H::EVENT, "without": H::WITHOUT}),
            move |call: Invocation| {
                let handler = Arc::clone(&handler);
                async move {
                    let event: H = serde_json::from_slice(&call.payload)?;
                    answer(&handler(event, call.ctx).await?)
                }
            },
        )
    }

    /// Attaches a handler to any event, with JSON both ways. Answer null for nothing.
    #[must_use]
    pub fn on_event<F, R>(self, event: &'static str, handler: F) -> Self
    where
        F: Fn(Value, CallCtx) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, Error>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        self.add("hook", &json!({"name": event}), move |call: Invocation| {
            let handler = Arc::clone(&handler);
            async move { answer(&handler(serde_json::from_slice(&call.payload)?, call.ctx).await?) }
        })
    }

    /// Listens to a channel on which extensions speak to each other
    /// ([`crate::session::Session::emit`]).
    #[must_use]
    pub fn on_bus<F, R>(self, channel: &str, handler: F) -> Self
    where
        F: Fn(Value, CallCtx) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let spec = json!({"name": format!("bus:{channel}")});
        self.add("hook", &spec, move |call: Invocation| {
            let handler = Arc::clone(&handler);
            async move { answer(&handler(serde_json::from_slice(&call.payload)?, call.ctx).await?) }
        })
    }

    /// Answers a lifecycle operation of the kernel (`shutdown`, `export_state`, …).
    #[must_use]
    pub fn control<P, A>(
        mut self,
        op: &'static str,
        run: impl Fn(P) -> Result<A, Error> + Send + Sync + 'static,
    ) -> Self
    where
        P: DeserializeOwned,
        A: Serialize,
    {
        self.controls.push((
            op,
            Box::new(move |payload| answer(&run(serde_json::from_slice(payload)?)?)),
        ));
        self
    }

    /// What [`Plugin::describe`] lists: `{id, kind, …spec}` each.
    #[must_use]
    pub fn describe(&self) -> Vec<Value> {
        if let Some(late) = &self.late {
            late.begins_at(self.contributions.len());
        }
        let all = self.contributions.iter().enumerate();
        all.map(|(id, item)| item.describe(id)).collect()
    }

    /// Runs one operation of one contribution. Panics of the author's code are errors.
    pub fn invoke(
        &self,
        contribution: u32,
        call: Invocation,
    ) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        let run = |item: &Contribution| Arc::clone(&item.run);
        let found = usize::try_from(contribution).ok().and_then(|id| {
            let later = || self.late.as_ref()?.find(id, run);
            self.contributions.get(id).map(run).or_else(later)
        });
        match found {
            Some(run) => match guard::catch(move || run(call)) {
                Ok(future) => Box::pin(guard::Guarded::new(future)),
                Err(error) => Box::pin(std::future::ready(Err(error))),
            },
            None => {
                let error = Error::unsupported(&format!("contribution {contribution}"));
                Box::pin(std::future::ready(Err(error)))
            }
        }
    }

    /// Runs a lifecycle operation.
    ///
    /// # Errors
    /// `unsupported` for one the author did not give.
    pub fn run_control(&self, op: &str, payload: &[u8]) -> Result<Vec<u8>, Error> {
        match self.controls.iter().find(|(name, _)| *name == op) {
            Some((_, run)) => guard::catch(|| run(payload))?,
            None => Err(Error::unsupported(&format!("the operation \"{op}\""))),
        }
    }

    /// Something with one operation, typed both ways.
    fn answering<P, A, F, R>(self, kind: &'static str, name: &str, op: &'static str, run: F) -> Self
    where
        P: DeserializeOwned + Send,
        A: Serialize,
        F: Fn(P, CallCtx) -> R + Send + Sync + 'static,
        R: Future<Output = Result<A, Error>> + Send + 'static,
    {
        let run = Arc::new(run);
        self.add(kind, &json!({"name": name}), move |call: Invocation| {
            let run = Arc::clone(&run);
            async move {
                if call.op != op {
                    let what = format!("the {kind} operation \"{}\"", call.op);
                    return Err(Error::unsupported(&what));
                }
                answer(&run(serde_json::from_slice(&call.payload)?, call.ctx).await?)
            }
        })
    }

    fn add<S, F, R>(mut self, kind: &'static str, spec: &S, run: F) -> Self
    where
        S: Serialize,
        F: Fn(Invocation) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Vec<u8>, Error>> + Send + 'static,
    {
        let spec = serde_json::to_value(spec).unwrap_or_default();
        self.contributions.push(Contribution {
            kind,
            spec,
            run: Arc::new(move |call| Box::pin(run(call))),
        });
        self
    }
}

fn answer(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    Ok(serde_json::to_vec(value)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{ToolResult, ToolSpec};

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in drop");
        }
    }

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}

    impl Tool for Bomb {
        type Input = Nothing;

        fn spec(&self) -> ToolSpec {
            ToolSpec::new("bomb", "Panics when it goes.")
        }

        async fn execute(&self, _: Nothing, _: ToolCtx) -> Result<ToolResult, Error> {
            Ok(ToolResult::default())
        }
    }

    #[test]
    fn several_contributions_that_panic_in_their_drop_are_each_an_error() {
        let panics = Plugin::new().tool(Bomb).tool(Bomb).end();
        let messages: Vec<&str> = panics.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(messages, ["panicked: in drop", "panicked: in drop"]);
    }
}
