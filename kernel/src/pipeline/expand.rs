//! Skills (`/skill:name`) and prompt templates (`/name args`). Neither is loaded by this version, so a
//! text that names one stays as it is, which is the rule for unknown names (P20, P26).

use super::Prompt;

/// The prompt with its skill or template in place of the slash word.
pub(super) fn expand(prompt: Prompt) -> Prompt {
    prompt
}
