//! What is in force for a turn, pinned from one snapshot of the registry: the executable tools, what
//! the model is told of them, and the sections of the prompt. A reload in the middle of a turn
//! changes nothing for the calls the model was offered. Made anew only when something changed.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indexmap::{IndexMap, IndexSet};
use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::{BoxFuture, Host, Services};
use pliant_sdk::loadout::{LoadoutChanges, LoadoutView};
use pliant_sdk::message::Tool;
use pliant_sdk::plugin::{CallCtx, Caller, Flow};
use pliant_sdk::tool::{Exposure, ToolExecute, ToolResult, ToolScene, ToolSpec};
use serde_json::{Map, Value};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::agent::{ArgumentSchema, Reach, Running, ToolRunner, Updates};
use crate::host::actions::CallScope;
use crate::prompt::{PromptInputs, PromptOptions, sections};
use crate::registry::{Registered, Snapshot, Source};

/// Makes the services of a source for a call of one of its tools.
pub type ToolServices = Arc<dyn Fn(&Source, CallScope) -> Arc<dyn Services> + Send + Sync>;

/// The tools of a session at one moment.
#[derive(Debug, Clone, Default)]
pub struct ToolSet {
    /// Names of those the model is told of, in order. All are registered, none is hidden.
    pub active: Vec<String>,
    /// Names of all that the user lets be.
    pub registered: IndexSet<String>,
    /// Counts the changes of the active ones.
    pub revision: u64,
}

/// What a loadout is made from.
pub struct LoadoutParts {
    /// The registry, pinned.
    pub snapshot: Arc<Snapshot>,
    /// Which tools.
    pub tools: ToolSet,
    /// Serves the tools.
    pub services: ToolServices,
    /// What tools may know.
    pub scene: ToolScene,
    /// What the prompt is built from.
    pub prompt: PromptOptions,
    /// Longest time that a tool may take for bringing arguments into shape; `None` = no limit.
    pub prepare_limit: Option<Duration>,
}

/// Tools that can be executed, in the order they are declared, and the prompt that goes with them.
pub struct Loadout {
    parts: Arc<LoadoutParts>,
    active: IndexMap<String, Arc<RegisteredTool>>,
    /// Tools that only other tools may call, as they are asked for.
    called: Mutex<HashMap<String, Arc<RegisteredTool>>>,
    /// What tools said of the declarations; `None` while nobody asked them.
    changes: Option<LoadoutChanges>,
    hidden: Arc<BTreeSet<String>>,
    declarations: Vec<Tool>,
    inputs: PromptInputs,
    sections: Vec<(String, String)>,
}

impl std::fmt::Debug for Loadout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.active.keys()).finish()
    }
}

impl Loadout {
    /// Pins the tools of a snapshot.
    #[must_use]
    pub fn new(parts: LoadoutParts) -> Self {
        let tool = |name: &String| {
            let tool = parts.snapshot.tool(name)?;
            Some((name.clone(), Arc::new(RegisteredTool::new(tool, &parts))))
        };
        let active: IndexMap<_, _> = parts.tools.active.iter().filter_map(tool).collect();
        let mut loadout = Self {
            active,
            called: Mutex::default(),
            changes: None,
            hidden: Arc::default(),
            declarations: Vec::new(),
            inputs: PromptInputs::default(),
            sections: Vec::new(),
            parts: Arc::new(parts),
        };
        loadout.tell();
        loadout
    }

    /// The same tools, of which the model is told what tools want (`extensions.md` §4.3).
    #[must_use]
    pub fn changed(&self, changes: LoadoutChanges) -> Self {
        let hidden = changes.hidden_declarations.iter();
        let hidden = hidden.filter(|name| self.active.contains_key(*name));
        let mut loadout = Self {
            parts: Arc::clone(&self.parts),
            active: self.active.clone(),
            called: Mutex::default(),
            hidden: Arc::new(hidden.cloned().collect()),
            changes: Some(changes),
            declarations: Vec::new(),
            inputs: PromptInputs::default(),
            sections: Vec::new(),
        };
        loadout.tell();
        loadout
    }

    fn tell(&mut self) {
        let specs: Vec<&ToolSpec> = self.active.values().map(|tool| &tool.tool.spec).collect();
        let told = self.changes.as_ref().map(|changes| &changes.descriptions);
        let declaration = |spec: &&ToolSpec| {
            let described = told.and_then(|told| told.get(&spec.name));
            declaration(spec, described)
        };
        self.declarations = specs.iter().map(declaration).collect();
        self.inputs = PromptInputs::new(&self.parts.prompt, &specs, &self.hidden);
        self.sections = sections(&self.inputs);
    }

    /// Number of the snapshot that the tools are of.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.parts.snapshot.number()
    }

    /// Whether the tools are still those; other texts of the prompt count as a change of them.
    #[must_use]
    pub fn is_current(&self, snapshot: &Snapshot, revision: u64) -> bool {
        self.number() == snapshot.number() && self.parts.tools.revision == revision
    }

    /// What tools may know of the session.
    #[must_use]
    pub fn scene(&self) -> &ToolScene {
        &self.parts.scene
    }

    /// What tools said of the declarations.
    #[must_use]
    pub fn changes(&self) -> Option<&LoadoutChanges> {
        self.changes.as_ref()
    }

    /// What the model is told of the tools (M2).
    #[must_use]
    pub fn declarations(&self) -> &[Tool] {
        &self.declarations
    }

    /// What the prompt is built from.
    #[must_use]
    pub fn inputs(&self) -> &PromptInputs {
        &self.inputs
    }

    /// Names of declared tools that requests leave out, in every system message (T23).
    #[must_use]
    pub fn hidden(&self) -> &Arc<BTreeSet<String>> {
        &self.hidden
    }

    /// The sections of the prompt, in order.
    #[must_use]
    pub fn sections(&self) -> &[(String, String)] {
        &self.sections
    }

    /// The tool of that name, if it is within reach.
    #[must_use]
    pub fn get(&self, name: &str, reach: Reach) -> Option<Arc<dyn ToolRunner>> {
        let found = match (self.active.get(name), reach) {
            (Some(tool), Reach::Declared) => Arc::clone(tool),
            (None, Reach::Declared) => return None,
            (_, Reach::Callable) if !self.is_callable(name) => return None,
            (Some(tool), Reach::Callable) => Arc::clone(tool),
            (None, Reach::Callable) => self.called(name)?,
        };
        Some(found)
    }

    /// Names of the tools within reach.
    #[must_use]
    pub fn names(&self, reach: Reach) -> Vec<String> {
        let callable = |name: &&String| self.is_callable(name);
        match reach {
            Reach::Declared => self.active.keys().cloned().collect(),
            Reach::Callable => {
                let registered = self.parts.tools.registered.iter();
                registered.filter(callable).cloned().collect()
            }
        }
    }

    /// Tools to be asked what they want to change, unless they were.
    #[must_use]
    pub fn to_ask(&self) -> Vec<Arc<Registered<ToolSpec>>> {
        let all = self.active.values().map(|tool| &tool.tool);
        let asked = all.filter(|tool| self.changes.is_none() && tool.spec.prepares_loadout);
        asked.cloned().collect()
    }

    /// The tools as those that are asked see them.
    #[must_use]
    pub fn view(&self) -> LoadoutView {
        let tool = |name: &String| Some(self.parts.snapshot.tool(name)?.spec.clone());
        LoadoutView {
            declared: self.names(Reach::Declared),
            callable: self.names(Reach::Callable),
            registered: self
                .parts
                .tools
                .registered
                .iter()
                .filter_map(tool)
                .collect(),
        }
    }

    /// By exposure (T22): what the model is told of directly while that is so, what is for scripts
    /// whenever it is registered.
    fn is_callable(&self, name: &str) -> bool {
        let tool = self.parts.snapshot.tool(name);
        tool.is_some_and(|tool| match tool.spec.exposure {
            Exposure::Direct => self.active.contains_key(name),
            Exposure::Codemode | Exposure::Deferred => self.parts.tools.registered.contains(name),
            Exposure::ModelOnly | Exposure::Hidden => false,
        })
    }

    fn called(&self, name: &str) -> Option<Arc<RegisteredTool>> {
        let mut called = self.called.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tool) = called.get(name) {
            return Some(Arc::clone(tool));
        }
        let tool = RegisteredTool::new(self.parts.snapshot.tool(name)?, &self.parts);
        let tool = Arc::new(tool);
        called.insert(name.to_owned(), Arc::clone(&tool));
        Some(tool)
    }
}

fn declaration(spec: &ToolSpec, described: Option<&String>) -> Tool {
    Tool {
        name: spec.name.clone(),
        description: described.unwrap_or(&spec.description).clone(),
        parameters: spec.parameters.clone(),
        constrained_sampling: spec.constrained_sampling.clone(),
    }
}

struct RegisteredTool {
    tool: Arc<Registered<ToolSpec>>,
    schema: ArgumentSchema,
    services: ToolServices,
    scene: ToolScene,
    prepare_limit: Option<Duration>,
}

impl RegisteredTool {
    fn new(tool: &Arc<Registered<ToolSpec>>, parts: &LoadoutParts) -> Self {
        Self {
            tool: Arc::clone(tool),
            schema: ArgumentSchema::new(tool.spec.parameters.clone()),
            services: Arc::clone(&parts.services),
            scene: parts.scene.clone(),
            prepare_limit: parts.prepare_limit,
        }
    }

    fn host(&self, scope: CallScope) -> Host {
        Host::from_shared(
            self.tool
                .lend_to_call((self.services)(self.tool.source(), scope)),
        )
    }
}

impl ToolRunner for RegisteredTool {
    fn spec(&self) -> &ToolSpec {
        &self.tool.spec
    }

    fn schema(&self) -> &ArgumentSchema {
        &self.schema
    }

    fn prepare(&self, arguments: Value) -> BoxFuture<'static, Result<Value, Error>> {
        let ctx = CallCtx::answer_only(self.host(CallScope::Handler));
        let (tool, limit) = (Arc::clone(&self.tool), self.prepare_limit);
        Box::pin(async move {
            let prepared = within(limit, tool.invoke("prepare", &arguments, ctx)).await;
            prepared.map_err(|error| {
                let (source, name) = (&tool.source().name, &tool.spec.name);
                let message = format!(
                    "The call was not run: \"{source}\" could not bring the arguments of \"{name}\" into shape: {error}"
                );
                Error { message, ..error }
            })
        })
    }

    fn execute(
        &self,
        arguments: Map<String, Value>,
        call: Running,
    ) -> BoxFuture<'static, Result<ToolResult, Error>> {
        let Running {
            call_id,
            updates,
            calls,
            cancel,
        } = call;
        let scope = CallScope::Tool {
            call_id: call_id.clone(),
            calls: Arc::new(calls),
        };
        let ctx = CallCtx::new(Arc::new(ToolCaller { updates, cancel }), self.host(scope));
        let tool = Arc::clone(&self.tool);
        let execute = ToolExecute {
            tool_call_id: call_id,
            input: arguments,
            scene: self.scene.clone(),
        };
        Box::pin(async move { tool.invoke("execute", &execute, ctx).await })
    }
}

/// Waits for code that somebody else waits for.
async fn within<T>(
    limit: Option<Duration>,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let Some(limit) = limit else {
        return work.await;
    };
    let ms = limit.as_millis();
    timeout(limit, work).await.unwrap_or_else(|_| {
        Err(Error::new(
            code::TIMEOUT,
            format!(
                "it did not end within {ms} ms; the setting extensions.handlerTimeoutMs allows more"
            ),
        ))
    })
}

/// Takes partial results of a running tool.
struct ToolCaller {
    updates: Updates,
    cancel: CancellationToken,
}

impl Caller for ToolCaller {
    fn cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    fn emit(&self, payload: &[u8]) -> Flow {
        if let Ok(partial) = serde_json::from_slice(payload) {
            self.updates.show(partial);
        }
        if self.cancel.is_cancelled() {
            Flow::Stop
        } else {
            Flow::Continue
        }
    }
}
