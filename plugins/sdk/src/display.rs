//! What plugins show in place of what a front end would show by itself: custom messages and entries,
//! calls of tools, Markdown (`extensions.md` §4.10). It changes the display and nothing else: neither what
//! is stored nor what a model reads.
//!
//! A renderer that answers nothing leaves it to the next one, and at last to the front end. One that fails
//! is reported and left out there; after three failures in a row it is not asked again until its plugin is
//! loaded anew.
//!
//! ```
//! use pliant_sdk::testing::Bench;
//! use pliant_sdk::view::View;
//! use pliant_sdk::Plugin;
//! use serde_json::json;
//!
//! let plugin = Plugin::new().message_renderer("weather", |shown, _ctx| async move {
//!     let degrees = shown.message.details.as_ref().and_then(|it| it["degrees"].as_i64());
//!     Ok(degrees.map(|degrees| View::framed("Weather", [View::text(format!("{degrees} °C"))])))
//! });
//! let bench = Bench::new(plugin);
//! let message = json!({"customType": "weather", "content": "", "display": true, "details": {"degrees": 21}});
//! let view = bench.view("message_renderer", "weather", json!({"message": message})).unwrap();
//! assert_eq!(view.unwrap().to_plain(), "Weather\n  21 °C");
//! ```

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::host::Host;
use crate::message::CustomMessage;
use crate::tool::ToolResult;
use crate::view::View;

/// The service that a renderer of tools asks for what would be shown without it.
pub const NEXT_VIEW: &str = "view.next";

/// How something is to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ViewOptions {
    /// Whether the user wants to see all of it.
    pub expanded: bool,
    /// Columns there are.
    pub width: u16,
}

impl Default for ViewOptions {
    fn default() -> Self {
        Self {
            expanded: false,
            width: 80,
        }
    }
}

/// A custom message that is to be shown.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageShown {
    /// The message.
    pub message: CustomMessage,
    /// How.
    #[serde(default)]
    pub options: ViewOptions,
}

/// A custom entry that is to be shown.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryShown {
    /// The entry as it is stored; `customType` and `data` are the plugin's.
    pub entry: Value,
    /// How.
    #[serde(default)]
    pub options: ViewOptions,
}

/// Which half of a tool call is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolPart {
    /// What is called, with which arguments.
    Call,
    /// What came of it.
    Result,
}

/// Half of a tool call that is to be shown.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolShown {
    /// Which half.
    pub part: ToolPart,
    /// Name of the tool.
    pub tool_name: String,
    /// Id of the call.
    #[serde(default)]
    pub tool_call_id: String,
    /// The arguments; while they arrive, as far as they are there.
    #[serde(default)]
    pub input: Value,
    /// What came of it, or came so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ToolResult>,
    /// It is still under way.
    #[serde(default)]
    pub is_partial: bool,
    /// How.
    #[serde(default)]
    pub options: ViewOptions,
}

/// Where Markdown is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Surface {
    /// What the user said.
    User,
    /// What the model says.
    Assistant,
    /// What the model thinks.
    AssistantThinking,
    /// Messages of extensions.
    Custom,
    /// Summaries.
    Summary,
    /// What is new in a version.
    Changelog,
}

/// Markdown that is to be shown.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MarkdownShown {
    /// The source, as the transformers before have left it.
    pub markdown: String,
    /// Where.
    pub surface: Surface,
}

impl Host {
    /// What would be shown without this renderer of tools: by the ones after it, or the tool itself. `None`
    /// leaves it to the front end.
    ///
    /// # Errors
    /// `unsupported` outside a renderer of tools; what the next one reports.
    pub async fn next_view(&self) -> Result<Option<View>, Error> {
        self.call(NEXT_VIEW, &Value::Null).await
    }
}
