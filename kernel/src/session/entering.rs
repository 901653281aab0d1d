//! The way into the session: what was asked passes the stages, then starts a run, joins the queue of the
//! active one, or is put off until the last one has settled (`kernel.md` §5.1).

use std::sync::Arc;

use pliant_sdk::host::Services;
use pliant_sdk::message::{Content, Extra, MessageContent, UserMessage};
use pliant_sdk::{Error, Event, Message};

use super::claim::{Claimed, Passing, Standing};
use super::{Delivery, Disposition, PromptEnd, Session, Shared, lock};
use crate::host::actions::{CallScope, Successor};
use crate::pipeline::{self, Passage, Prompt, PromptError, Readiness, Scene, WhenActive};
use crate::registry::{Callers, HandlerFailure, Lender, Source};
use crate::run;

/// Something that wants a run.
pub(super) struct Asked {
    pub(super) trigger: Trigger,
    pub(super) preflight: Preflight,
    /// The plugin that sent it, which hears of a refusal as an error of its own.
    pub(super) sender: Option<Source>,
    /// How many handlers of `input` it came of.
    pub(super) depth: u32,
}

impl std::fmt::Debug for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.trigger.fmt(f)
    }
}

/// What a run begins with.
#[derive(Debug)]
pub(super) enum Trigger {
    /// A prompt that is to pass the stages.
    Prompt(Prompt),
    /// A prompt that has passed them and found the session changed meanwhile.
    Passed(Prompt),
    /// A message of a plugin, which passes no stages (R2).
    Message(Box<Message>),
}

/// Who wants to know what becomes of a prompt. Told once: telling uses it up (P2).
#[derive(Default)]
pub(super) struct Preflight(Option<Box<dyn FnOnce(Disposition) + Send>>);

impl Preflight {
    pub(super) fn new(tell: impl FnOnce(Disposition) + Send + 'static) -> Self {
        Self(Some(Box::new(tell)))
    }

    fn tell(mut self, disposition: Disposition) {
        if let Some(tell) = self.0.take() {
            tell(disposition);
        }
    }
}

impl Drop for Preflight {
    /// Nobody will deal with the prompt any more: its run was given up by who waited for it.
    fn drop(&mut self) {
        if let Some(tell) = self.0.take() {
            tell(Disposition::Rejected);
        }
    }
}

/// What became of something that was asked.
pub(super) enum Entered {
    /// It starts a run; the session is claimed for it.
    Run(Starting),
    /// A command or handler has dealt with it, or it waits in a queue of the active run.
    Done,
    /// It is put off until the run that is settling has settled.
    Deferred,
}

/// A run that is about to begin.
pub(super) struct Starting {
    claimed: Claimed,
    trigger: Trigger,
    preflight: Preflight,
}

/// One attempt to get in.
enum Attempt {
    Run(Claimed, Trigger),
    Handled,
    Queued,
    /// The session began to settle meanwhile.
    Late(Trigger),
}

impl Session {
    /// Lets something in, or says why not. The observer is told of everything but a run, which tells
    /// it when it has been prepared.
    pub(super) async fn enter(&self, asked: Asked) -> Result<Entered, PromptError> {
        let mut asked = asked;
        loop {
            let Asked {
                trigger,
                preflight,
                sender,
                depth,
            } = match self.0.claims.defer(asked) {
                None => return Ok(Entered::Deferred),
                Some(asked) => asked,
            };
            let attempt = self.attempt(trigger, depth).await;
            self.0.publish_reports().await;
            match attempt {
                Ok(Attempt::Run(claimed, trigger)) => {
                    return Ok(Entered::Run(Starting {
                        claimed,
                        trigger,
                        preflight,
                    }));
                }
                Ok(Attempt::Handled) => preflight.tell(Disposition::Handled),
                Ok(Attempt::Queued) => preflight.tell(Disposition::Queued),
                Ok(Attempt::Late(trigger)) => {
                    asked = Asked {
                        trigger,
                        preflight,
                        sender,
                        depth,
                    };
                    continue;
                }
                Err(refusal) => {
                    preflight.tell(Disposition::Rejected);
                    return Err(refusal);
                }
            }
            return Ok(Entered::Done);
        }
    }

    /// Runs until everything has settled, also what was put off until then (P5).
    pub(super) async fn drive(&self, starting: Starting) -> PromptEnd {
        let Starting {
            mut claimed,
            trigger,
            preflight,
        } = starting;
        let end = self.run(&claimed, trigger, preflight).await;
        loop {
            self.0.outbox.arrived().await;
            let Some(asked) = claimed.next_deferred() else {
                return end;
            };
            self.perform(asked, &mut claimed).await;
        }
    }

    /// Does what was put off, in the session that its settling run still has. Nobody waits for it, so
    /// what is wrong with it is told.
    async fn perform(&self, asked: Asked, claimed: &mut Claimed) {
        let Asked {
            trigger,
            preflight,
            sender,
            depth,
        } = asked;
        if let Trigger::Prompt(prompt) = &trigger
            && self.is_command(prompt)
        {
            self.run_beside(prompt.clone(), preflight);
            return;
        }
        let event = trigger.service();
        let failure = match self.start_of(trigger, depth).await {
            Ok(Some(trigger)) => match claimed.run_again() {
                Ok(()) => self.run(claimed, trigger, preflight).await.failure,
                Err(refusal) => {
                    preflight.tell(Disposition::Rejected);
                    Some(Error::failed(refusal.to_string()))
                }
            },
            Ok(None) => {
                preflight.tell(Disposition::Handled);
                None
            }
            Err(refusal) => {
                preflight.tell(Disposition::Rejected);
                Some(Error::failed(refusal.to_string()))
            }
        };
        self.0.publish_reports().await;
        if let Some(failure) = failure {
            self.0.tell_failure(sender, event, failure).await;
        }
    }

    /// Whether a prompt names a command now.
    pub(super) fn is_command(&self, prompt: &Prompt) -> bool {
        pipeline::is_command(&self.0.equipment.registry.snapshot(), prompt)
    }

    /// Runs a command that was put off. Nobody waits for it: it may itself wait until the session is
    /// idle.
    fn run_beside(&self, prompt: Prompt, preflight: Preflight) {
        let session = self.clone();
        self.0.outbox.spawn(async move {
            let command = async |scene: &Scene<'_>| pipeline::command(scene, &prompt).await;
            session.with_scene_of(0, None, command).await;
            session.0.publish_reports().await;
            preflight.tell(Disposition::Handled);
        });
    }

    /// What a run begins with that was put off; `None` when a command or handler has dealt with it.
    async fn start_of(&self, trigger: Trigger, depth: u32) -> Result<Option<Trigger>, PromptError> {
        let Some((trigger, _passing)) = self.pass(trigger, depth).await? else {
            return Ok(None);
        };
        self.readiness().check()?;
        Ok(Some(trigger))
    }

    async fn run(&self, claimed: &Claimed, trigger: Trigger, preflight: Preflight) -> PromptEnd {
        lock(&self.0.state).tools.run_starts();
        let message = trigger.into_message(self.0.now());
        let started = || preflight.tell(Disposition::Started);
        let end = run::run(&self.0, message, &claimed.cancel, started).await;
        PromptEnd {
            last: end.last,
            failure: end.failure,
            deferred: false,
        }
    }

    /// The reservation is kept until the session is claimed, so that nothing moves the tree in between
    /// (P7).
    async fn attempt(&self, trigger: Trigger, depth: u32) -> Result<Attempt, PromptError> {
        match self.pass(trigger, depth).await? {
            Some((trigger, _passing)) => self.admit(trigger).await,
            None => Ok(Attempt::Handled),
        }
    }

    /// Claims the session, or joins the run that has it: of several that arrive together one starts a
    /// run, and for the others it is active (P6).
    async fn admit(&self, trigger: Trigger) -> Result<Attempt, PromptError> {
        let mut trigger = trigger;
        loop {
            if self.0.claims.standing() != Standing::Running {
                self.readiness().check()?;
            }
            let claimed = match self.0.claims.claim() {
                Ok(claimed) => claimed,
                Err(Standing::Running) => match self.enqueue(trigger).await? {
                    None => return Ok(Attempt::Queued),
                    Some(back) => {
                        trigger = back;
                        continue;
                    }
                },
                Err(Standing::Changing) => {
                    self.0.claims.changed().await;
                    continue;
                }
                Err(other) => match other.refusal() {
                    Some(refusal) => return Err(refusal),
                    None => return Ok(Attempt::Late(trigger)),
                },
            };
            return Ok(Attempt::Run(claimed, trigger));
        }
    }

    /// Queues something into the active run; gives it back when there is none any more.
    async fn enqueue(&self, trigger: Trigger) -> Result<Option<Trigger>, PromptError> {
        let prompt = match trigger {
            Trigger::Prompt(prompt) | Trigger::Passed(prompt) => prompt,
            Trigger::Message(message) => {
                let queued = self.0.claims.while_running(|| {
                    lock(&self.0.queues).push_unseen(Delivery::Steer, (*message).clone());
                });
                return Ok(queued.is_none().then_some(Trigger::Message(message)));
            }
        };
        let delivery = match prompt.when_active.ok_or(PromptError::Busy)? {
            WhenActive::Steer => Delivery::Steer,
            WhenActive::FollowUp => Delivery::FollowUp,
        };
        let message = user_message(&prompt, self.0.now());
        let push = || {
            let claims = &self.0.claims;
            let push = || lock(&self.0.queues).push(delivery, prompt.text.clone(), message);
            claims.while_running(push).is_some()
        };
        let queued = self.0.change_queues(push).await;
        Ok((!queued).then_some(Trigger::Passed(prompt)))
    }

    /// The stages before a run, for what has not passed them (`kernel.md` §5.1); `None` when a command
    /// or handler has dealt with it.
    async fn pass(
        &self,
        trigger: Trigger,
        depth: u32,
    ) -> Result<Option<(Trigger, Passing)>, PromptError> {
        let prompt = match trigger {
            Trigger::Prompt(prompt) => prompt,
            passed => return Ok(Some((passed, self.0.claims.pass().await?))),
        };
        let is_command = async |scene: &Scene<'_>| pipeline::command(scene, &prompt).await;
        if self.with_scene(depth, is_command).await {
            return Ok(None);
        }
        let passing = self.0.claims.pass().await?;
        let pass = async |scene: &Scene<'_>| pipeline::pass(scene, prompt).await;
        Ok(match self.with_scene(depth, pass).await? {
            Passage::Handled => None,
            Passage::Start(prompt) | Passage::Queue(prompt, _) => {
                Some((Trigger::Passed(prompt), passing))
            }
        })
    }

    /// Does something with what the stages look at, which is that of the moment.
    pub(super) async fn with_scene<T>(
        &self,
        depth: u32,
        act: impl AsyncFnOnce(&Scene<'_>) -> T,
    ) -> T {
        let successor = Some(Successor::default());
        self.with_scene_of(depth, successor, act).await
    }

    /// The same; `successor` is where a command notes the session that takes the place of this one.
    async fn with_scene_of<T>(
        &self,
        depth: u32,
        successor: Option<Successor>,
        act: impl AsyncFnOnce(&Scene<'_>) -> T,
    ) -> T {
        let shared = &self.0;
        let snapshot = shared.equipment.registry.snapshot();
        let lend = |scope| Scoped { shared, scope };
        let lender = lend(CallScope::Input { depth });
        let cancel = lock(&shared.abort).clone();
        let prompt = shared.prompt.now();
        let scene = Scene {
            command_lender: &lend(CallScope::Command { successor }),
            snapshot: &snapshot,
            resources: &prompt.resources,
            callers: Callers::new(&lender, shared.patience(cancel)),
            run_active: &|| self.is_running(),
            readiness: &|| self.readiness(),
        };
        act(&scene).await
    }

    fn readiness(&self) -> Readiness {
        let model = self.model();
        let provider = model.as_ref().map(|model| model.provider.as_str());
        let provider = provider.unwrap_or_default();
        let catalog = &self.0.equipment.catalog;
        Readiness {
            usable: catalog.usable(provider),
            key_variables: catalog.key_variables(provider),
            model,
        }
    }
}

/// Lends the services of another kind of call than a handler's.
pub(super) struct Scoped<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) scope: CallScope,
}

impl Lender for Scoped<'_> {
    fn services(&self, source: &Source) -> Arc<dyn Services> {
        self.shared.source_services(source, self.scope.clone())
    }

    fn report(&self, failure: HandlerFailure) {
        self.shared.report(failure);
    }
}

impl Trigger {
    fn into_message(self, now_ms: i64) -> Message {
        match self {
            Self::Prompt(prompt) | Self::Passed(prompt) => user_message(&prompt, now_ms),
            Self::Message(message) => *message,
        }
    }

    /// Name under which a plugin hears of a failure.
    fn service(&self) -> &'static str {
        match self {
            Self::Prompt(_) | Self::Passed(_) => "send_user_message",
            Self::Message(_) => "send_message",
        }
    }
}

impl Shared {
    /// Tells of a failure that nobody waits for: the plugin that caused it, or everybody.
    pub(super) async fn tell_failure(
        &self,
        sender: Option<Source>,
        event: &'static str,
        error: Error,
    ) {
        let event = match sender {
            Some(source) => HandlerFailure {
                source,
                event: event.into(),
                error,
            }
            .into(),
            None => Event::Notice {
                message: error.to_string(),
            },
        };
        self.subscribers.publish(event).await;
    }
}

/// One text block, then the images, as they were given: nothing here can read a picture, so they are
/// sent in the size they have.
pub(super) fn user_message(prompt: &Prompt, timestamp: i64) -> Message {
    let mut blocks = vec![Content::text(prompt.text.clone())];
    blocks.extend(prompt.images.iter().cloned());
    Message::User(UserMessage {
        content: MessageContent::Blocks(blocks),
        timestamp,
        extra: Extra::new(),
    })
}
