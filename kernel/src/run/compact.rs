//! One compaction from its preparation to the entry (R26, R27). Says when it begins; how it ended is
//! answered, because a session that was told to compact is idle before that is said.

use std::sync::Arc;

use pliant_sdk::Event;
use pliant_sdk::event::{CompactionReason, CompactionResult};
use pliant_sdk::message::{Message, Usage};
use tokio_util::sync::CancellationToken;

use super::convert::convert;
use super::driver::RunDriver;
use super::route::{self, limits};
use super::summary::Summarizer;
use super::{RunHost, Selection};
use crate::agent::Driver;
use crate::compaction::{
    self, CompactionError, CompactionSettings, Preparation, context_tokens, summarize,
};
use crate::tree::Compaction;

/// Compacts because the user wants it (R25). The second value is the event that ends what was begun.
pub async fn compact<H: RunHost>(
    host: &H,
    instructions: Option<&str>,
    cancel: &CancellationToken,
) -> (Result<CompactionResult, CompactionError>, Option<Event>) {
    let driver = RunDriver::new(host, cancel);
    let model = limits(host).await;
    let prepared = match host.compaction_settings(&model) {
        Ok(settings) => prepare(host, &settings).map(|prepared| (prepared, settings)),
        Err(error) => Err(CompactionError::Failed(error.to_string())),
    };
    let (prepared, settings) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return (Err(error), None),
    };
    let reason = CompactionReason::Manual;
    let work = Work {
        host,
        driver: &driver,
        cancel,
        settings,
    };
    let outcome = work.run(prepared, reason, instructions).await;
    let end = end(reason, &outcome, false);
    (outcome, Some(end))
}

/// Divides the branch as it is now.
pub(super) fn prepare<H: RunHost>(
    host: &H,
    settings: &CompactionSettings,
) -> Result<Preparation, CompactionError> {
    host.look(|tree| compaction::prepare(tree, settings.keep_recent_tokens))
}

/// The event that ends a compaction.
pub(super) fn end(
    reason: CompactionReason,
    outcome: &Result<CompactionResult, CompactionError>,
    will_retry: bool,
) -> Event {
    let error = outcome.as_ref().err();
    let aborted = error == Some(&CompactionError::Aborted);
    Event::CompactionEnd {
        reason,
        result: outcome.as_ref().ok().cloned(),
        aborted,
        will_retry: will_retry && outcome.is_ok(),
        error_message: error.filter(|_| !aborted).map(ToString::to_string),
    }
}

/// What a compaction works with.
pub(super) struct Work<'a, H> {
    pub(super) host: &'a H,
    pub(super) driver: &'a RunDriver<'a, H>,
    pub(super) cancel: &'a CancellationToken,
    pub(super) settings: CompactionSettings,
}

impl<H: RunHost> Work<'_, H> {
    /// Writes the summary and stores it.
    pub(super) async fn run(
        &self,
        prepared: Preparation,
        reason: CompactionReason,
        instructions: Option<&str>,
    ) -> Result<CompactionResult, CompactionError> {
        self.driver.emit(Event::CompactionStart { reason }).await;
        let selection = self.routed().await?;
        let summarizer = Summarizer::new(self.host, self.driver, self.cancel, selection, reason);
        let (summary, usage) = self.summarize(&summarizer, &prepared, instructions).await?;
        // An abort that came with the last word of the summary still means that the user wants none.
        if self.cancel.is_cancelled() {
            return Err(CompactionError::Aborted);
        }
        let details = serde_json::to_value(&prepared.files).ok();
        let compaction = Compaction {
            summary: summary + &prepared.files.appendix(),
            first_kept_entry_id: prepared.first_kept,
            tokens_before: prepared.tokens_before,
            details,
            usage: Some(usage),
            ..Compaction::default()
        };
        self.store(compaction)
    }

    /// Who writes the summary: all parts of it are one model's (R37).
    async fn routed(&self) -> Result<Selection, CompactionError> {
        let routed = route::direct(self.host, self.cancel).await;
        routed.map_err(|error| match self.cancel.is_cancelled() {
            true => CompactionError::Aborted,
            false => CompactionError::Failed(error.to_string()),
        })
    }

    async fn summarize(
        &self,
        summarizer: &Summarizer<'_, H>,
        prepared: &Preparation,
        instructions: Option<&str>,
    ) -> Result<(String, Usage), CompactionError> {
        let room = self.room(summarizer.model().context_window);
        let told = |messages: &[Arc<Message>]| {
            let sent: Vec<_> = messages.iter().filter_map(convert).collect();
            summarize::conversation(&sent, room)
        };
        let previous = prepared.previous_summary.as_deref();
        let mut usage = Usage::default();
        let mut history = previous.map(str::to_owned);
        if !prepared.history.is_empty() {
            let conversation = told(&prepared.history);
            let text = summarize::history_request(&conversation, previous, instructions);
            let (summary, cost) = summarizer.ask(&text).await?;
            (history, usage) = (Some(summary), cost);
        }
        if prepared.turn_prefix.is_empty() {
            return Ok((history.unwrap_or_default(), usage));
        }
        let conversation = told(&prepared.turn_prefix);
        let text = summarize::prefix_request(&conversation, instructions);
        let (prefix, cost) = summarizer.ask(&text).await?;
        if prepared.history.is_empty() {
            usage = cost;
        } else {
            usage.add(&cost);
        }
        Ok((summarize::merged(history.as_deref(), &prefix), usage))
    }

    /// Bytes of conversation that a request for a summary may hold. Three of them are a token at the
    /// worst that text usually is.
    fn room(&self, window: u64) -> usize {
        if window == 0 {
            return usize::MAX;
        }
        let tokens = window
            .saturating_sub(self.settings.reserve_tokens)
            .max(window / 2);
        usize::try_from(tokens.saturating_mul(3)).unwrap_or(usize::MAX)
    }

    fn store(&self, compaction: Compaction) -> Result<CompactionResult, CompactionError> {
        let mut result = CompactionResult {
            summary: compaction.summary.clone(),
            first_kept_entry_id: String::new(),
            tokens_before: compaction.tokens_before,
            estimated_tokens_after: 0,
            usage: compaction.usage.clone(),
            details: compaction.details.clone(),
        };
        let kept = compaction.first_kept_entry_id.clone();
        let id = self
            .host
            .append_compaction(compaction)
            .map_err(|error| CompactionError::Failed(error.to_string()))?;
        result.first_kept_entry_id = kept.unwrap_or(id).as_str().to_owned();
        result.estimated_tokens_after = self.host.look(context_tokens);
        Ok(result)
    }
}
