//! Messages that plugins send in the user's name. The call that sends one returns at once, so that no
//! handler waits for the run it is part of; here they pass the stages one after the other, in the order
//! they were sent. A run waits for them before it looks into its queues or ends, so a message sent in
//! one of its handlers reaches it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pliant_sdk::Error;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::entering::{Asked, Entered, Preflight, Trigger};
use super::{Session, Shared};
use crate::pipeline::Prompt;
use crate::registry::Source;

/// How long a chain of messages may be that handlers of `input` send for each other: one that hears its
/// own would never end.
const DEEPEST: u32 = 10;

/// A message on its way.
pub(super) struct Letter {
    pub(super) prompt: Prompt,
    pub(super) sender: Source,
    /// How many handlers of `input` it came of.
    pub(super) depth: u32,
}

/// The messages on their way, and the tasks that nobody else waits for. They end with the session.
pub(super) struct Outbox {
    letters: Mutex<Letters>,
    delivered: Notify,
    tasks: Mutex<JoinSet<()>>,
    runtime: Handle,
}

#[derive(Default)]
struct Letters {
    waiting: VecDeque<Letter>,
    /// Somebody passes them on.
    working: bool,
}

impl Outbox {
    /// An empty one, whose tasks run where this is called.
    pub(super) fn here() -> Self {
        Self {
            letters: Mutex::default(),
            delivered: Notify::default(),
            tasks: Mutex::default(),
            runtime: Handle::current(),
        }
    }

    /// Returns when nothing is on its way.
    pub(super) async fn arrived(&self) {
        loop {
            // Made before the look: a change in between wakes it.
            let delivered = self.delivered.notified();
            if !self.letters().working {
                return;
            }
            delivered.await;
        }
    }

    /// Runs something beside everything else, until it ends or the session does.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(task, &self.runtime);
    }

    /// The next one; with none, whoever waits for them is woken.
    fn next(&self) -> Option<Letter> {
        let mut letters = self.letters();
        let next = letters.waiting.pop_front();
        if next.is_none() {
            letters.working = false;
            drop(letters);
            self.delivered.notify_waiters();
        }
        next
    }

    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Held by who passes letters on. Should that end before its time, nobody waits for it for ever, and the
/// next letter finds somebody new.
struct Working<'a>(&'a Outbox);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.letters().working = false;
            self.0.delivered.notify_waiters();
        }
    }
}

impl Shared {
    /// Sends a message on its way.
    pub(super) fn send(self: &Arc<Self>, letter: Letter) {
        let idle = {
            let mut letters = self.outbox.letters();
            letters.waiting.push_back(letter);
            !std::mem::replace(&mut letters.working, true)
        };
        if idle {
            let session = Session(Arc::clone(self));
            self.outbox.spawn(async move {
                let _working = Working(&session.0.outbox);
                while let Some(letter) = session.0.outbox.next() {
                    session.deliver(letter).await;
                }
            });
        }
    }
}

impl Session {
    async fn deliver(&self, letter: Letter) {
        let Letter {
            prompt,
            sender,
            depth,
        } = letter;
        if depth > DEEPEST {
            let event = "send_user_message";
            let error = Error::failed(format!(
                "the handlers of \"input\" send a message for each message, {DEEPEST} times over; those that extensions send have the source \"extension\""
            ));
            self.0.tell_failure(Some(sender), event, error).await;
            return;
        }
        let is_command = self.is_command(&prompt);
        let asked = Asked {
            trigger: Trigger::Prompt(prompt),
            preflight: Preflight::default(),
            sender: Some(sender.clone()),
            depth,
        };
        if is_command {
            // A command may wait for the run that waits for this.
            let session = self.clone();
            self.0.outbox.spawn(async move {
                session.start_and_tell(asked, sender).await;
            });
        } else {
            self.start_and_tell(asked, sender).await;
        }
    }

    async fn start_and_tell(&self, asked: Asked, sender: Source) {
        let event = "send_user_message";
        let started = self.start_beside(asked, Some(sender.clone()), event).await;
        if let Err(error) = started {
            self.0.tell_failure(Some(sender), event, error).await;
        }
    }

    /// Lets something in whose run nobody waits for.
    pub(super) async fn start_beside(
        &self,
        asked: Asked,
        sender: Option<Source>,
        event: &'static str,
    ) -> Result<(), Error> {
        let entered = self.enter(asked).await;
        let entered = entered.map_err(|refusal| Error::failed(refusal.to_string()))?;
        if let Entered::Run(starting) = entered {
            let session = self.clone();
            self.0.outbox.spawn(async move {
                if let Some(failure) = session.drive(starting).await.failure {
                    session.0.tell_failure(sender, event, failure).await;
                }
            });
        }
        Ok(())
    }
}
