//! `register_mcp_server("name", #{command, args, env} or #{url, headers})`.

use std::sync::Arc;

use pliant_kernel::registry::Kind;
use pliant_sdk::Error;
use pliant_sdk::mcp::McpServerSpec;
use rhai::{Dynamic, Map};
use serde_json::json;

use super::{Handler, Registration, Running, unsupported};
use crate::call::{ScriptResult, fail};
use crate::convert;
use crate::program::Program;

struct McpServer;

/// Reads a server's entry.
pub(crate) fn declare(_: &Program, name: &str, mut fields: Map) -> ScriptResult<Registration> {
    fields.remove("name");
    let config = convert::to_typed(&Dynamic::from(fields))?;
    let server = McpServerSpec::new(name, config).map_err(|error| fail(error.message))?;
    Ok(Registration {
        kind: Kind::McpServer,
        name: name.to_owned(),
        spec: json!(server),
        handler: Arc::new(McpServer),
    })
}

impl Handler for McpServer {
    fn run(&self, op: &str, _: &[u8], _: &Running<'_>) -> Result<Vec<u8>, Error> {
        Err(unsupported("MCP server", op))
    }
}
