//! What is in force for a turn, pinned from one snapshot of the registry: the executable tools, what
//! the model is told of them, and the sections of the prompt. A reload in the middle of a turn
//! changes nothing for the calls the model was offered. Made anew only when something changed.

use std::sync::Arc;

use indexmap::IndexMap;
use pliant_sdk::Error;
use pliant_sdk::host::{BoxFuture, Host, Services};
use pliant_sdk::message::Tool;
use pliant_sdk::plugin::{CallCtx, Caller, Flow};
use pliant_sdk::tool::{ToolExecute, ToolResult, ToolScene, ToolSpec};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::agent::{ArgumentSchema, ToolRunner, Updates};
use crate::host::actions::CallScope;
use crate::prompt::{PromptOptions, sections};
use crate::registry::{Registered, Snapshot, Source};

/// Makes the services of a source for a call of one of its tools.
pub type ToolServices = Arc<dyn Fn(&Source, CallScope) -> Arc<dyn Services> + Send + Sync>;

/// Tools that can be executed, in the order they are declared, and the prompt that goes with them.
pub struct Loadout {
    snapshot: u64,
    tools: IndexMap<String, Arc<RegisteredTool>>,
    scene: ToolScene,
    declarations: Vec<Tool>,
    sections: Vec<(String, String)>,
}

impl std::fmt::Debug for Loadout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.tools.keys()).finish()
    }
}

impl Loadout {
    /// The active tools of a snapshot; names that nobody registered are left out.
    #[must_use]
    pub fn new(
        snapshot: &Snapshot,
        active: &[String],
        services: &ToolServices,
        scene: ToolScene,
        prompt: &PromptOptions,
    ) -> Self {
        let tool = |name: &String| {
            let tool = Arc::clone(snapshot.tool(name)?);
            let schema = ArgumentSchema::new(tool.spec.parameters.clone());
            let tool = RegisteredTool {
                tool,
                schema,
                services: Arc::clone(services),
                scene: scene.clone(),
            };
            Some((name.clone(), Arc::new(tool)))
        };
        let tools: IndexMap<_, _> = active.iter().filter_map(tool).collect();
        let specs: Vec<&ToolSpec> = tools.values().map(|tool| &tool.tool.spec).collect();
        let declarations = specs.iter().map(|spec| declaration(spec)).collect();
        let sections = sections(prompt, &specs);
        Self {
            snapshot: snapshot.number(),
            tools,
            scene,
            declarations,
            sections,
        }
    }

    /// Whether this loadout is what `new` would make; the prompt options of a session do not change.
    #[must_use]
    pub fn is_current(&self, snapshot: &Snapshot, active: &[String], scene: &ToolScene) -> bool {
        self.snapshot == snapshot.number()
            && self.scene == *scene
            && self
                .tools
                .keys()
                .eq(active.iter().filter(|name| snapshot.tool(name).is_some()))
    }

    /// What the model is told of the tools (M2).
    #[must_use]
    pub fn declarations(&self) -> &[Tool] {
        &self.declarations
    }

    /// The sections of the prompt, in order.
    #[must_use]
    pub fn sections(&self) -> &[(String, String)] {
        &self.sections
    }

    /// The tool of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<dyn ToolRunner>> {
        self.tools
            .get(name)
            .map(|tool| Arc::clone(tool) as Arc<dyn ToolRunner>)
    }

    /// All names.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.tools.keys().cloned().collect()
    }
}

fn declaration(spec: &ToolSpec) -> Tool {
    Tool {
        name: spec.name.clone(),
        description: spec.description.clone(),
        parameters: spec.parameters.clone(),
        constrained_sampling: spec.constrained_sampling.clone(),
    }
}

struct RegisteredTool {
    tool: Arc<Registered<ToolSpec>>,
    schema: ArgumentSchema,
    services: ToolServices,
    scene: ToolScene,
}

impl RegisteredTool {
    fn host(&self, scope: CallScope) -> Host {
        Host::from_shared((self.services)(self.tool.source(), scope))
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
        let tool = Arc::clone(&self.tool);
        Box::pin(async move { tool.invoke("prepare", &arguments, ctx).await })
    }

    fn execute(
        &self,
        call_id: &str,
        arguments: Map<String, Value>,
        updates: Updates,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<ToolResult, Error>> {
        let scope = CallScope::Tool {
            call_id: call_id.to_owned(),
        };
        let ctx = CallCtx::new(Arc::new(ToolCaller { updates, cancel }), self.host(scope));
        let tool = Arc::clone(&self.tool);
        let execute = ToolExecute {
            tool_call_id: call_id.to_owned(),
            input: arguments,
            scene: self.scene.clone(),
        };
        Box::pin(async move { tool.invoke("execute", &execute, ctx).await })
    }
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
