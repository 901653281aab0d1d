//! The test bench: a script loaded over scripted services, and one way to call what it contributes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pliant_kernel::registry::{Contribution, Generation, Kind, Rank};
use pliant_scripts::{Limits, Script, load_extension};
use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::{BoxFuture, ByteStream, Host, Services};
use pliant_sdk::plugin::{CallCtx, Caller, Flow, Invocation};
use serde_json::{Value, json};
use tokio::sync::Notify;

type Answer = Box<dyn Fn(&[u8]) -> Result<Vec<Vec<u8>>, Error> + Send + Sync>;

/// Services that answer what the test says, and remember what they were asked.
#[derive(Default)]
pub(crate) struct Fake {
    answers: HashMap<&'static str, Answer>,
    delay: Duration,
    asked: Mutex<Vec<(String, Value)>>,
    was_asked: Notify,
}

impl Fake {
    /// A service that answers JSON.
    pub(crate) fn on(
        mut self,
        service: &'static str,
        answer: fn(Value) -> Result<Value, Error>,
    ) -> Self {
        let run = move |payload: &[u8]| {
            let answer = answer(first_line(payload))?;
            Ok(vec![answer.to_string().into_bytes()])
        };
        self.answers.insert(service, Box::new(run));
        self
    }

    /// A service that answers chunks of bytes.
    pub(crate) fn stream(
        mut self,
        service: &'static str,
        answer: impl Fn(Value) -> Result<Vec<Vec<u8>>, Error> + Send + Sync + 'static,
    ) -> Self {
        let run = move |payload: &[u8]| answer(first_line(payload));
        self.answers.insert(service, Box::new(run));
        self
    }

    /// Every answer comes this much later.
    pub(crate) fn slow(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    pub(crate) fn asked(&self, service: &str) -> Vec<Value> {
        let asked = self.asked.lock().unwrap();
        let same = asked.iter().filter(|(name, _)| name == service);
        same.map(|(_, payload)| payload.clone()).collect()
    }

    /// Waits until a service was asked that often.
    pub(crate) async fn until_asked(&self, service: &str, times: usize) -> Vec<Value> {
        loop {
            let next = self.was_asked.notified();
            let asked = self.asked(service);
            if asked.len() >= times {
                return asked;
            }
            let patience = tokio::time::timeout(Duration::from_secs(20), next);
            assert!(patience.await.is_ok(), "{service} was asked {asked:?} only");
        }
    }

    fn answer(&self, service: &str, payload: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        self.note(service, payload);
        match self.answers.get(service) {
            Some(answer) => answer(payload),
            None => Err(Error::unsupported(service)),
        }
    }

    fn note(&self, service: &str, payload: &[u8]) {
        let mut asked = self.asked.lock().unwrap();
        asked.push((service.to_owned(), first_line(payload)));
        drop(asked);
        self.was_asked.notify_waiters();
    }
}

fn first_line(payload: &[u8]) -> Value {
    let line = payload.split(|b| *b == b'\n').next().unwrap_or_default();
    serde_json::from_slice(line).unwrap_or_default()
}

struct Lent(Arc<Fake>);

impl Services for Lent {
    fn call(&self, service: &str, payload: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        let (fake, service) = (Arc::clone(&self.0), service.to_owned());
        Box::pin(async move {
            tokio::time::sleep(fake.delay).await;
            fake.answer(&service, &payload)
                .map(|chunks| chunks.concat())
        })
    }

    fn open(
        &self,
        service: &str,
        payload: Vec<u8>,
    ) -> BoxFuture<'static, Result<ByteStream, Error>> {
        let (fake, service) = (Arc::clone(&self.0), service.to_owned());
        Box::pin(async move {
            tokio::time::sleep(fake.delay).await;
            fake.answer(&service, &payload).map(ByteStream::from_chunks)
        })
    }

    fn notify(&self, service: &str, payload: &[u8]) {
        self.0.note(service, payload);
    }
}

/// The caller's side: collects what is emitted.
#[derive(Default)]
pub(crate) struct Listener {
    emitted: Mutex<Vec<Value>>,
    gone: AtomicBool,
    deaf: AtomicBool,
}

impl Caller for Listener {
    fn cancelled(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    fn emit(&self, payload: &[u8]) -> Flow {
        self.emitted
            .lock()
            .unwrap()
            .push(serde_json::from_slice(payload).unwrap());
        match self.deaf.load(Ordering::Relaxed) {
            true => Flow::Stop,
            false => Flow::Continue,
        }
    }
}

/// A loaded script.
pub(crate) struct Bench {
    pub(crate) generation: Arc<dyn Generation>,
    pub(crate) fake: Arc<Fake>,
    pub(crate) listener: Arc<Listener>,
}

/// Loads a script that has to be right.
pub(crate) async fn load(text: &str) -> Bench {
    load_with(text, Fake::default()).await
}

pub(crate) async fn load_with(text: &str, fake: Fake) -> Bench {
    match try_load(text, fake, Limits::default()).await {
        Ok(bench) => bench,
        Err(error) => panic!("{error}"),
    }
}

/// Loads a script that has to be wrong, and answers why it is.
pub(crate) async fn load_error(text: &str) -> Error {
    match try_load(text, Fake::default(), Limits::default()).await {
        Ok(_) => panic!("it was loaded"),
        Err(error) => error,
    }
}

pub(crate) async fn try_load(text: &str, fake: Fake, limits: Limits) -> Result<Bench, Error> {
    try_load_at(None, text, fake, limits).await
}

/// Loads a script as if it were in that file.
pub(crate) async fn try_load_at(
    path: Option<PathBuf>,
    text: &str,
    fake: Fake,
    limits: Limits,
) -> Result<Bench, Error> {
    let script = Script {
        name: "t.rhai".to_owned(),
        path,
        text: text.to_owned(),
        rank: Rank::CommandLine,
    };
    let fake = Arc::new(fake);
    let generation = load_extension(script, Arc::new(Lent(Arc::clone(&fake))), limits).await?;
    Ok(Bench {
        generation,
        fake,
        listener: Arc::default(),
    })
}

impl Bench {
    pub(crate) fn contribution(&self, kind: Kind, name: &str) -> Contribution {
        let all = self.generation.contributions();
        all.iter()
            .find(|item| item.kind == kind && item.name == name)
            .cloned()
            .unwrap_or_else(|| panic!("no {kind:?} {name} in {all:?}"))
    }

    /// Starts an operation.
    pub(crate) fn start(
        &self,
        contribution: u32,
        op: &str,
        payload: &Value,
    ) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        let host = Host::from_services(Lent(Arc::clone(&self.fake)));
        let listener = Arc::clone(&self.listener);
        let call = Invocation {
            op: op.to_owned(),
            payload: payload.to_string().into_bytes(),
            ctx: CallCtx::new(listener, host),
        };
        self.generation.invoke(contribution, call)
    }

    pub(crate) async fn invoke(
        &self,
        kind: Kind,
        name: &str,
        op: &str,
        payload: Value,
    ) -> Result<Value, Error> {
        let id = self.contribution(kind, name).id;
        let answer = self.start(id, op, &payload).await?;
        Ok(serde_json::from_slice(&answer).unwrap())
    }

    /// Runs a tool.
    pub(crate) async fn tool(&self, name: &str, input: Value) -> Result<Value, Error> {
        let payload = json!({"toolCallId": "c1", "input": input, "cwd": "/work"});
        self.invoke(Kind::Tool, name, "execute", payload).await
    }

    /// Runs a tool and answers its text.
    pub(crate) async fn tool_text(&self, name: &str, input: Value) -> String {
        match self.tool(name, input).await {
            Ok(result) => result["content"][0]["text"].as_str().unwrap().to_owned(),
            Err(error) => format!("{}: {}", error.code, error.message),
        }
    }

    /// Runs the handler of an event.
    pub(crate) async fn hook(&self, event: &str, payload: Value) -> Result<Value, Error> {
        self.invoke(Kind::Hook, event, event, payload).await
    }

    pub(crate) fn emitted(&self) -> Vec<Value> {
        std::mem::take(&mut *self.listener.emitted.lock().unwrap())
    }

    /// From now on the caller wants nothing more.
    pub(crate) fn hang_up(&self) {
        self.listener.deaf.store(true, Ordering::Relaxed);
        self.listener.gone.store(true, Ordering::Relaxed);
    }
}

/// A service that print mode does not have.
pub(crate) fn unavailable(_: Value) -> Result<Value, Error> {
    Err(Error::new(code::UNAVAILABLE, "nobody is there"))
}

/// An HTTP answer as the service sends it.
pub(crate) fn http_answer(status: u16, body: &str) -> Vec<Vec<u8>> {
    let head = json!({"status": status, "headers": [["content-type", "application/json"]]});
    vec![head.to_string().into_bytes(), body.as_bytes().to_vec()]
}

/// A stream payload of a conversation.
pub(crate) fn request(messages: &[Value]) -> Value {
    json!({
        "model": {"id": "m", "provider": "p", "api": "script"},
        "options": {"sessionId": "s1"},
        "messages": messages,
    })
}

pub(crate) fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1})
}
