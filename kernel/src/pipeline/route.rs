//! A run is active: the prompt joins one of its queues, or is refused (P29, P30).

use super::{Passage, Prompt, PromptError};

/// What to do with a prompt while a run is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenActive {
    /// Enter before the next request.
    Steer,
    /// Enter when the run would stop.
    FollowUp,
}

impl WhenActive {
    /// As the protocols say it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Steer => "steer",
            Self::FollowUp => "followUp",
        }
    }
}

/// Routes a prompt into the active run.
pub(super) fn queue(prompt: Prompt) -> Result<Passage, PromptError> {
    match prompt.when_active {
        Some(how) => Ok(Passage::Queue(prompt, how)),
        None => Err(PromptError::Busy),
    }
}
