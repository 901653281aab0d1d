//! A handler that every tool call passes.

use pliant_sdk::hook::{ToolCallAnswer, ToolCallEvent};
use pliant_sdk::{Error, Host, Init, Plugin};

/// What must not be touched.
const PROTECTED: &str = "secrets";

fn create(_host: Host, _init: Init) -> Result<Plugin, Error> {
    Ok(Plugin::new().on(|call: ToolCallEvent, _ctx| async move {
        let path = call.input.get("path").and_then(|path| path.as_str());
        let is_protected = path.is_some_and(|path| path.contains(PROTECTED));
        Ok(if is_protected {
            ToolCallAnswer::block("This path is protected. Ask the user for what you need of it.")
        } else {
            ToolCallAnswer::default()
        })
    }))
}

pliant_sdk::export! {
    name: "my-plugin",
    provides: { hook "tool_call" },
    create: create,
}

#[cfg(test)]
mod tests {
    use pliant_sdk::testing::Bench;
    use serde_json::json;

    use super::*;

    #[test]
    fn protected_paths_are_blocked_and_others_pass() {
        let plugin = create(Bench::host(), Init::default()).unwrap();
        let bench = Bench::new(plugin);
        let call = |path: &str| {
            let event = json!({"toolName": "read", "toolCallId": "1", "input": {"path": path}});
            bench.hook("tool_call", event).unwrap()
        };
        assert_eq!(call("secrets/key.txt")["block"], true);
        assert_ne!(call("notes.txt")["block"], true);
    }
}
