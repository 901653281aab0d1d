//! The boundaries `turn_end` and `agent_before_settle` (R47): each handler sees what those before it
//! propose and what the conversation would be with it, and may propose something else.

mod draft;
mod preview;

use pliant_sdk::Error;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::with_handlers;
use crate::registry::{HookPoint, Source};
use crate::run::RunHost;
use crate::tree::SessionTree;

pub(in crate::run) use draft::Draft;

/// What the handlers of a boundary want, all in all.
#[derive(Default)]
pub(in crate::run) struct Asked {
    /// Entries to be stored.
    pub(in crate::run) drafts: Vec<Draft>,
    /// Whose handler wants one more request.
    pub(in crate::run) wants: Option<Source>,
}

/// Dispatches a boundary; `None` when nobody listens, so that nothing is made for nobody. `own`
/// makes what the event has beside the state of the boundary.
pub(in crate::run) async fn boundary<H: RunHost>(
    host: &H,
    cancel: &CancellationToken,
    point: HookPoint,
    own: impl FnOnce() -> Value + Send,
) -> Option<Asked> {
    with_handlers(host, cancel, point, None, async |dispatcher, _| {
        let own = own();
        let mut proposal = Proposal::new();
        for handler in dispatcher.handlers() {
            let wants_context = !handler.spec.without.iter().any(|part| part == CONTEXT);
            let payload = proposal.payload(host, point, &own, wants_context);
            let Ok(answer) = dispatcher.call(handler, payload).await else {
                continue;
            };
            if let Err(error) = proposal.take(host, handler.source(), answer) {
                dispatcher.unusable(handler, error);
            }
        }
        Some(proposal.asked())
    })
    .await
}

/// The part of a boundary's state that holds the conversation.
const CONTEXT: &str = "context";

/// What is proposed so far.
#[derive(Default)]
struct Proposal {
    entries: Vec<Value>,
    /// The same, read; `None` when they cannot be stored as they are.
    drafts: Option<Vec<Draft>>,
    wants: Option<Source>,
    /// The conversation with the last proposal that can be stored; `None` while that is as it is.
    preview: Option<SessionTree>,
    /// The same as JSON, when somebody wants it.
    context: Option<Box<RawValue>>,
    /// With and without the conversation, written once for all handlers that are shown the same.
    payloads: [Option<Vec<u8>>; 2],
}

#[derive(Serialize)]
struct Payload<'a> {
    r#type: &'a str,
    entries: &'a [Value],
    r#continue: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<&'a RawValue>,
    #[serde(flatten)]
    own: &'a Value,
}

/// What a handler may answer; a field that is left out, or null, keeps what was proposed.
#[derive(Deserialize)]
struct Answer {
    entries: Option<Vec<Value>>,
    r#continue: Option<bool>,
}

impl Proposal {
    fn new() -> Self {
        Self {
            drafts: Some(Vec::new()),
            ..Self::default()
        }
    }

    fn payload<H: RunHost>(
        &mut self,
        host: &H,
        point: HookPoint,
        own: &Value,
        wants_context: bool,
    ) -> Vec<u8> {
        if wants_context && self.context.is_none() {
            let pending = host.pending();
            let written = match &self.preview {
                Some(preview) => preview::written(preview, &pending),
                None => host.look(|tree| preview::written(tree, &pending)),
            };
            // A branch that cannot be read now is shown to nobody.
            self.context = Some(written.unwrap_or_else(|_| RawValue::NULL.to_owned()));
        }
        let write = || {
            let payload = Payload {
                r#type: point.name(),
                entries: &self.entries,
                r#continue: self.wants.is_some(),
                context: self.context.as_deref().filter(|_| wants_context),
                own,
            };
            serde_json::to_vec(&payload).unwrap_or_default()
        };
        self.payloads[usize::from(wants_context)]
            .get_or_insert_with(write)
            .clone()
    }

    fn take<H: RunHost>(&mut self, host: &H, source: &Source, answer: Value) -> Result<(), Error> {
        if answer.is_null() {
            return Ok(());
        }
        let answer: Answer = serde_json::from_value(answer).map_err(|error| {
            Error::invalid(format!(
                "its answer has neither a list of entries nor a flag to continue: {error}"
            ))
        })?;
        if let Some(wanted) = answer.r#continue {
            self.wants = wanted.then(|| source.clone());
            self.payloads = [None, None];
        }
        let Some(entries) = answer.entries else {
            return Ok(());
        };
        self.payloads = [None, None];
        self.entries = entries;
        self.drafts = None;
        let drafts = draft::read(&self.entries)?;
        self.preview = host.look(|tree| preview::of(tree, &drafts))?;
        self.context = None;
        self.drafts = Some(drafts);
        Ok(())
    }

    /// A last proposal that cannot be stored is none at all.
    fn asked(self) -> Asked {
        let wants = self.wants;
        self.drafts
            .map(|drafts| Asked { drafts, wants })
            .unwrap_or_default()
    }
}
