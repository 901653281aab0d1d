//! One compaction from its preparation to the entry (R26, R27). Says when it begins; how it ended is
//! answered, because a session that was told to compact is idle before that is said.

use std::sync::Arc;

use pliant_sdk::Event;
use pliant_sdk::event::{CompactionReason, CompactionResult};
use pliant_sdk::message::Message;
use tokio_util::sync::CancellationToken;

use super::RunHost;
use super::convert::convert;
use super::hooks::{self, Supplied};
use super::summary::{NoSummary, Purpose, Summarizer};
use crate::compaction::{
    self, CompactionError, CompactionSettings, Preparation, context_tokens, summarize,
};
use crate::tree::{Compaction, Entry, EntryBody};

/// Compacts because the user wants it (R25). The end is still to be told.
///
/// # Errors
/// Why none was begun; nothing was told then.
pub async fn compact<H: RunHost>(
    host: &H,
    instructions: Option<&str>,
    cancel: &CancellationToken,
) -> Result<Ending, CompactionError> {
    let model = host.selection().model;
    let settings = host
        .compaction_settings(&model)
        .map_err(|error| CompactionError::Failed(error.to_string()))?;
    let plan = Plan {
        prepared: prepare(host, &settings)?,
        settings,
        reason: CompactionReason::Manual,
        will_retry: false,
        instructions,
    };
    Ok(Work { host, cancel, plan }.run().await)
}

/// Divides the branch as it is now.
pub(super) fn prepare<H: RunHost>(
    host: &H,
    settings: &CompactionSettings,
) -> Result<Preparation, CompactionError> {
    host.look(|tree| compaction::prepare(tree, settings.keep_recent_tokens))
}

/// A compaction that is to be done.
pub(super) struct Plan<'a> {
    pub(super) prepared: Preparation,
    pub(super) settings: CompactionSettings,
    pub(super) reason: CompactionReason,
    /// The request that did not fit follows.
    pub(super) will_retry: bool,
    /// What the user wants the summary to keep in mind.
    pub(super) instructions: Option<&'a str>,
}

/// A compaction that is over, before anybody was told.
#[derive(Debug)]
pub struct Ending {
    pub(super) reason: CompactionReason,
    /// The request that did not fit was to follow.
    pub(super) will_retry: bool,
    /// A plugin wrote the summary.
    pub(super) from_extension: bool,
    pub(super) outcome: Result<CompactionResult, CompactionError>,
}

impl Ending {
    /// Tells subscribers how it ended, then handlers if it failed.
    ///
    /// # Errors
    /// Why the conversation was not compacted.
    pub async fn tell<H: RunHost>(
        self,
        host: &H,
        cancel: &CancellationToken,
    ) -> Result<CompactionResult, CompactionError> {
        hooks::announce(host, self.event()).await;
        if let Err(error) = &self.outcome {
            hooks::compact_failed(host, cancel, &self, error).await;
            host.publish_reports().await;
        }
        self.outcome
    }

    fn event(&self) -> Event {
        let error = self.outcome.as_ref().err();
        let aborted = error == Some(&CompactionError::Aborted);
        Event::CompactionEnd {
            reason: self.reason,
            result: self.outcome.as_ref().ok().cloned(),
            aborted,
            will_retry: self.will_retry && self.outcome.is_ok(),
            error_message: error.filter(|_| !aborted).map(ToString::to_string),
        }
    }
}

/// What a compaction works with.
pub(super) struct Work<'a, H> {
    pub(super) host: &'a H,
    pub(super) cancel: &'a CancellationToken,
    pub(super) plan: Plan<'a>,
}

impl<H: RunHost> Work<'_, H> {
    /// Lets handlers have their say, writes the summary unless one of them did, and stores it.
    pub(super) async fn run(self) -> Ending {
        let Self { host, cancel, plan } = &self;
        let reason = plan.reason;
        hooks::announce(*host, Event::CompactionStart { reason }).await;
        // Made before the handlers run: they may choose another model (R37).
        let mut summarizer = Summarizer::new(*host, cancel, Purpose::Compaction(reason));
        let supplied = hooks::before_compact(*host, cancel, plan).await;
        let from_extension = matches!(supplied, Supplied::Compaction(_));
        let compaction = match supplied {
            Supplied::Cancel => Err(CompactionError::Aborted),
            Supplied::Compaction(compaction) => Ok(*compaction),
            Supplied::Nothing => self.written(&mut summarizer).await,
        };
        let outcome = match compaction.and_then(|compaction| self.store(compaction)) {
            Ok((entry, result)) => {
                hooks::compacted(*host, cancel, plan, &entry, from_extension).await;
                Ok(result)
            }
            Err(error) => {
                summarizer.store_loss().await;
                Err(error)
            }
        };
        Ending {
            reason,
            will_retry: plan.will_retry,
            from_extension,
            outcome,
        }
    }

    async fn written(
        &self,
        summarizer: &mut Summarizer<'_, H>,
    ) -> Result<Compaction, CompactionError> {
        let Preparation {
            files,
            first_kept,
            tokens_before,
            ..
        } = &self.plan.prepared;
        let summary = self.summarize(summarizer).await?;
        let files = files.lists();
        Ok(Compaction {
            summary: summary + &files.appendix(),
            first_kept_entry_id: first_kept.clone(),
            tokens_before: *tokens_before,
            details: serde_json::to_value(&files).ok(),
            usage: Some(summarizer.spent().cloned().unwrap_or_default()),
            ..Compaction::default()
        })
    }

    async fn summarize(&self, summarizer: &mut Summarizer<'_, H>) -> Result<String, NoSummary> {
        let prepared = &self.plan.prepared;
        let focus = self.plan.instructions;
        let room = self.room(summarizer.model().context_window);
        let told = |messages: &[Arc<Message>]| {
            let sent: Vec<_> = messages.iter().filter_map(convert).collect();
            summarize::conversation(&sent, room)
        };
        let previous = prepared.previous_summary.as_deref();
        let mut history = previous.map(str::to_owned);
        if !prepared.history.is_empty() {
            let conversation = told(&prepared.history);
            let text = summarize::history_request(&conversation, previous, focus);
            history = Some(summarizer.ask(&text).await?);
        }
        if prepared.turn_prefix.is_empty() {
            return Ok(history.unwrap_or_default());
        }
        let conversation = told(&prepared.turn_prefix);
        let text = summarize::prefix_request(&conversation, focus);
        let prefix = summarizer.ask(&text).await?;
        Ok(summarize::merged(history.as_deref(), &prefix))
    }

    /// Bytes of conversation that a request for a summary may hold. Three of them are a token at the
    /// worst that text usually is.
    fn room(&self, window: u64) -> usize {
        if window == 0 {
            return usize::MAX;
        }
        let tokens = window
            .saturating_sub(self.plan.settings.reserve_tokens)
            .max(window / 2);
        usize::try_from(tokens.saturating_mul(3)).unwrap_or(usize::MAX)
    }

    /// An abort that came with the last word of the summary still means that the user wants none.
    fn store(
        &self,
        compaction: Compaction,
    ) -> Result<(Arc<Entry>, CompactionResult), CompactionError> {
        if self.cancel.is_cancelled() {
            return Err(CompactionError::Aborted);
        }
        let mut result = CompactionResult {
            summary: compaction.summary.clone(),
            first_kept_entry_id: String::new(),
            tokens_before: compaction.tokens_before,
            estimated_tokens_after: 0,
            usage: compaction.usage.clone(),
            details: compaction.details.clone(),
        };
        let kept = compaction.first_kept_entry_id.clone();
        let entry = self
            .host
            .append(EntryBody::Compaction(compaction))
            .map_err(|error| CompactionError::Failed(error.to_string()))?;
        let kept = kept.as_ref().unwrap_or(entry.id());
        result.first_kept_entry_id = kept.as_str().to_owned();
        result.estimated_tokens_after = self.host.look(context_tokens);
        Ok((entry, result))
    }
}

impl From<NoSummary> for CompactionError {
    fn from(reason: NoSummary) -> Self {
        match reason {
            NoSummary::Aborted => Self::Aborted,
            NoSummary::Failed(reason) => Self::Failed(reason),
        }
    }
}
