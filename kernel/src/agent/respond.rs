//! One request and its streamed answer (`kernel.md` §3.5): the stream becomes message events, and
//! whatever happens there is exactly one `message_start` and one `message_end` (L23).

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pliant_sdk::message::{AssistantMessage, Content, Message, StopReason};
use pliant_sdk::stream::Assembler;
use pliant_sdk::{Error, Event, StreamEvent};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Answer, Driver};

const ABORTED: &str = "Request was aborted";

/// No model answers this much; a service that does never ends.
const LONGEST: usize = 64 << 20;

/// How long a request that is aborted before there is an answer may take to end what it told of.
const ENDING: Duration = Duration::from_millis(500);

/// Events taken from the stream at once; a bound keeps aborts prompt.
const BATCH: usize = 256;

/// Sends the request and answers the finished message. An abort keeps what was streamed (L28).
pub(super) async fn respond<D: Driver>(
    driver: &D,
    cancel: &CancellationToken,
) -> Result<Arc<Message>, Error> {
    let started = Instant::now();
    let opened = open(driver, cancel).await;
    let mut announced = false;
    let mut message = match opened {
        Ok(answer) => stream(driver, answer, cancel, &mut announced).await,
        Err(failure) => failed_before_streaming(driver, failure),
    };
    message.thinking_level = Some(driver.thinking_level());
    message.duration_ms = u64::try_from(started.elapsed().as_millis()).ok();
    if !announced {
        driver
            .emit(Event::MessageStart {
                message: Arc::new(Message::Assistant(message.clone())),
            })
            .await;
    }
    driver.message_end(Message::Assistant(message)).await
}

/// The answer to a request, or why there is none; an abort has no reason.
async fn open<D: Driver>(driver: &D, cancel: &CancellationToken) -> Result<Answer, Option<Error>> {
    if cancel.is_cancelled() {
        return Err(None);
    }
    let mut request = pin!(driver.request(cancel));
    tokio::select! {
        biased;
        () = cancel.cancelled() => {
            // It hears of the abort too, and may have told of something that is to end first: a
            // compaction for the model that a route chose.
            let _given_up = timeout(ENDING, request).await;
            Err(None)
        }
        opened = &mut request => opened.map_err(Some),
    }
}

fn failed_before_streaming<D: Driver>(driver: &D, failure: Option<Error>) -> AssistantMessage {
    let (stop_reason, text) = match failure {
        None => (StopReason::Aborted, ABORTED.to_owned()),
        Some(error) => (StopReason::Error, error.to_string()),
    };
    AssistantMessage {
        content: vec![Content::text("")],
        stop_reason,
        error_message: Some(text),
        ..driver.template()
    }
}

async fn stream<D: Driver>(
    driver: &D,
    answer: Answer,
    cancel: &CancellationToken,
    announced: &mut bool,
) -> AssistantMessage {
    let Answer {
        template,
        mut events,
        mut done,
    } = answer;
    let mut assembler = Assembler::new(template.clone());
    let mut batch = Vec::new();
    let mut open = true;
    let mut length = 0;
    let result = loop {
        if length > LONGEST {
            let text = format!(
                "the answer is longer than {} MB and was cut off",
                LONGEST >> 20
            );
            return broken_off(driver, assembler, StopReason::Error, text).await;
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => {
                // Dropping `done` ends the request at the provider.
                drop(done);
                let text = ABORTED.to_owned();
                return broken_off(driver, assembler, StopReason::Aborted, text).await;
            }
            taken = events.take(&mut batch, BATCH), if open => open = taken > 0,
            // All events were sent before the value; who still holds a sender has nothing to add.
            result = &mut done => {
                events.take_ready(&mut batch);
                show(driver, &mut assembler, &mut batch, announced).await;
                break result;
            }
        }
        length += batch.iter().map(size).sum::<usize>();
        show(driver, &mut assembler, &mut batch, announced).await;
    };
    match result {
        Ok(message) => {
            end_blocks(driver, &mut assembler).await;
            complete(message, template)
        }
        Err(error) => broken_off(driver, assembler, StopReason::Error, error.to_string()).await,
    }
}

/// What came of an answer that has no end of its own.
async fn broken_off<D: Driver>(
    driver: &D,
    mut assembler: Assembler,
    reason: StopReason,
    text: String,
) -> AssistantMessage {
    end_blocks(driver, &mut assembler).await;
    assembler.finish(reason, Some(text))
}

/// Whoever saw a text begin sees it end, also where it broke off (`interfaces.md` §7).
async fn end_blocks<D: Driver>(driver: &D, assembler: &mut Assembler) {
    for end in assembler.missing_ends() {
        take(driver, assembler, end, &mut true).await;
    }
}

/// What every stored answer says of itself, whatever the provider left out (M5, M6).
fn complete(message: AssistantMessage, template: AssistantMessage) -> AssistantMessage {
    let or = |given: String, known: String| if given.is_empty() { known } else { given };
    let mut message = AssistantMessage {
        api: or(message.api, template.api),
        provider: or(message.provider, template.provider),
        model: or(message.model, template.model),
        timestamp: match message.timestamp {
            0 => template.timestamp,
            given => given,
        },
        ..message
    };
    if message.stop_reason == StopReason::Pending {
        message.stop_reason = StopReason::Error;
        message.error_message =
            Some("the provider ended its answer without a stop reason".to_owned());
    }
    if message.stop_reason.is_failure() && message.error_message.is_none() {
        message.error_message = Some(match message.stop_reason {
            StopReason::Aborted => ABORTED.to_owned(),
            _ => "the provider did not say why it failed".to_owned(),
        });
    }
    message
}

/// Room that a block takes, however empty it is.
const BLOCK: usize = 1 << 10;

fn size(event: &StreamEvent) -> usize {
    match event {
        StreamEvent::TextStart { .. }
        | StreamEvent::ThinkingStart { .. }
        | StreamEvent::ToolcallStart { .. } => BLOCK,
        StreamEvent::TextDelta { delta, .. }
        | StreamEvent::ThinkingDelta { delta, .. }
        | StreamEvent::ToolcallDelta { delta, .. } => delta.len(),
        _ => 0,
    }
}

async fn show<D: Driver>(
    driver: &D,
    assembler: &mut Assembler,
    batch: &mut Vec<StreamEvent>,
    announced: &mut bool,
) {
    for event in batch.drain(..) {
        take(driver, assembler, event, announced).await;
    }
}

/// Block events before `start`, and those that fit nothing before them, are dropped (L22).
async fn take<D: Driver>(
    driver: &D,
    assembler: &mut Assembler,
    event: StreamEvent,
    announced: &mut bool,
) {
    let of_block = !matches!(event, StreamEvent::Start | StreamEvent::Meta { .. });
    if (of_block && !*announced) || !assembler.push(&event) {
        return;
    }
    match event {
        StreamEvent::Start if !*announced => {
            *announced = true;
            let message = Arc::new(Message::Assistant(assembler.message().clone()));
            driver.emit(Event::MessageStart { message }).await;
        }
        StreamEvent::Start | StreamEvent::Meta { .. } => {}
        event => {
            let usage = assembler.message().usage.clone();
            driver
                .emit(Event::MessageUpdate {
                    usage,
                    assistant_message_event: event,
                })
                .await;
        }
    }
}
