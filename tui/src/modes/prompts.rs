//! Prompts on their way to the session, and how they are stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pliant_kernel::pipeline::{Prompt, PromptError};
use pliant_kernel::session::{PromptEnd, Session};
use pliant_sdk::message::Message;

/// Sends prompts. Once stopped, it stops the one that runs and sends no other.
#[derive(Debug)]
pub struct Prompts<'a> {
    session: &'a Session,
    stopped: Arc<AtomicBool>,
}

impl<'a> Prompts<'a> {
    /// For one session.
    pub fn to(session: &'a Session) -> Self {
        Self {
            session,
            stopped: Arc::default(),
        }
    }

    /// Runs the prompts one after the other, closes the session, and answers the last message.
    ///
    /// # Errors
    /// When a prompt is refused, or the session cannot be stored; it is closed all the same.
    pub async fn run_all_and_close(
        &self,
        prompts: Vec<Prompt>,
    ) -> anyhow::Result<Option<Arc<Message>>> {
        let outcome = self.run_all(prompts).await;
        self.session.close("quit").await;
        outcome
    }

    /// Runs the prompts one after the other and answers the last message.
    ///
    /// # Errors
    /// As [`Prompts::run_all_and_close`].
    pub async fn run_all(&self, prompts: Vec<Prompt>) -> anyhow::Result<Option<Arc<Message>>> {
        let mut last = None;
        for prompt in prompts {
            if self.stopped.load(Ordering::SeqCst) {
                break;
            }
            let end = self.run(prompt).await?;
            if let Some(failure) = end.failure {
                return Err(failure.into());
            }
            last = end.last.or(last);
        }
        Ok(last)
    }

    /// Runs one prompt.
    ///
    /// # Errors
    /// The refusal.
    pub async fn run(&self, prompt: Prompt) -> Result<PromptEnd, PromptError> {
        // A prompt that was stopped before its run began: there was nothing to cancel yet.
        let (stopped, session) = (Arc::clone(&self.stopped), self.session.clone());
        let preflight = move |_| {
            if stopped.load(Ordering::SeqCst) {
                session.cancel();
            }
        };
        self.session.prompt(prompt, preflight).await
    }

    /// Stops what runs, without waiting for its end.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.session.cancel();
    }
}
