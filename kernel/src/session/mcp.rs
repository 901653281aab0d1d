//! The servers of the Model Context Protocol that extensions register (`extensions.md` §4.9). The kernel
//! knows no protocol: it keeps the list, and tells whoever connects them that it has changed.

use std::sync::{Arc, Mutex};

use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::mcp::McpServerSpec;
use serde_json::{Value, json};

use super::{Shared, lock};
use crate::registry::{HandlerFailure, HookPoint, Snapshot};

/// The list as it was last told.
#[derive(Default)]
pub(super) struct KnownServers(Mutex<Value>);

/// Every server with its entry and the extension that has it.
fn list(snapshot: &Snapshot) -> Value {
    let servers = snapshot.mcp_servers().map(|server| {
        json!({
            "name": server.spec.name,
            "config": server.spec.config,
            "source": server.source().name,
        })
    });
    servers.collect()
}

impl Shared {
    /// The servers that are registered.
    pub(super) fn mcp_servers(&self) -> Value {
        list(&self.equipment.registry.snapshot())
    }

    /// Whoever begins with the session asks for the list; it is told what changes from then on.
    pub(super) fn know_mcp_servers(&self) {
        *lock(&self.mcp_servers.0) = self.mcp_servers();
    }

    /// Something was registered or withdrawn: tells `mcp_servers_change`, if it was a server.
    pub(super) fn note_mcp_servers(self: &Arc<Self>) {
        let now = self.mcp_servers();
        if std::mem::replace(&mut *lock(&self.mcp_servers.0), now.clone()) != now {
            let point = HookPoint::McpServersChange;
            self.tell_beside(point, json!({"type": point.name(), "servers": now}));
        }
    }

    /// Servers that nobody connects are a surprise to whoever registered them.
    pub(super) fn report_unconnected(&self) {
        let snapshot = self.equipment.registry.snapshot();
        let connector = HookPoint::McpServersChange.name();
        if !snapshot.handlers(connector).is_empty() {
            return;
        }
        for server in snapshot.mcp_servers() {
            let name = &server.spec.name;
            lock(&self.reports).push(HandlerFailure {
                source: server.source().clone(),
                event: "register_mcp_server".into(),
                error: Error::failed(format!(
                    "nothing connects the MCP server \"{name}\": no extension has a handler of \"{connector}\". Add one that speaks the protocol."
                )),
            });
        }
    }

    /// Whether a source may register a server of that name.
    ///
    /// # Errors
    /// The one that has the name.
    pub(super) fn claim_mcp_server(&self, source: &str, name: &str) -> Result<(), Error> {
        let snapshot = self.equipment.registry.snapshot();
        let mut all = snapshot.mcp_servers();
        let other = all.find(|server| {
            let is_own = server.source().name == source && server.spec.name == name;
            !is_own && McpServerSpec::same_name(&server.spec.name, name)
        });
        match other {
            None => Ok(()),
            Some(other) => {
                let (owner, theirs) = (&other.source().name, &other.spec.name);
                Err(Error::new(
                    code::INVALID,
                    format!(
                        "the name \"{name}\" is taken: \"{owner}\" has registered the MCP server \"{theirs}\". Choose another name."
                    ),
                ))
            }
        }
    }
}
