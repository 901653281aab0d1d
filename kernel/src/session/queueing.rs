//! The queues as front ends use them (`kernel.md` §3.3, P31).

use pliant_sdk::message::Content;
use pliant_sdk::{Event, Message};

use super::entering::user_message;
use super::{Delivery, Disposition, Session, Shared, lock};
use crate::pipeline::{self, Prompt, PromptError, Scene, WhenActive};
use crate::settings::QueueMode;

impl Session {
    /// Queues a message that enters before the next request, of the active run or of the next one.
    ///
    /// # Errors
    /// When it names a command, which runs at once as a prompt but cannot wait (P12), or says nothing, or
    /// the session has ended.
    pub async fn steer(
        &self,
        text: impl Into<String>,
        images: Vec<Content>,
    ) -> Result<Disposition, PromptError> {
        self.queue(text.into(), images, WhenActive::Steer).await
    }

    /// Queues a message that enters when a run would stop.
    ///
    /// # Errors
    /// As [`Session::steer`].
    pub async fn follow_up(
        &self,
        text: impl Into<String>,
        images: Vec<Content>,
    ) -> Result<Disposition, PromptError> {
        self.queue(text.into(), images, WhenActive::FollowUp).await
    }

    async fn queue(
        &self,
        text: String,
        images: Vec<Content>,
        when: WhenActive,
    ) -> Result<Disposition, PromptError> {
        if self.0.claims.is_closed() {
            return Err(PromptError::Closed);
        }
        let prompt = Prompt {
            images,
            when_active: Some(when),
            ..Prompt::text(text)
        };
        let pass = async |scene: &Scene<'_>| pipeline::pass_to_queue(scene, prompt).await;
        let passed = self.with_scene(0, pass).await;
        self.0.publish_reports().await;
        let Some(prompt) = passed? else {
            return Ok(Disposition::Handled);
        };
        let message = user_message(&prompt, self.0.now());
        let push = || {
            lock(&self.0.queues).push(when.into(), prompt.text, message);
            true
        };
        self.0.change_queues(push).await;
        Ok(Disposition::Queued)
    }

    /// Empties both queues, of the messages of plugins too, and answers the texts of the user's,
    /// steering first (L11).
    pub async fn clear_queue(&self) -> (Vec<String>, Vec<String>) {
        let mut cleared = Default::default();
        let clear = || {
            cleared = lock(&self.0.queues).clear();
            true
        };
        self.0.change_queues(clear).await;
        cleared
    }

    /// The texts that wait, steering first.
    #[must_use]
    pub fn queued(&self) -> (Vec<String>, Vec<String>) {
        lock(&self.0.queues).shown()
    }

    /// Whether messages wait in a queue, also those that no list shows.
    #[must_use]
    pub fn has_pending(&self) -> bool {
        !lock(&self.0.queues).is_empty()
    }

    /// The messages that the next poll would deliver (L12).
    #[must_use]
    pub fn peek_queue(&self) -> Vec<Message> {
        lock(&self.0.queues).peek()
    }

    /// How many messages a queue delivers at a time.
    #[must_use]
    pub fn queue_mode(&self, queue: Delivery) -> QueueMode {
        lock(&self.0.queues).mode(queue)
    }

    /// Changes how many messages a queue delivers at a time, from its next poll on (L8).
    pub fn set_queue_mode(&self, queue: Delivery, mode: QueueMode) {
        lock(&self.0.queues).set_mode(queue, mode);
    }
}

impl From<WhenActive> for Delivery {
    fn from(when: WhenActive) -> Self {
        match when {
            WhenActive::Steer => Self::Steer,
            WhenActive::FollowUp => Self::FollowUp,
        }
    }
}

impl Shared {
    /// Changes the queues and, if `change` did, announces them. One change after the other, so that
    /// the last announcement is how they stand.
    pub(super) async fn change_queues(&self, change: impl FnOnce() -> bool + Send) -> bool {
        let _one_at_a_time = self.announcing.lock().await;
        let changed = change();
        if changed {
            let (steering, follow_up) = lock(&self.queues).shown();
            let event = Event::QueueUpdate {
                steering,
                follow_up,
            };
            self.subscribers.publish(event).await;
        }
        changed
    }
}
