//! One request and its answer, whatever the provider does (`kernel.md` §3.5): there is exactly one
//! message, a failure is an answer, and the session goes on.

use std::sync::Arc;

use pliant_kernel::registry::{Contribution, Generation, InProcess, Rank, Source};
use pliant_sdk::host::BoxFuture;
use pliant_sdk::message::{AssistantMessage, StopReason, joined_text};
use pliant_sdk::plugin::Invocation;
use pliant_sdk::provider::{StreamOut, StreamRequest, Wire};
use pliant_sdk::{Error, Event, Plugin, StreamEvent};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::*;

/// What a wire does with a request, down to the bytes.
#[derive(Clone)]
enum Deed {
    /// Pushes these texts as events, then answers this one.
    Say(Vec<String>, String),
    /// Pushes, then fails.
    Fail(Vec<String>, &'static str),
    /// Pushes, then panics.
    Panic(Vec<String>),
    /// Pushes, then nothing for ever.
    Hang(Vec<String>, Arc<Notify>),
}

/// A source whose wire does one deed and afterwards behaves: what the SDK keeps authors from.
struct Rough {
    decent: InProcess,
    broken: InProcess,
    deed: std::sync::Mutex<Option<Deed>>,
}

/// A wire that answers, or panics.
struct Plain {
    panics: bool,
}

impl Plain {
    fn source(panics: bool) -> InProcess {
        let plugin = Plugin::new()
            .wire(Self { panics })
            .provider(ScriptedProvider);
        InProcess::new(Source::inline("fake", Rank::User), plugin).unwrap()
    }
}

impl Wire for Plain {
    fn api(&self) -> &'static str {
        "scripted"
    }

    async fn stream(
        &self,
        request: StreamRequest,
        _: StreamOut,
    ) -> Result<AssistantMessage, Error> {
        assert!(!self.panics, "out of order");
        Ok(AssistantMessage {
            stop_reason: StopReason::Stop,
            ..request.answer()
        })
    }
}

impl Generation for Rough {
    fn source(&self) -> &Source {
        self.decent.source()
    }

    fn contributions(&self) -> Arc<[Contribution]> {
        self.decent.contributions()
    }

    fn invoke(&self, id: u32, call: Invocation) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        let streams = call.op == "stream";
        let Some(deed) = self.deed.lock().unwrap().take_if(|_| streams) else {
            return self.decent.invoke(id, call);
        };
        let broken = matches!(deed, Deed::Panic(_)).then(|| {
            self.broken.invoke(
                id,
                Invocation {
                    op: call.op.clone(),
                    payload: call.payload.clone(),
                    ctx: call.ctx.clone(),
                },
            )
        });
        Box::pin(async move {
            let push = |events: Vec<String>| {
                for event in events {
                    call.ctx.emit(event.as_bytes());
                }
            };
            match deed {
                Deed::Say(events, answer) => {
                    push(events);
                    Ok(answer.into_bytes())
                }
                Deed::Fail(events, error) => {
                    push(events);
                    Err(Error::failed(error))
                }
                Deed::Panic(events) => {
                    push(events);
                    broken.unwrap().await
                }
                Deed::Hang(events, begun) => {
                    push(events);
                    begun.notify_one();
                    std::future::pending().await
                }
            }
        })
    }

    fn control(&self, op: &str, payload: &[u8]) -> Result<Vec<u8>, Error> {
        self.decent.control(op, payload)
    }
}

async fn with_wire(deed: Deed) -> Scene {
    let off = json!({"retry": {"enabled": false}});
    let scene = scene_with(Script::default(), Plugin::new(), off).await;
    scene.registry.publish(Arc::new(Rough {
        decent: Plain::source(false),
        broken: Plain::source(true),
        deed: std::sync::Mutex::new(Some(deed)),
    }));
    scene
}

fn written(events: &[Value]) -> Vec<String> {
    events.iter().map(ToString::to_string).collect()
}

/// A stream that is cut off in its text.
fn half() -> Vec<String> {
    written(&[
        json!({"type": "start"}),
        json!({"type": "text_start", "contentIndex": 0}),
        json!({"type": "text_delta", "contentIndex": 0, "delta": "half"}),
    ])
}

fn said(answer: &AssistantMessage) -> String {
    joined_text(&answer.content, "")
}

/// What subscribers saw of the answer: `start`, updates by their type, `end`.
fn told(scene: &mut Scene) -> Vec<String> {
    let mut told = Vec::new();
    while let Ok(event) = scene.events.try_recv() {
        let answers = |message: &pliant_sdk::Message| message.as_assistant().is_some();
        match &*event {
            Event::MessageStart { message } if answers(message) => told.push("start".to_owned()),
            Event::MessageEnd { message } if answers(message) => told.push("end".to_owned()),
            Event::MessageUpdate {
                assistant_message_event,
                ..
            } => {
                let update = serde_json::to_value(assistant_message_event).unwrap();
                told.push(update["type"].as_str().unwrap().to_owned());
            }
            _ => {}
        }
    }
    told
}

/// Prompts once with the deed and once after it; answers the first answer and what was told of it.
async fn done(deed: Deed) -> (AssistantMessage, Vec<String>) {
    let mut scene = with_wire(deed).await;
    let end = scene.prompt("go").await;
    let answer = end.last.unwrap().as_assistant().unwrap().clone();
    let told = told(&mut scene);
    let next = scene.prompt("again").await.last.unwrap();
    assert_eq!(next.as_assistant().unwrap().stop_reason, StopReason::Stop);
    assert!(
        told.iter().filter(|word| *word == "start").count() == 1,
        "{told:?}"
    );
    assert!(
        told.iter().filter(|word| *word == "end").count() == 1,
        "{told:?}"
    );
    assert!(
        told[0] == "start" && told.last().unwrap() == "end",
        "{told:?}"
    );
    let identity = [&answer.provider, &answer.api, &answer.model];
    assert_eq!(identity, ["fake", "scripted", "m"]);
    assert_eq!(
        answer.error_message.is_some(),
        answer.stop_reason.is_failure()
    );
    assert!(answer.timestamp > 0);
    (answer, told)
}

#[tokio::test]
async fn an_error_or_a_panic_of_a_provider_is_an_error_answer() {
    // L21, L23, invariant 39
    for (events, text) in [(Vec::new(), ""), (half(), "half")] {
        let (answer, told) = done(Deed::Fail(events.clone(), "it broke")).await;
        assert_eq!(answer.error_message.as_deref(), Some("it broke"));
        assert_eq!(
            (answer.stop_reason, said(&answer).as_str()),
            (StopReason::Error, text)
        );
        assert_eq!(told.len(), if text.is_empty() { 2 } else { 5 });
        let (answer, _) = done(Deed::Panic(events)).await;
        let error = answer.error_message.unwrap();
        assert!(
            error.starts_with("the code of \"fake\" panicked: out of order"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_an_error_answer_with_what_came() {
    // L21, L23
    for answer in ["", "nonsense", "[]", "3", "{\"stopReason\": "] {
        let (answer, _) = done(Deed::Say(half(), answer.to_owned())).await;
        assert_eq!(
            (answer.stop_reason, said(&answer).as_str()),
            (StopReason::Error, "half")
        );
        let error = answer.error_message.unwrap();
        assert!(
            error.starts_with("the answer of the provider cannot be read"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn an_answer_without_a_stop_reason_that_is_known_is_an_error_answer() {
    // L22, M5, M6
    let cases = [
        (json!({}), "without a stop reason"),
        (json!({"stopReason": null}), "without a stop reason"),
        (json!({"stopReason": "pending"}), "without a stop reason"),
        (
            json!({"stopReason": "bored"}),
            "an unknown stop reason: \"bored\"",
        ),
        (json!({"stopReason": 7}), "an unknown stop reason: 7"),
        (json!({"stopReason": "error"}), "did not say why"),
    ];
    for (answer, why) in cases {
        let (answer, told) = done(Deed::Say(Vec::new(), answer.to_string())).await;
        assert_eq!(answer.stop_reason, StopReason::Error);
        assert!(
            answer.error_message.as_ref().unwrap().contains(why),
            "{answer:?}"
        );
        assert_eq!(told, ["start", "end"]);
    }
}

#[tokio::test]
async fn a_stream_that_says_nothing_is_one_message_with_what_the_answer_holds() {
    // L22: no start, so the message starts with its final form
    let content = json!([{"type": "text", "text": "all at once"}]);
    let answer = json!({"stopReason": "stop", "content": content}).to_string();
    let (answer, told) = done(Deed::Say(Vec::new(), answer)).await;
    assert_eq!(
        (said(&answer).as_str(), told),
        ("all at once", vec!["start".into(), "end".into()])
    );
}

#[tokio::test]
async fn events_that_fit_nothing_are_left_out() {
    // L22, L23
    let delta =
        |at: usize, text: &str| json!({"type": "text_delta", "contentIndex": at, "delta": text});
    let start = json!({"type": "start"});
    let events = written(&[
        // Before the start.
        json!({"type": "text_start", "contentIndex": 0}),
        delta(0, "early"),
        start.clone(),
        // A block out of its place, one of another kind, and one that is not there.
        json!({"type": "text_start", "contentIndex": 4}),
        delta(9, "nowhere"),
        json!({"type": "text_start", "contentIndex": 0}),
        json!({"type": "thinking_delta", "contentIndex": 0, "delta": "hm"}),
        delta(0, "he"),
        // Starts again, and what no version knows.
        start.clone(),
        json!({"type": "applause"}),
        json!("text_delta"),
        delta(0, "llo"),
        json!({"type": "text_end", "contentIndex": 0, "content": "hello"}),
        // After the end.
        delta(0, " there"),
        json!({"type": "text_end", "contentIndex": 0, "content": "bye"}),
        json!({"type": "text_start", "contentIndex": 0}),
        start,
    ]);
    let expected = [
        "start",
        "text_start",
        "text_delta",
        "text_delta",
        "text_end",
        "end",
    ];
    // As it fails, what was assembled is the message.
    let (answer, told) = done(Deed::Fail(events, "enough")).await;
    assert_eq!(
        (said(&answer).as_str(), told),
        ("hello", expected.map(String::from).to_vec())
    );
}

#[tokio::test]
async fn bytes_that_are_no_events_are_passed_by() {
    // L22
    let mut events = half();
    for garbage in [
        "",
        "{",
        "\u{0}",
        "null",
        "[[[",
        "{\"type\": 3}",
        "\"\\ud800\"",
    ] {
        events.insert(2, garbage.to_owned());
    }
    let (answer, told) = done(Deed::Fail(events, "enough")).await;
    assert_eq!((said(&answer).as_str(), told.len()), ("half", 5));
}

#[tokio::test]
async fn a_stream_that_never_ends_ends_with_the_users_patience() {
    // L22, L28, invariant 27
    for (events, text) in [(Vec::new(), ""), (half(), "half")] {
        let begun = Arc::new(Notify::new());
        let mut scene = with_wire(Deed::Hang(events, Arc::clone(&begun))).await;
        let mut heard = scene.session.subscribe();
        let (end, ()) = tokio::join!(scene.prompt("go"), async {
            begun.notified().await;
            let is_said = |event: &Event| {
                matches!(
                    event,
                    Event::MessageUpdate {
                        assistant_message_event: StreamEvent::TextDelta { .. },
                        ..
                    }
                )
            };
            while !text.is_empty() && !is_said(&heard.recv().await.unwrap()) {}
            scene.session.abort().await;
        });
        let answer = end.last.unwrap();
        let answer = answer.as_assistant().unwrap();
        assert_eq!(
            (answer.stop_reason, said(answer).as_str()),
            (StopReason::Aborted, text)
        );
        assert_eq!(answer.error_message.as_deref(), Some("Request was aborted"));
        let told = told(&mut scene);
        assert_eq!(
            (
                told.first().unwrap().as_str(),
                told.last().unwrap().as_str()
            ),
            ("start", "end")
        );
        let next = scene.prompt("again").await.last.unwrap();
        assert_eq!(next.as_assistant().unwrap().stop_reason, StopReason::Stop);
    }
}
