//! The tools of the session: which there are, which are active, and calling one inside another
//! (`extensions.md` §5.4).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Session;
use crate::error::Error;
use crate::message::ToolCall;
use crate::tool::{ToolCtx, ToolResult, ToolSpec};

/// A tool of the session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolInfo {
    /// Its declaration.
    #[serde(flatten)]
    pub spec: ToolSpec,
    /// The model is told of it.
    pub active: bool,
    /// Name of the plugin or script that brought it.
    pub source: String,
}

/// How a call inside a call ended. What went wrong with it is an error result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CalledTool {
    /// The call; its id is the caller's with a number.
    pub tool_call: ToolCall,
    /// Its result.
    pub result: ToolResult,
    /// The tool failed, or was not run.
    pub is_error: bool,
    /// Wall time, milliseconds; absent when the tool did not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// A piece of the stream that a call with partial results is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CallPiece {
    /// A partial result.
    Update(Box<ToolResult>),
    /// The end.
    End(Box<CalledTool>),
}

impl Session<'_> {
    /// Names of the active tools, in their order.
    ///
    /// # Errors
    /// `unsupported` outside a session.
    pub async fn active_tools(&self) -> Result<Vec<String>, Error> {
        self.host.call("tools.active", &Value::Null).await
    }

    /// Makes these tools the active ones, from the next request on. Tools that stay active keep their
    /// place, so that saying the same again changes nothing; names that nobody registered, and hidden
    /// ones, are passed by.
    ///
    /// # Errors
    /// `unsupported` outside a session.
    pub async fn set_active_tools<N: AsRef<str>>(&self, names: &[N]) -> Result<(), Error> {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        let payload = json!({ "names": names });
        let _: Value = self.host.call("tools.set_active", &payload).await?;
        Ok(())
    }

    /// All tools that are registered, in the order of registration.
    ///
    /// # Errors
    /// `unsupported` outside a session.
    pub async fn tools(&self) -> Result<Vec<ToolInfo>, Error> {
        self.host.call("tools.list", &Value::Null).await
    }
}

impl ToolCtx {
    /// Calls another tool and waits for it. The call passes what a call of the model passes: its
    /// arguments are checked, handlers see and may block it. Dropping the future aborts the call.
    ///
    /// # Errors
    /// Only when no call can be made: this one has ended, or runs outside a session. What goes wrong
    /// with the call is an error result.
    pub async fn call_tool(&self, name: &str, arguments: Value) -> Result<CalledTool, Error> {
        let payload = json!({"name": name, "arguments": arguments});
        self.host().call("tools.call", &payload).await
    }

    /// As [`ToolCtx::call_tool`], and `show` sees what the called tool shows while it runs.
    ///
    /// # Errors
    /// As there.
    pub async fn watch_tool(
        &self,
        name: &str,
        arguments: Value,
        mut show: impl FnMut(ToolResult) + Send,
    ) -> Result<CalledTool, Error> {
        let payload = serde_json::to_vec(&json!({"name": name, "arguments": arguments}))?;
        let mut pieces = self.host().open("tools.call", payload).await?;
        while let Some(piece) = pieces.next().await {
            match serde_json::from_slice(&piece?)? {
                CallPiece::Update(partial) => show(*partial),
                CallPiece::End(called) => return Ok(*called),
            }
        }
        Err(Error::cancelled())
    }

    /// Starts a call of another tool, without waiting for it, and answers its id. It may outlive this
    /// call, but not the run that this call belongs to.
    ///
    /// # Errors
    /// As for [`ToolCtx::call_tool`].
    pub async fn start_tool(&self, name: &str, arguments: Value) -> Result<String, Error> {
        let payload = json!({"name": name, "arguments": arguments});
        self.host().call("tools.start", &payload).await
    }
}
