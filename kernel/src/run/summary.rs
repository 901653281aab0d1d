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

use super::driver::RunDriver;
use super::{RetryPolicy, RunHost, Selection, hooks};
use crate::agent::{Answer, Driver};
use crate::compaction::{CompactionError, summarize};
use crate::models::ModelRequest;
use crate::tree::Ids;

/// Events of an answer that are taken, and thrown away, at once.
const BATCH: usize = 256;

/// Asks for the summaries of one compaction. Model and settings are those of its beginning (R37).
pub(super) struct Summarizer<'a, H> {
    host: &'a H,
    driver: &'a RunDriver<'a, H>,
    cancel: &'a CancellationToken,
    selection: Selection,
    policy: RetryPolicy,
    reason: CompactionReason,
}

impl<'a, H: RunHost> Summarizer<'a, H> {
    pub(super) fn new(
        host: &'a H,
        driver: &'a RunDriver<'a, H>,
        cancel: &'a CancellationToken,
        reason: CompactionReason,
    ) -> Self {
        Self {
            host,
            driver,
            cancel,
            selection: host.selection(),
            policy: host.retry_policy(),
            reason,
        }
    }

    pub(super) fn model(&self) -> &Model {
        &self.selection.model
    }

    /// The summary, and what it cost. A failure that may pass is tried again.
    pub(super) async fn ask(&self, text: &str) -> Result<(String, Usage), CompactionError> {
        let mut attempts = 0;
        let answer = loop {
            let answer = match self.answer(text).await {
                Some(answer) if self.policy.allows(attempts, &answer) => answer,
                other => break other,
            };
            attempts += 1;
            if !self.wait(attempts, answer).await {
                break None;
            }
        };
        if attempts > 0 {
            self.driver.emit(Event::SummarizationRetryFinished).await;
        }
        let answer = answer.ok_or(CompactionError::Aborted)?;
        let summary = summarize::accepted(&answer).map_err(CompactionError::Failed)?;
        Ok((summary, answer.usage))
    }

    /// Waits for the next attempt; false when the user does not want to.
    async fn wait(&self, attempt: u32, failed: AssistantMessage) -> bool {
        let delay = self.policy.delay(attempt);
        self.driver
            .emit(Event::SummarizationRetryScheduled {
                attempt,
                max_attempts: self.policy.max_retries,
                delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                error_message: failed.error_message.unwrap_or_default(),
            })
            .await;
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => return false,
            () = tokio::time::sleep(delay) => {}
        }
        self.driver
            .emit(Event::SummarizationRetryAttemptStart {
                source: SummarySource::Compaction,
                reason: Some(self.reason),
            })
            .await;
        true
    }

    /// One attempt; `None` when it was aborted.
    async fn answer(&self, text: &str) -> Option<AssistantMessage> {
        let snapshot = self.host.registry().snapshot();
        let hooks = hooks::provider(self.host, self.cancel, self.model());
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
