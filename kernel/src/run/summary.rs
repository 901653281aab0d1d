//! One summary: a request that stands alone, beside the conversation, and what is tried again of it
//! (R32, R35).

use std::sync::Arc;

use pliant_sdk::event::{CompactionReason, SummarySource};
use pliant_sdk::message::{
    AssistantMessage, Message, MessageContent, StopReason, SystemMessage, ThinkingLevel, Usage,
};
use pliant_sdk::provider::StreamOptions;
use pliant_sdk::{Error, Event, Model};
use tokio_util::sync::CancellationToken;

use super::advice::{advice, ended};
use super::{RetryPolicy, RunHost, Selection, hooks, route};
use crate::agent::Answer;
use crate::compaction::summarize;
use crate::models::{AskedDelay, ModelRequest};
use crate::tree::{EntryBody, Ids, UsageEntry};

/// Events of an answer that are taken, and thrown away, at once.
const BATCH: usize = 256;

const ANOTHER_MODEL: &str = "Try again, or choose another model.";

/// What a summary is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    /// A compaction, and why there is one.
    Compaction(CompactionReason),
    /// A branch that is left.
    BranchSummary,
}

/// Why there is no summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoSummary {
    /// The user gave up.
    Aborted,
    /// A sentence for the user.
    Failed(String),
}

/// Asks for the summaries of one compaction or navigation. Model and settings are those of its
/// beginning (R37).
pub(super) struct Summarizer<'a, H> {
    host: &'a H,
    cancel: &'a CancellationToken,
    selection: Selection,
    policy: RetryPolicy,
    purpose: Purpose,
    spent: Option<Usage>,
    asked: AskedDelay,
}

impl<'a, H: RunHost> Summarizer<'a, H> {
    pub(super) fn new(host: &'a H, cancel: &'a CancellationToken, purpose: Purpose) -> Self {
        Self {
            host,
            cancel,
            selection: host.selection(),
            policy: host.retry_policy(),
            purpose,
            spent: None,
            asked: AskedDelay::default(),
        }
    }

    /// Who writes the summaries. A virtual model is routed when this is first asked for, and once: all
    /// parts are one model's (R37).
    pub(super) async fn model(&mut self) -> Result<&Model, NoSummary> {
        let routed = route::direct(self.host, self.cancel, &self.selection).await;
        self.selection = routed.map_err(|error| match self.cancel.is_cancelled() {
            true => NoSummary::Aborted,
            false => NoSummary::Failed(error.to_string()),
        })?;
        Ok(&self.selection.model)
    }

    /// What all answers so far have cost, those that were no summary among them.
    pub(super) fn spent(&self) -> Option<&Usage> {
        self.spent.as_ref()
    }

    /// The summary. A failure that may pass is tried again.
    pub(super) async fn ask(&mut self, text: &str) -> Result<String, NoSummary> {
        self.model().await?;
        let mut attempts = 0;
        let answer = loop {
            let answer = match self.paid_answer(text).await {
                Some(answer) if self.policy.allows(attempts, &answer) => answer,
                other => break other,
            };
            attempts += 1;
            if !self.wait(attempts, answer).await {
                break None;
            }
        };
        if attempts > 0 {
            hooks::announce(self.host, Event::SummarizationRetryFinished).await;
        }
        let answer = answer.ok_or(NoSummary::Aborted)?;
        summarize::accepted(&answer).map_err(|reason| {
            let advice = advice(&answer).unwrap_or(ANOTHER_MODEL);
            NoSummary::Failed(format!("{} {advice}", ended(&reason)))
        })
    }

    /// What was paid for nothing stays in the session's sum (S2.3): an entry that no model sees.
    pub(super) async fn store_loss(&self) {
        let Some(usage) = self.spent.clone() else {
            return;
        };
        let kind = match self.purpose {
            Purpose::Compaction(_) => "compaction",
            Purpose::BranchSummary => "branch_summary",
        };
        let entry = EntryBody::Usage(UsageEntry {
            kind: kind.to_owned(),
            provider: self.selection.model.provider.clone(),
            model: self.selection.model.id.clone(),
            usage,
            note: Some("a summary that was not used".to_owned()),
        });
        // A session that cannot be written says so with the next message.
        if let Ok(entry) = self.host.append(entry) {
            let entry = entry.to_json();
            hooks::announce(self.host, Event::EntryAppended { entry }).await;
        }
    }

    /// Waits for the next attempt; false when the user does not want to.
    async fn wait(&self, attempt: u32, failed: AssistantMessage) -> bool {
        let delay = self.policy.delay(attempt, self.asked.get());
        let scheduled = Event::SummarizationRetryScheduled {
            attempt,
            max_attempts: self.policy.max_retries,
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            error_message: failed.error_message.unwrap_or_default(),
        };
        hooks::announce(self.host, scheduled).await;
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => return false,
            () = tokio::time::sleep(delay) => {}
        }
        let (source, reason) = match self.purpose {
            Purpose::Compaction(reason) => (SummarySource::Compaction, Some(reason)),
            Purpose::BranchSummary => (SummarySource::BranchSummary, None),
        };
        let start = Event::SummarizationRetryAttemptStart { source, reason };
        hooks::announce(self.host, start).await;
        true
    }

    async fn paid_answer(&mut self, text: &str) -> Option<AssistantMessage> {
        // The user may have given up while handlers were asked.
        if self.cancel.is_cancelled() {
            return None;
        }
        let answer = self.answer(text).await?;
        match &mut self.spent {
            // Nothing is not a summand: a sum is the provider's own figure if all its parts are (M4).
            _ if answer.usage == Usage::default() => {}
            Some(spent) => spent.add(&answer.usage),
            spent => *spent = Some(answer.usage.clone()),
        }
        Some(answer)
    }

    /// One attempt; `None` when it was aborted.
    async fn answer(&self, text: &str) -> Option<AssistantMessage> {
        let snapshot = self.host.registry().snapshot();
        let hooks = hooks::provider(self.host, self.cancel, &self.selection.model);
        let opened =
            self.host
                .client()
                .open(&snapshot, self.request(text), Some(hooks), self.cancel);
        let answer = match opened {
            Ok(answer) => answer,
            Err(error) => return Some(failed(AssistantMessage::default(), &error)),
        };
        tokio::select! {
            biased;
            // Dropping the answer ends the request at the provider.
            () = self.cancel.cancelled() => None,
            answer = finished(answer) => Some(answer),
        }
    }

    fn request(&self, text: &str) -> ModelRequest {
        let Selection { model, level } = &self.selection;
        let now_ms = self.host.now_ms();
        let system = SystemMessage {
            content: MessageContent::Text(summarize::SYSTEM.to_owned()),
            timestamp: now_ms,
            ..SystemMessage::default()
        };
        ModelRequest {
            options: StreamOptions {
                reasoning: Some(*level).filter(|l| model.reasoning && *l != ThinkingLevel::Off),
                // Nothing of it is asked for twice, and it has no place in the session's cache.
                session_id: Some(Ids::system().session_id().to_string()),
                cache_retention: Some("none".to_owned()),
                ..self.host.stream_options()
            },
            messages: Arc::new(vec![
                Arc::new(Message::System(system)),
                Arc::new(Message::user(text, now_ms)),
            ]),
            model: model.clone(),
            conversation: None,
            now_ms,
            asked: self.asked.clone(),
        }
    }
}

/// Reads a stream to its end; only the finished message counts.
async fn finished(answer: Answer) -> AssistantMessage {
    let Answer {
        template,
        mut events,
        mut done,
    } = answer;
    let mut batch = Vec::new();
    let mut open = true;
    let result = loop {
        batch.clear();
        tokio::select! {
            biased;
            result = &mut done => break result,
            taken = events.take(&mut batch, BATCH), if open => open = taken > 0,
        }
    };
    match result {
        Ok(answer) => answer,
        Err(error) => failed(template, &error),
    }
}

fn failed(template: AssistantMessage, error: &Error) -> AssistantMessage {
    AssistantMessage {
        stop_reason: StopReason::Error,
        error_message: Some(error.to_string()),
        ..template
    }
}
