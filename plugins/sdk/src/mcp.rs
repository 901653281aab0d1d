//! Servers of the Model Context Protocol that plugins bring (`extensions.md` §4.9, `mcp.md` §1). They are
//! declared here; whoever has a handler of `mcp_servers_change` connects them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::Error;

/// A server as the registry keeps it: its name and the fields of an entry of `mcpServers`.
///
/// ```
/// use pliant_sdk::mcp::McpServerSpec;
/// use pliant_sdk::Plugin;
/// use serde_json::json;
///
/// let server = McpServerSpec::new("docs", json!({"url": "https://docs.example/mcp"})).unwrap();
/// let plugin = Plugin::new().mcp_server(server);
/// assert!(McpServerSpec::new("docs", json!({"args": ["-y"]})).is_err());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct McpServerSpec {
    /// Name of letters, digits, `_` and `-`.
    pub name: String,
    /// The entry. Fields that are not known are kept.
    pub config: Map<String, Value>,
}

impl McpServerSpec {
    /// A server of that name with an entry of `mcpServers`.
    ///
    /// # Errors
    /// `invalid`, when nothing could be connected with it.
    pub fn new(name: impl Into<String>, config: Value) -> Result<Self, Error> {
        let name = name.into();
        let Value::Object(config) = config else {
            return Err(Error::invalid(format!(
                "the server \"{name}\" needs a map with `command` or `url`"
            )));
        };
        let server = Self { name, config };
        server.check()?;
        Ok(server)
    }

    /// What is wrong with it, if anything is.
    ///
    /// # Errors
    /// `invalid`.
    pub fn check(&self) -> Result<(), Error> {
        let Self { name, config } = self;
        let wrong = |what: String| Err(Error::invalid(format!("the server \"{name}\" {what}")));
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(fits) {
            return wrong("needs a name of letters, digits, \"_\" and \"-\"".to_owned());
        }
        let text = |field: &str| match config.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text)),
            Some(_) => Err(Error::invalid(format!(
                "the server \"{name}\" has a `{field}` that is no text"
            ))),
        };
        let kind = text("type")?.map_or("", String::as_str);
        match (kind, text("command")?, text("url")?) {
            ("sse", ..) => wrong(
                "has the type \"sse\", which is no longer spoken; try \"http\" and a URL that ends in /mcp"
                    .to_owned(),
            ),
            ("" | "stdio", Some(_), None) => Ok(()),
            ("" | "http" | "streamable-http", None, Some(url)) => {
                match url.starts_with("https://") || url.starts_with("http://") {
                    true => Ok(()),
                    false => wrong(format!("has a URL that is not http or https: {url}")),
                }
            }
            (_, Some(_), Some(_)) => wrong("has a `command` and a `url`; it takes one".to_owned()),
            (_, None, None) => wrong("needs a `command` or a `url`".to_owned()),
            (kind, ..) => wrong(format!(
                "has the type \"{kind}\", which does not go with it; it is \"stdio\" with a `command` and \"http\" with a `url`"
            )),
        }
    }

    /// Whether two names mean the same server: `-` and `_` are one.
    #[must_use]
    pub fn same_name(one: &str, other: &str) -> bool {
        one.replace('-', "_") == other.replace('-', "_")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_server_is_refused_with_what_is_wrong() {
        // extensions §4.9, mcp §1
        let refused = |name: &str, config: Value, part: &str| {
            let error = McpServerSpec::new(name, config).unwrap_err();
            assert!(error.message.contains(part), "{error}");
        };
        assert!(McpServerSpec::new("a-b_1", json!({"command": "npx", "args": []})).is_ok());
        assert!(
            McpServerSpec::new(
                "a",
                json!({"url": "http://localhost:1/mcp", "type": "http"})
            )
            .is_ok()
        );
        refused("a b", json!({"command": "x"}), "needs a name");
        refused("", json!({"command": "x"}), "needs a name");
        refused("a", json!([]), "needs a map");
        refused("a", json!({}), "needs a `command` or a `url`");
        refused("a", json!({"command": ""}), "no text");
        refused("a", json!({"command": 3}), "no text");
        refused(
            "a",
            json!({"command": "x", "url": "https://x"}),
            "takes one",
        );
        refused("a", json!({"url": "ftp://x"}), "not http");
        refused(
            "a",
            json!({"url": "https://x", "type": "sse"}),
            "no longer spoken",
        );
        refused(
            "a",
            json!({"url": "https://x", "type": "stdio"}),
            "does not go with it",
        );
        refused(
            "a",
            json!({"command": "x", "type": "http"}),
            "does not go with it",
        );
    }
}
