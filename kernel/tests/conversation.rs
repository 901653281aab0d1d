//! What a wire answers is what the kernel sent, whatever happened before: appends, branches, switches
//! between wires, requests that were given up. Only new messages cross, so both sides must agree on
//! the old ones.
#![allow(clippy::unwrap_used, reason = "test code")]

use std::sync::{Arc, Mutex};

use pliant_kernel::models::{AskedDelay, Credentials, ModelClient, ModelRequest};
use pliant_kernel::registry::{InProcess, Rank, Registry, Source};
use pliant_sdk::host::NoServices;
use pliant_sdk::message::{AssistantMessage, Message};
use pliant_sdk::provider::{StreamOptions, StreamOut, StreamRequest, Wire};
use pliant_sdk::{Error, Model, Plugin};
use tokio_util::sync::CancellationToken;

/// Keeps the last request; hangs or fails when the last message says so.
#[derive(Clone)]
struct Recorder {
    api: &'static str,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Wire for Recorder {
    fn api(&self) -> &'static str {
        self.api
    }

    async fn stream(
        &self,
        request: StreamRequest,
        _: StreamOut,
    ) -> Result<AssistantMessage, Error> {
        let texts: Vec<String> = request
            .messages
            .iter()
            .map(|message| text(message))
            .collect();
        let last = texts.last().cloned().unwrap_or_default();
        *self.seen.lock().unwrap() = texts;
        match last.as_str() {
            text if text.starts_with("hang") => std::future::pending().await,
            text if text.starts_with("fail") => Err(Error::failed("as asked")),
            _ => Ok(request.answer()),
        }
    }
}

fn text(message: &Message) -> String {
    match message {
        Message::User(user) => user.content.joined_text(""),
        other => other.role().to_owned(),
    }
}

/// A small generator of numbers, so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % 1_000_003).unwrap() % bound
    }
}

#[tokio::test]
async fn a_wire_never_sees_other_messages_than_the_kernel_sent() {
    for seed in 1..40 {
        check(seed).await;
    }
}

async fn check(seed: u64) {
    let registry = Registry::default();
    let wires: Vec<Recorder> = ["one", "two"]
        .map(|api| Recorder {
            api,
            seen: Arc::default(),
        })
        .into_iter()
        .collect();
    for wire in &wires {
        let plugin = Plugin::new().wire(wire.clone());
        let source = Source::inline(wire.api, Rank::User);
        registry.publish(Arc::new(InProcess::new(source, plugin).unwrap()));
    }
    let client = ModelClient::new(
        Arc::new(|_| Arc::new(NoServices)),
        Arc::new(Credentials::default()),
    );
    let mut dice = Dice(seed * 7_919);
    let mut branch: Vec<Arc<Message>> = Vec::new();
    let mut number = 0;
    for step in 0..60 {
        if dice.below(5) == 0 {
            branch.truncate(dice.below(branch.len() + 1));
        }
        for _ in 0..=dice.below(3) {
            number += 1;
            let kind = ["say", "say", "say", "hang", "fail"][dice.below(5)];
            branch.push(Arc::new(Message::user(format!("{kind} {number}"), 0)));
        }
        let wire = &wires[dice.below(2)];
        let request = ModelRequest {
            model: Model {
                api: wire.api.into(),
                ..Model::default()
            },
            options: StreamOptions::default(),
            messages: Arc::new(branch.clone()),
            conversation: Some("c".into()),
            now_ms: 0,
            asked: AskedDelay::default(),
        };
        let mut answer = client
            .open(
                &registry.snapshot(),
                request,
                None,
                &CancellationToken::new(),
            )
            .unwrap();
        let hangs = text(branch.last().unwrap()).starts_with("hang");
        tokio::select! {
            biased;
            _ = &mut answer.done => assert!(!hangs),
            () = tokio::task::yield_now() => assert!(hangs, "only a hanging wire does not answer at once"),
        }
        let wanted: Vec<String> = branch.iter().map(|message| text(message)).collect();
        assert_eq!(
            *wire.seen.lock().unwrap(),
            wanted,
            "seed {seed}, step {step}"
        );
    }
}
