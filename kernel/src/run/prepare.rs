//! The messages a run starts with, in their order (P41): what changed of the prompt, then what the
//! user said, then what plugins had for the next turn. Tool declarations join the patch when the loop declares them.

use pliant_sdk::Message;

use super::RunHost;
use crate::prompt::PromptState;

/// Builds the starting messages.
pub(super) fn messages<H: RunHost>(host: &H, state: &PromptState, prompt: Message) -> Vec<Message> {
    let patch = patch(host, state).into_iter();
    patch.chain([prompt]).chain(host.take_next_turn()).collect()
}

/// What a run goes on with that had come to its end: what was queued for it meanwhile. It would not be
/// asked for again otherwise, for its last message is an answer.
pub(super) fn queued<H: RunHost>(host: &H) -> Vec<Message> {
    let steering = host.take_steering();
    if steering.is_empty() {
        host.take_follow_up()
    } else {
        steering
    }
}

/// The difference between the prompt the transcript declares and the wanted one (M15).
pub(super) fn patch<H: RunHost>(host: &H, state: &PromptState) -> Option<Message> {
    let loadout = host.loadout(&host.registry().snapshot());
    state.patch(loadout.sections(), host.now_ms())
}
