//! The hook points the kernel has now, and what failing handlers mean at each.

use serde::Deserialize;

/// What a handler says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct HandlerSpec {
    /// Parts of its event that it does not need. Large ones are then not made for it.
    pub without: Vec<String>,
}

macro_rules! hook_points {
    ($($(#[$doc:meta])* $point:ident = $name:literal,)*) => {
        /// A place handlers attach to. The composition rule belongs to the stage that dispatches it
        /// (`extensions.md` §3); what is common is whether a failing handler closes the gate.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum HookPoint {
            $($(#[$doc])* $point,)*
        }

        impl HookPoint {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$point),*];

            /// The event's name, as handlers register for it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$point => $name,)*
                }
            }
        }
    };
}

hook_points! {
    /// The user typed something.
    Input = "input",
    /// A prompt was accepted; its run is being prepared.
    BeforeAgentStart = "before_agent_start",
    /// A low-level run begins.
    AgentStart = "agent_start",
    /// A low-level run ends.
    AgentEnd = "agent_end",
    /// Nothing is left to do; handlers may add entries and ask for one more request.
    AgentBeforeSettle = "agent_before_settle",
    /// A session run has ended.
    AgentSettled = "agent_settled",
    /// A turn begins.
    TurnStart = "turn_start",
    /// A turn is stored; handlers may add entries and ask for one more request.
    TurnEnd = "turn_end",
    /// The conversation is about to be sent, without its system messages.
    Context = "context",
    /// The conversation is about to be sent, as it is.
    ContextWithSystem = "context_with_system",
    /// The headers of a request to a provider.
    BeforeProviderHeaders = "before_provider_headers",
    /// The body of a request to a provider.
    BeforeProviderRequest = "before_provider_request",
    /// A provider answered; its body is not read yet.
    AfterProviderResponse = "after_provider_response",
    /// One frame of a provider's stream.
    ProviderStreamEvent = "provider_stream_event",
    /// A message begins.
    MessageStart = "message_start",
    /// A piece of an assistant message.
    MessageUpdate = "message_update",
    /// A message is complete; it is not stored yet.
    MessageEnd = "message_end",
    /// A tool call is prepared.
    ToolExecutionStart = "tool_execution_start",
    /// A tool is about to run.
    ToolCall = "tool_call",
    /// A running tool shows a partial result.
    ToolExecutionUpdate = "tool_execution_update",
    /// A tool has run.
    ToolResult = "tool_result",
    /// A tool call ended.
    ToolExecutionEnd = "tool_execution_end",
    /// A session begins.
    SessionStart = "session_start",
    /// The session was named.
    SessionInfoChanged = "session_info_changed",
    /// Another session is about to take the place of this one.
    SessionBeforeSwitch = "session_before_switch",
    /// A fork of this session is about to take its place.
    SessionBeforeFork = "session_before_fork",
    /// The conversation is about to be compacted.
    SessionBeforeCompact = "session_before_compact",
    /// The conversation was compacted.
    SessionCompact = "session_compact",
    /// The conversation was not compacted.
    SessionCompactFailed = "session_compact_failed",
    /// The session is about to move to another place of its tree.
    SessionBeforeTree = "session_before_tree",
    /// The session moved to another place of its tree.
    SessionTree = "session_tree",
    /// A generation ends.
    SessionShutdown = "session_shutdown",
    /// Another model is in force.
    ModelSelect = "model_select",
    /// Another thinking level is in force.
    ThinkingLevelSelect = "thinking_level_select",
    /// The user runs a command.
    UserBash = "user_bash",
    /// Whether the files of a project count is being decided.
    ProjectTrust = "project_trust",
    /// A session has begun; handlers may name more folders of skills and templates.
    ResourcesDiscover = "resources_discover",
    /// Extensions have other servers of the Model Context Protocol now.
    McpServersChange = "mcp_servers_change",
    /// The user is asked something.
    UiPromptStart = "ui_prompt_start",
    /// The user is asked nothing more.
    UiPromptEnd = "ui_prompt_end",
}

/// Begins the names of handlers that hear what extensions say to each other (`extensions.md` §4.11); the
/// channel follows.
pub const BUS_PREFIX: &str = "bus:";

impl HookPoint {
    /// Whether this version dispatches an event of that name.
    #[must_use]
    pub fn is_known(name: &str) -> bool {
        Self::ALL.iter().any(|point| point.name() == name)
    }

    /// A failing handler blocks instead of being passed by (G5).
    #[must_use]
    pub fn fails_closed(self) -> bool {
        matches!(self, Self::ToolCall | Self::UserBash)
    }

    /// What a handler answers decides what is stored of something that has happened: an abort lets one
    /// that works on it finish.
    #[must_use]
    pub fn outlasts_an_abort(self) -> bool {
        matches!(
            self,
            Self::ToolResult | Self::MessageEnd | Self::TurnEnd | Self::AgentBeforeSettle
        )
    }

    /// Without the answer of a handler that the user kept from it, nothing goes on with what it was
    /// shown: it may be there to take a secret out.
    #[must_use]
    pub fn guards(self) -> bool {
        matches!(self, Self::Input | Self::ToolResult | Self::MessageEnd)
    }

    /// It comes for every piece of something, of which there may be thousands.
    #[must_use]
    pub fn is_frequent(self) -> bool {
        matches!(
            self,
            Self::MessageUpdate | Self::ProviderStreamEvent | Self::ToolExecutionUpdate
        )
    }
}
