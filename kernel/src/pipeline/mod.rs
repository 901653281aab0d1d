//! What a prompt passes before a run, one stage after another; the first that keeps it decides
//! (`kernel.md` §5). The pipeline decides and answers; the session then does what was decided.
//!
//! Order: command → is the session at something else? → input handlers → skills and templates → a run
//! is active? → model and key.

mod command;
mod expand;
mod input;
mod preflight;
mod route;

use pliant_sdk::message::Content;
use thiserror::Error;

use crate::registry::{Callers, Lender, Snapshot};
use crate::resources::Resources;

pub use preflight::{Readiness, key_advice};
pub use route::WhenActive;

/// A prompt on its way.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prompt {
    /// What the user typed, or what became of it.
    pub text: String,
    /// Attached images.
    pub images: Vec<Content>,
    /// Where it came from.
    pub origin: Origin,
    /// What to do while a run is active.
    pub when_active: Option<WhenActive>,
    /// Taken as it is: no command, skill or template (P19).
    pub literal: bool,
}

impl Prompt {
    /// A prompt typed by the user.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

/// Where a prompt came from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Origin {
    /// A person.
    #[default]
    Interactive,
    /// A program.
    Rpc,
    /// An extension.
    Extension,
}

impl Origin {
    fn as_str(self) -> &'static str {
        match self {
            Self::Interactive => "interactive",
            Self::Rpc => "rpc",
            Self::Extension => "extension",
        }
    }
}

/// What the pipeline decided.
#[derive(Debug, PartialEq)]
pub enum Passage {
    /// Start a run with it.
    Start(Prompt),
    /// A command or handler has dealt with it.
    Handled,
    /// Put it in a queue of the active run.
    Queue(Prompt, WhenActive),
}

/// Why a prompt is refused. The session is as before (P4).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PromptError {
    #[error(
        "The agent is at work. Send the prompt as \"steer\" (before its next request) or as \"followUp\" (when it would stop)."
    )]
    Busy,
    #[error("The conversation is being compacted. Send the prompt when that has ended.")]
    Compacting,
    #[error(
        "The session is moving to another place of its tree. Send the prompt when it is there."
    )]
    Navigating,
    #[error("The session has ended. Open it again to go on with it.")]
    Closed,
    #[error(
        "The command /{name} cannot wait in a queue. Send it as a prompt; it then runs at once."
    )]
    Command { name: String },
    #[error(
        "The prompt was stopped while \"{extension}\" still worked on it, so it was not sent. Send it again."
    )]
    Stopped { extension: String },
    #[error("The prompt is empty. Say what you want done.")]
    Empty,
    #[error(
        "No model is selected. Name one with --provider and --model; `pliant --list-models` shows the usable ones."
    )]
    NoModel,
    #[error("There is no key for the provider \"{provider}\". {advice}")]
    NoKey { provider: String, advice: String },
}

/// What the stages look at.
pub struct Scene<'a> {
    /// The registry, pinned for this prompt's stages.
    pub snapshot: &'a Snapshot,
    /// Skills and prompt templates.
    pub resources: &'a Resources,
    /// What handlers are called with.
    pub callers: Callers<'a>,
    /// What commands are called with in place of that.
    pub command_lender: &'a dyn Lender,
    /// A run is active now.
    pub run_active: &'a (dyn Fn() -> bool + Send + Sync),
    /// Whether a run could send its first request now.
    pub readiness: &'a (dyn Fn() -> Readiness + Send + Sync),
}

/// Runs the command that the prompt names, if there is one; it consumes the prompt (stage 1).
pub async fn command(scene: &Scene<'_>, prompt: &Prompt) -> bool {
    command::dispatch(scene, prompt).await
}

/// Whether the prompt names a command.
#[must_use]
pub fn is_command(snapshot: &Snapshot, prompt: &Prompt) -> bool {
    command::named(snapshot, prompt).is_some()
}

/// Passes a prompt that is no command through the other stages.
///
/// # Errors
/// The refusal of the stage that refused it.
pub async fn pass(scene: &Scene<'_>, prompt: Prompt) -> Result<Passage, PromptError> {
    let Some(prompt) = spoken(scene, prompt).await? else {
        return Ok(Passage::Handled);
    };
    if (scene.run_active)() {
        return route::queue(prompt);
    }
    (scene.readiness)().check()?;
    Ok(Passage::Start(prompt))
}

/// Passes a message that is meant for a queue, whether a run is active or not (P31). `None` when a
/// handler has dealt with it.
///
/// # Errors
/// When it names a command, which cannot be queued (P12), or says nothing.
pub async fn pass_to_queue(
    scene: &Scene<'_>,
    prompt: Prompt,
) -> Result<Option<Prompt>, PromptError> {
    if let Some(command) = command::named(scene.snapshot, &prompt) {
        let name = command.name.to_owned();
        return Err(PromptError::Command { name });
    }
    spoken(scene, prompt).await
}

/// What handlers, skills and templates make of a prompt; `None` when a handler has dealt with it.
async fn spoken(scene: &Scene<'_>, prompt: Prompt) -> Result<Option<Prompt>, PromptError> {
    let Some(prompt) = input::handle(scene, prompt).await? else {
        return Ok(None);
    };
    let prompt = expand::expand(scene, prompt);
    if prompt.text.trim().is_empty() && prompt.images.is_empty() {
        return Err(PromptError::Empty);
    }
    Ok(Some(prompt))
}
