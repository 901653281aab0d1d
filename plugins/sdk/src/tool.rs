//! Tools: what the model can call (`extensions.md` §4.1).

use std::future::Future;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::display::ToolShown;
use crate::error::Error;
use crate::host::Host;
use crate::lenient;
use crate::loadout::{LoadoutChanges, LoadoutView};
use crate::message::{Content, Usage};
use crate::plugin::CallCtx;
use crate::ui::Ui;
use crate::view::View;

/// A tool. The doc comments of `Input`'s fields become the schema's descriptions.
pub trait Tool: Send + Sync + 'static {
    /// The arguments.
    type Input: DeserializeOwned + JsonSchema + Send;

    /// Name, description and the rest of the declaration; the schema is added from `Input`.
    fn spec(&self) -> ToolSpec;

    /// Brings old argument shapes of resumed sessions into today's, before validation.
    fn prepare(&self, arguments: Value) -> Value {
        arguments
    }

    /// Says what is to be changed of what the model is told of the tools. Called when the tools in
    /// force have changed, while this one is active, if its declaration says [`ToolSpec::prepares_loadout`].
    ///
    /// # Errors
    /// Are reported; nothing is changed then.
    fn prepare_loadout(&self, loadout: LoadoutView) -> Result<LoadoutChanges, Error> {
        let _ = loadout;
        Ok(LoadoutChanges::default())
    }

    /// Shows half of one of its calls, if its declaration says [`ToolSpec::renders`]; nothing leaves it
    /// to the front end.
    ///
    /// # Errors
    /// Are reported; the front end shows the call then.
    fn render(&self, shown: ToolShown) -> Result<Option<View>, Error> {
        let _ = shown;
        Ok(None)
    }

    /// Does the work. An error is an answer to the model, not a failure of the run.
    fn execute(
        &self,
        input: Self::Input,
        ctx: ToolCtx,
    ) -> impl Future<Output = Result<ToolResult, Error>> + Send;
}

/// The declaration of a tool, as the registry keeps it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolSpec {
    /// Name in model calls: 1–64 characters of `[A-Za-z0-9_-]`.
    pub name: String,
    /// Name for people.
    pub label: String,
    /// For the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
    /// One line in the prompt's tool list; without it the tool is not listed there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_snippet: Option<String>,
    /// Rules added to the prompt while the tool is active; each names the tool itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prompt_guidelines: Vec<String>,
    /// `false`, `{type:"json_schema",…}` or `{type:"grammar",…}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constrained_sampling: Option<Value>,
    /// JSON Schema of the structured result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Who may see and call it.
    pub exposure: Exposure,
    /// `false` = registered, but not active until asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_active: Option<bool>,
    /// Whether calls may run beside others.
    pub execution_mode: ExecutionMode,
    /// Unverified hints: `readOnlyHint`, `destructiveHint`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
    /// The tool wants its arguments before validation (operation `prepare`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub prepares: bool,
    /// Group of tools it belongs to: `{name, aliases?, description?, instructions?}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Value>,
    /// The tool may change what the model is told of the tools (operation `prepare_loadout`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub prepares_loadout: bool,
    /// The tool shows its calls itself (operation `render`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub renders: bool,
}

impl ToolSpec {
    /// A tool with a name and a description for the model.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            label: name.clone(),
            name,
            description: description.into(),
            ..Self::default()
        }
    }

    /// Sets the line for the prompt's tool list.
    #[must_use]
    pub fn snippet(mut self, line: impl Into<String>) -> Self {
        self.prompt_snippet = Some(line.into());
        self
    }

    /// Adds a rule to the prompt.
    #[must_use]
    pub fn guideline(mut self, line: impl Into<String>) -> Self {
        self.prompt_guidelines.push(line.into());
        self
    }

    /// Asks for the arguments before validation.
    #[must_use]
    pub fn prepares(mut self) -> Self {
        self.prepares = true;
        self
    }

    /// Shows its calls itself.
    #[must_use]
    pub fn renders(mut self) -> Self {
        self.renders = true;
        self
    }

    /// Sets who may see and call the tool.
    #[must_use]
    pub fn exposed(mut self, exposure: Exposure) -> Self {
        self.exposure = exposure;
        self
    }

    /// Asks to be told of the tools in force.
    #[must_use]
    pub fn prepares_loadout(mut self) -> Self {
        self.prepares_loadout = true;
        self
    }

    /// Registers the tool without activating it.
    #[must_use]
    pub fn inactive(mut self) -> Self {
        self.default_active = Some(false);
        self
    }
}

/// Who may see and call a tool (T22).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exposure {
    /// Declared and callable while active.
    #[default]
    Direct,
    /// Declared while active, never callable by scripts.
    ModelOnly,
    /// Callable by scripts whenever registered.
    Codemode,
    /// As `codemode`, found by searching.
    Deferred,
    /// Unreachable.
    Hidden,
}

/// Whether calls of a tool may run beside others (T1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecutionMode {
    /// May.
    #[default]
    Parallel,
    /// Makes the whole batch run one after the other.
    Sequential,
}

/// What a tool answers. Partial results of a running call have the same shape.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolResult {
    /// For the model.
    #[serde(deserialize_with = "lenient::content")]
    pub content: Vec<Content>,
    /// For user interfaces; stored, not sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// For programs that call the tool; neither stored nor sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// The tool failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Model usage inside the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Ends the run after the batch, if every result says so (T7).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub terminate: bool,
}

impl ToolResult {
    /// One text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::text(text)],
            ..Self::default()
        }
    }

    /// One text block that reports a failure.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    /// Adds data for user interfaces.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// Adds data for programs.
    #[must_use]
    pub fn with_structured(mut self, structured: Value) -> Self {
        self.structured_content = Some(structured);
        self
    }
}

/// Payload of the operation `execute`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolExecute {
    /// Id of the call.
    pub tool_call_id: String,
    /// The arguments, validated.
    pub input: Map<String, Value>,
    /// What the call may know of its session.
    #[serde(flatten)]
    pub scene: ToolScene,
}

/// What a tool call may know of its session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolScene {
    /// Working directory of the session, absolute.
    pub cwd: String,
    /// The model takes images.
    pub images: bool,
    /// Image limits of the model (`inputLimits.images`), null when it has none.
    pub image_limits: Value,
}

/// The running call.
#[derive(Debug, Clone)]
pub struct ToolCtx {
    call: CallCtx,
    tool_call_id: String,
    scene: ToolScene,
}

impl ToolCtx {
    /// For tests of a tool without a kernel.
    #[must_use]
    pub fn new(call: CallCtx, tool_call_id: String, scene: ToolScene) -> Self {
        Self {
            call,
            tool_call_id,
            scene,
        }
    }

    /// Id of the call.
    #[must_use]
    pub fn tool_call_id(&self) -> &str {
        &self.tool_call_id
    }

    /// What the call may know of its session.
    #[must_use]
    pub fn scene(&self) -> &ToolScene {
        &self.scene
    }

    /// Working directory of the session, absolute.
    #[must_use]
    pub fn cwd(&self) -> &str {
        &self.scene.cwd
    }

    /// The services, bound to this call.
    #[must_use]
    pub fn host(&self) -> &Host {
        self.call.host()
    }

    /// The user: displays and dialogs.
    #[must_use]
    pub fn ui(&self) -> Ui<'_> {
        self.host().ui()
    }

    /// Whether the run was aborted. Waiting calls are dropped; loops look here.
    #[must_use]
    pub fn cancelled(&self) -> bool {
        self.call.cancelled()
    }

    /// Shows a partial result while the tool runs (`tool_execution_update`).
    pub fn update(&self, partial: &ToolResult) {
        if let Ok(bytes) = serde_json::to_vec(partial) {
            self.call.emit(&bytes);
        }
    }
}

/// The schema of an argument type in the form models are shown: no titles, no meta fields, optional
/// fields by absence from `required` instead of a null type.
#[must_use]
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    simplify(&mut schema);
    schema
}

fn simplify(schema: &mut Value) {
    let Value::Object(object) = schema else {
        return;
    };
    for noise in ["title", "$schema", "default", "format"] {
        if object
            .get(noise)
            .is_some_and(|v| noise != "title" || v.is_string())
        {
            object.shift_remove(noise);
        }
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|t| t != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(simplify);
    }
    for nested in ["items", "additionalProperties"] {
        if let Some(schema) = object.get_mut(nested) {
            simplify(schema);
        }
    }
    for union in ["anyOf", "oneOf", "allOf"] {
        if let Some(Value::Array(branches)) = object.get_mut(union) {
            branches.iter_mut().for_each(simplify);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Input {
        /// Path of the file.
        path: String,
        /// First line.
        offset: Option<u32>,
        edits: Vec<Edit>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Edit {
        old_text: String,
    }

    #[test]
    fn a_schema_shows_what_a_model_needs_and_nothing_else() {
        assert_eq!(
            schema_of::<Input>(),
            serde_json::json!({
                "type": "object",
                "properties": {
                    "path": {"description": "Path of the file.", "type": "string"},
                    "offset": {"description": "First line.", "type": "integer", "minimum": 0},
                    "edits": {"type": "array", "items": {"type": "object",
                        "properties": {"oldText": {"type": "string"}}, "required": ["oldText"]}}
                },
                "required": ["path", "edits"]
            })
        );
    }
}
