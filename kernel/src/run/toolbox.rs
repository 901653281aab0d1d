//! The executable tools of a turn, pinned from one snapshot of the registry: a reload in the middle
//! of a turn changes nothing for the calls the model was offered.

use std::sync::{Arc, PoisonError, RwLock};

use indexmap::IndexMap;
use pliant_sdk::Error;
use pliant_sdk::host::{BoxFuture, Host, Services};
use pliant_sdk::message::Tool;
use pliant_sdk::plugin::{CallCtx, Caller, Flow};
use pliant_sdk::tool::{ToolExecute, ToolResult, ToolScene, ToolSpec};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::agent::{ArgumentSchema, ToolRunner};
use crate::registry::{Registered, Snapshot, Source};

/// Makes the services of a tool's owner.
pub(crate) type MakeServices = Arc<dyn Fn(&Source) -> Arc<dyn Services> + Send + Sync>;

/// Tools that can be executed, in the order they are declared.
pub struct Toolbox {
    snapshot: u64,
    tools: IndexMap<String, Arc<RegisteredTool>>,
    scene: RwLock<ToolScene>,
}

impl std::fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.tools.keys()).finish()
    }
}

impl Toolbox {
    /// The active tools of a snapshot; names that nobody registered are left out.
    #[must_use]
    pub fn new(
        snapshot: &Snapshot,
        active: &[String],
        services: &MakeServices,
        scene: ToolScene,
    ) -> Self {
        let tool = |name: &String| {
            let tool = snapshot.tool(name)?;
            let schema = ArgumentSchema::new(tool.spec.parameters.clone());
            let tool = RegisteredTool {
                tool: Arc::clone(tool),
                schema,
                services: Arc::clone(services),
                scene: scene.clone(),
            };
            Some((name.clone(), Arc::new(tool)))
        };
        let tools = active.iter().filter_map(tool).collect();
        Self {
            snapshot: snapshot.number(),
            tools,
            scene: RwLock::new(scene),
        }
    }

    /// Whether this toolbox is what `new` would make.
    #[must_use]
    pub fn is_current(&self, snapshot: &Snapshot, active: &[String], scene: &ToolScene) -> bool {
        let same_names = self
            .tools
            .keys()
            .eq(active.iter().filter(|name| snapshot.tool(name).is_some()));
        let same_scene = *self.scene.read().unwrap_or_else(PoisonError::into_inner) == *scene;
        self.snapshot == snapshot.number() && same_names && same_scene
    }

    /// The declarations, in order.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.values().map(|tool| &tool.tool.spec)
    }

    /// What the model is told of them (M2).
    #[must_use]
    pub fn declarations(&self) -> Vec<Tool> {
        let declare = |spec: &ToolSpec| Tool {
            name: spec.name.clone(),
            description: spec.description.clone(),
            parameters: spec.parameters.clone(),
            constrained_sampling: spec.constrained_sampling.clone(),
        };
        self.specs().map(declare).collect()
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

struct RegisteredTool {
    tool: Arc<Registered<ToolSpec>>,
    schema: ArgumentSchema,
    services: MakeServices,
    scene: ToolScene,
}

impl RegisteredTool {
    fn host(&self) -> Host {
        Host::from_shared((self.services)(self.tool.source()))
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
        let ctx = CallCtx::answer_only(self.host());
        let tool = Arc::clone(&self.tool);
        Box::pin(async move { tool.invoke("prepare", &arguments, ctx).await })
    }

    fn execute(
        &self,
        call_id: &str,
        arguments: Map<String, Value>,
        updates: mpsc::UnboundedSender<ToolResult>,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<ToolResult, Error>> {
        let ctx = CallCtx::new(Arc::new(ToolCaller { updates, cancel }), self.host());
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
    updates: mpsc::UnboundedSender<ToolResult>,
    cancel: CancellationToken,
}

impl Caller for ToolCaller {
    fn cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    fn emit(&self, payload: &[u8]) -> Flow {
        let Ok(partial) = serde_json::from_slice(payload) else {
            return Flow::Continue;
        };
        if self.updates.send(partial).is_ok() {
            Flow::Continue
        } else {
            Flow::Stop
        }
    }
}
