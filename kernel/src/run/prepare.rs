//! The messages a run starts with, in their order (P41): what changed of the prompt, then what the
//! user said, what plugins had for the next turn, and what handlers add. Tool declarations join the
//! patch when the loop declares them.

use std::sync::Arc;

use pliant_sdk::Message;
use tokio_util::sync::CancellationToken;

use super::{RunHost, hooks};
use crate::prompt::{PromptEdits, PromptState, sections};

/// What handlers said of the prompt of a run; it holds for all of the run.
#[derive(Debug, Clone, Default)]
pub(super) struct RunPrompt {
    edits: PromptEdits,
    /// Stands for the whole prompt in requests; the transcript never has it (P42).
    pub(super) forced: Option<Arc<str>>,
}

/// How a run starts.
pub(super) struct Prepared {
    /// Enter after the patch.
    pub(super) messages: Vec<Message>,
    pub(super) prompt: RunPrompt,
}

/// Lets handlers speak, and gathers what the run starts with. Messages for the next turn are taken
/// last, so that nothing that ends the preparation loses them (P4).
pub(super) async fn prepare<H: RunHost>(
    host: &H,
    cancel: &CancellationToken,
    trigger: Message,
) -> Prepared {
    hooks::prepare_loadout(host, cancel).await;
    let hooks::Start {
        messages,
        mut edits,
    } = hooks::before_agent_start(host, cancel, &trigger).await;
    if let Some(names) = edits.take_selected_tools() {
        host.select_tools(&names);
    }
    host.note_prompt(edits.clone());
    let forced = edits.take_forced().map(Arc::from);
    let messages = std::iter::once(trigger)
        .chain(host.take_next_turn())
        .chain(messages);
    Prepared {
        messages: messages.collect(),
        prompt: RunPrompt { edits, forced },
    }
}

/// The difference between the prompt the transcript declares and the wanted one (M15): that of the tools
/// in force now, as the handlers of this run edited it.
pub(super) fn patch<H: RunHost>(
    host: &H,
    state: &PromptState,
    prompt: &RunPrompt,
) -> Option<Message> {
    let loadout = host.loadout(&host.registry().snapshot());
    if prompt.edits.is_empty() {
        return state.patch(loadout.sections(), host.now_ms());
    }
    let inputs = prompt.edits.applied_to(loadout.inputs().clone());
    state.patch(&sections(&inputs), host.now_ms())
}
