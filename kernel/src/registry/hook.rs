//! The hook points the kernel has now, and what failing handlers mean at each.

/// A place handlers attach to. The composition rule belongs to the stage that dispatches it
/// (`extensions.md` §3); what is common is whether a failing handler closes the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HookPoint {
    /// The user typed something.
    Input,
    /// A tool is about to run.
    ToolCall,
    /// A tool has run.
    ToolResult,
    /// A message is complete.
    MessageEnd,
    /// A session begins.
    SessionStart,
    /// A generation ends.
    SessionShutdown,
    /// A loop event that only notifies.
    AgentStart,
    /// A loop event that only notifies.
    AgentEnd,
    /// A loop event that only notifies.
    AgentSettled,
    /// A loop event that only notifies.
    TurnStart,
    /// A loop event that only notifies.
    TurnEnd,
    /// A loop event that only notifies.
    MessageStart,
    /// A loop event that only notifies.
    MessageUpdate,
    /// A loop event that only notifies.
    ToolExecutionStart,
    /// A loop event that only notifies.
    ToolExecutionUpdate,
    /// A loop event that only notifies.
    ToolExecutionEnd,
}

impl HookPoint {
    /// All of them.
    const ALL: [Self; 16] = [
        Self::Input,
        Self::ToolCall,
        Self::ToolResult,
        Self::MessageEnd,
        Self::SessionStart,
        Self::SessionShutdown,
        Self::AgentStart,
        Self::AgentEnd,
        Self::AgentSettled,
        Self::TurnStart,
        Self::TurnEnd,
        Self::MessageStart,
        Self::MessageUpdate,
        Self::ToolExecutionStart,
        Self::ToolExecutionUpdate,
        Self::ToolExecutionEnd,
    ];

    /// Whether this version dispatches an event of that name.
    #[must_use]
    pub fn is_known(name: &str) -> bool {
        Self::ALL.iter().any(|point| point.name() == name)
    }

    /// Every one of them.
    #[must_use]
    pub fn all() -> &'static [Self] {
        &Self::ALL
    }

    /// The event's name, as handlers register for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::ToolCall => "tool_call",
            Self::ToolResult => "tool_result",
            Self::MessageEnd => "message_end",
            Self::SessionStart => "session_start",
            Self::SessionShutdown => "session_shutdown",
            Self::AgentStart => "agent_start",
            Self::AgentEnd => "agent_end",
            Self::AgentSettled => "agent_settled",
            Self::TurnStart => "turn_start",
            Self::TurnEnd => "turn_end",
            Self::MessageStart => "message_start",
            Self::MessageUpdate => "message_update",
            Self::ToolExecutionStart => "tool_execution_start",
            Self::ToolExecutionUpdate => "tool_execution_update",
            Self::ToolExecutionEnd => "tool_execution_end",
        }
    }

    /// A failing handler blocks instead of being passed by (G5).
    #[must_use]
    pub fn fails_closed(self) -> bool {
        matches!(self, Self::ToolCall)
    }
}
