//! The one shape of everything that contributes: a generation of a source. Built-in code, a native
//! library, a library in a child process, a script and a test fake all look like this, and nothing
//! outside the registry knows which one it talks to (`plugin-abi.md` §9).

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use pliant_sdk::Error;
use pliant_sdk::host::{BoxFuture, Services};
use pliant_sdk::plugin::{Invocation, Plugin};
use serde::Serialize;
use serde_json::Value;

use super::vitals::Vitals;

/// One load of one source. Calls in flight hold it alive; it is dropped when the last one ends.
pub trait Generation: Send + Sync {
    /// Who this is.
    fn source(&self) -> &Source;

    /// What it contributes at the moment; ids are unique in the generation, order is the order of
    /// registration. A source may register more while it is there, and then asks the registry to
    /// [look again](super::Registry::look_again).
    fn contributions(&self) -> Arc<[Contribution]>;

    /// Runs one operation of one contribution. JSON in, JSON out. Never panics; dropping the future
    /// cancels the call.
    fn invoke(
        &self,
        contribution: u32,
        call: Invocation,
    ) -> BoxFuture<'static, Result<Vec<u8>, Error>>;

    /// Runs a lifecycle operation of the whole generation.
    ///
    /// # Errors
    /// `unsupported` for an operation the source does not know.
    fn control(&self, op: &str, payload: &[u8]) -> Result<Vec<u8>, Error>;

    /// It is registered no more: calls under way go on to their end, and whatever else it left running
    /// is to get nothing more.
    fn retire(&self) {}

    /// Why it takes no calls at present, with what to do: it is quarantined, hangs, or could not be
    /// loaded. Asked before each call of a handler, so it looks at what is known and at nothing else.
    fn fault(&self) -> Option<Error> {
        None
    }

    /// How it is doing.
    fn vitals(&self) -> Vitals {
        Vitals::default()
    }
}

/// Makes the services of a source.
pub type MakeServices = Arc<dyn Fn(&Source) -> Arc<dyn Services> + Send + Sync>;

/// Who brought a contribution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// Name, unique in the registry: a plugin's name, or a script's path.
    pub name: String,
    /// The file it came from.
    pub path: Option<PathBuf>,
    /// Where in the load order it stands.
    pub rank: Rank,
}

impl Source {
    /// A source without a file.
    pub fn inline(name: impl Into<String>, rank: Rank) -> Self {
        Self {
            name: name.into(),
            path: None,
            rank,
        }
    }
}

/// The load order, first to last (`extensions.md` §1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rank {
    /// Named on the command line.
    CommandLine,
    /// Listed in the project's settings.
    ProjectSettings,
    /// Found in the project's directory.
    Project,
    /// Listed in the user's settings.
    UserSettings,
    /// Found in the user's directory.
    User,
    /// Part of an installed package.
    Package,
    /// Ships with pliant.
    BuiltIn,
    /// Given by the embedding program.
    Inline,
}

/// What a contribution is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Something the model can call.
    Tool,
    /// A protocol that services speak.
    Wire,
    /// A service.
    Provider,
    /// A selection whose requests are routed to models.
    #[serde(rename = "virtual_model")]
    VirtualModel,
    /// A handler of an event.
    Hook,
    /// Something the user can type.
    Command,
    /// An option of the command line.
    Flag,
    /// Something a key does.
    Shortcut,
    /// Shows custom messages of a type.
    #[serde(rename = "message_renderer")]
    MessageRenderer,
    /// Shows custom entries of a type.
    #[serde(rename = "entry_renderer")]
    EntryRenderer,
    /// Shows calls of tools.
    #[serde(rename = "tool_renderer")]
    ToolRenderer,
    /// Changes Markdown before it is shown.
    #[serde(rename = "markdown_transformer")]
    MarkdownTransformer,
    /// Completes what the user types.
    Autocomplete,
    /// A server that speaks the Model Context Protocol.
    #[serde(rename = "mcp_server")]
    McpServer,
}

impl Kind {
    /// The kind of that name; unknown kinds are of a later version and are passed by.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "tool" => Some(Self::Tool),
            "wire" => Some(Self::Wire),
            "provider" => Some(Self::Provider),
            "virtual_model" => Some(Self::VirtualModel),
            "hook" => Some(Self::Hook),
            "command" => Some(Self::Command),
            "flag" => Some(Self::Flag),
            "shortcut" => Some(Self::Shortcut),
            "message_renderer" => Some(Self::MessageRenderer),
            "entry_renderer" => Some(Self::EntryRenderer),
            "tool_renderer" => Some(Self::ToolRenderer),
            "markdown_transformer" => Some(Self::MarkdownTransformer),
            "autocomplete" => Some(Self::Autocomplete),
            "mcp_server" => Some(Self::McpServer),
            _ => None,
        }
    }
}

/// One thing a source contributes.
#[derive(Debug, Clone, PartialEq)]
pub struct Contribution {
    /// Number by which the generation is asked for it.
    pub id: u32,
    /// What it is.
    pub kind: Kind,
    /// Its name: of the tool, the wire, the provider, the command, the flag, or the event of a hook.
    pub name: String,
    /// The rest of its declaration, by kind: `ToolSpec`, `ProviderSpec`, `VirtualModelSpec`, `CommandSpec`,
    /// `FlagSpec`, `ShortcutSpec`, `AutocompleteSpec`, `McpServerSpec`, or nothing.
    pub spec: Value,
}

impl Contribution {
    /// Reads what a plugin's `describe` lists. Kinds of later versions are passed by.
    ///
    /// # Errors
    /// A sentence naming the entry that is not a contribution.
    pub fn parse_all(described: Vec<Value>) -> Result<Vec<Self>, Error> {
        let mut all = Vec::with_capacity(described.len());
        for entry in described {
            let id = entry
                .get("id")
                .and_then(Value::as_u64)
                .and_then(|id| u32::try_from(id).ok());
            let kind = entry.get("kind").and_then(Value::as_str);
            let name = entry
                .get("name")
                .and_then(Value::as_str)
                .filter(|name| !name.is_empty());
            let (Some(id), Some(kind), Some(name)) = (id, kind, name) else {
                return Err(Error::invalid(format!(
                    "a contribution lacks its id, kind or name: {entry}"
                )));
            };
            let Some(kind) = Kind::parse(kind) else {
                continue;
            };
            all.push(Self {
                id,
                kind,
                name: name.to_owned(),
                spec: entry,
            });
        }
        Ok(all)
    }
}

/// A source built from in-process code with the SDK's own builder: built-ins, and fakes in tests.
pub struct InProcess {
    source: Source,
    contributions: Arc<[Contribution]>,
    plugin: Plugin,
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InProcess").field(&self.source.name).finish()
    }
}

impl InProcess {
    /// Wraps a plugin.
    ///
    /// # Errors
    /// When a contribution has no name.
    pub fn new(source: Source, plugin: Plugin) -> Result<Self, Error> {
        let contributions = Contribution::parse_all(plugin.describe())?.into();
        Ok(Self {
            source,
            contributions,
            plugin,
        })
    }
}

impl Generation for InProcess {
    fn source(&self) -> &Source {
        &self.source
    }

    fn contributions(&self) -> Arc<[Contribution]> {
        Arc::clone(&self.contributions)
    }

    fn invoke(
        &self,
        contribution: u32,
        call: Invocation,
    ) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        self.plugin.invoke(contribution, call)
    }

    fn control(&self, op: &str, payload: &[u8]) -> Result<Vec<u8>, Error> {
        self.plugin.run_control(op, payload)
    }
}
