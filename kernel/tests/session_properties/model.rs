//! The model of a script: says what the script says, and records what it was asked.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pliant_sdk::message::{AssistantMessage, Message, StopReason, ToolCall, Usage};
use pliant_sdk::plugin::CallCtx;
use pliant_sdk::provider::{Provider, ProviderSpec, StreamOut, StreamRequest, Wire};
use pliant_sdk::stream::MessageWriter;
use pliant_sdk::virtual_model::{Route, RouteRequest, VirtualModel, VirtualModelSpec};
use pliant_sdk::{Error, Model};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::extension::Loads;
use crate::script::{Call, Deed, Reply, Say};

/// Something waits here until somebody lets it go on.
pub struct Gate(Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl Gate {
    pub async fn pass(&self) {
        // A closed one is open for good.
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }

    pub fn open(&self, so_many: usize) {
        self.0.add_permits(so_many);
    }

    pub fn open_for_good(&self) {
        self.0.close();
    }
}

/// Counts what is alive.
#[derive(Clone, Default)]
pub struct Alive(Arc<AtomicUsize>);

/// One thing that is alive.
pub struct Life(Arc<AtomicUsize>);

impl Alive {
    pub fn begin(&self) -> Life {
        self.0.fetch_add(1, Ordering::SeqCst);
        Life(Arc::clone(&self.0))
    }

    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What the model was asked once.
pub struct Request {
    /// The loads of the extension at that time.
    pub loads: (usize, usize),
    pub messages: Vec<Arc<Message>>,
}

/// What the model is to say and what it was asked.
#[derive(Default)]
pub struct Talk {
    pub replies: Mutex<VecDeque<Reply>>,
    pub requests: Mutex<Vec<Request>>,
    pub loads: Arc<Loads>,
    pub gate: Gate,
    pub alive: Alive,
}

pub struct ScriptedWire(pub Arc<Talk>);

impl Wire for ScriptedWire {
    fn api(&self) -> &'static str {
        "scripted"
    }

    async fn stream(
        &self,
        request: StreamRequest,
        out: StreamOut,
    ) -> Result<AssistantMessage, Error> {
        let talk = &self.0;
        let _life = talk.alive.begin();
        let number = {
            let mut requests = talk.requests.lock().unwrap();
            requests.push(Request {
                loads: talk.loads.look(),
                messages: request.messages.to_vec(),
            });
            requests.len()
        };
        let reply = talk.replies.lock().unwrap().pop_front();
        let Some(reply) = reply else {
            let mut writer = MessageWriter::new(request.answer(), &out);
            writer.text(&format!("Answer {number}"));
            return Ok(writer.finish(None));
        };
        if reply.gates.0 {
            talk.gate.pass().await;
        }
        match &reply.what {
            // Without the noise of the panic hook.
            Say::Panic => resume_unwind(Box::new("the model panics")),
            Say::Nonsense(given) => return nonsense(&request, given),
            _ => {}
        }
        let mut writer = MessageWriter::new(request.answer(), &out);
        writer.message_mut().usage = Usage {
            input: reply.input,
            output: 5,
            total_tokens: reply.input + 5,
            ..Usage::default()
        };
        let words = match &reply.what {
            Say::Text(words) | Say::Fail(words, _) => *words,
            _ => 1,
        };
        (0..words).for_each(|word| writer.text(&format!("Answer {number} word {word} ")));
        if reply.gates.1 {
            talk.gate.pass().await;
        }
        match reply.what {
            Say::Fail(_, text) => return Err(Error::failed(text)),
            Say::Hang => std::future::pending().await,
            Say::Half => return Ok(writer.finish(Some(StopReason::Length))),
            Say::CutCalls(calls) => {
                write(&mut writer, &calls, number);
                return Ok(writer.finish(Some(StopReason::Length)));
            }
            Say::Calls(calls) => write(&mut writer, &calls, number),
            _ => {}
        }
        Ok(writer.finish(None))
    }
}

fn nonsense(request: &StreamRequest, given: &Value) -> Result<AssistantMessage, Error> {
    let mut answer = serde_json::to_value(request.answer())?;
    answer["stopReason"] = json!("stop");
    for (key, value) in given.as_object().into_iter().flatten() {
        answer[key] = value.clone();
    }
    Ok(serde_json::from_value(answer)?)
}

fn write(writer: &mut MessageWriter<&StreamOut>, calls: &[Call], number: usize) {
    let mut id = String::new();
    for (at, call) in calls.iter().enumerate() {
        if at == 0 || !call.same_id {
            id = format!("{number}-{at}");
        }
        let arguments = match call.deed {
            Deed::BadArguments => json!({"text": 5}),
            deed => json!({"deed": format!("{deed:?}"), "text": format!("{number}-{at}")}),
        };
        writer.tool_call(ToolCall {
            id: id.clone(),
            name: call.tool.to_owned(),
            arguments: arguments.as_object().cloned().unwrap_or_default(),
            ..ToolCall::default()
        });
    }
}

pub struct ScriptedProvider;

impl Provider for ScriptedProvider {
    fn spec(&self) -> ProviderSpec {
        ProviderSpec {
            name: "fake".into(),
            keyless: true,
            ..ProviderSpec::default()
        }
    }

    fn models(&self) -> Vec<Model> {
        let model = |id: &str, reasoning| Model {
            id: id.into(),
            provider: "fake".into(),
            api: "scripted".into(),
            reasoning,
            ..Model::default()
        };
        vec![model("m", false), model("thinker", true)]
    }
}

/// Sends every other request to the one model, and the rest to the other; some it knows no way for.
pub struct Router;

impl VirtualModel for Router {
    fn spec(&self) -> VirtualModelSpec {
        VirtualModelSpec::new("router", "auto", "Auto")
    }

    async fn route(&self, request: RouteRequest, _: CallCtx) -> Result<Route, Error> {
        let count = request.messages.len();
        if count % 7 == 6 {
            return Err(Error::failed("the router knows no way"));
        }
        let to = if count.is_multiple_of(2) {
            "fake/m"
        } else {
            "fake/thinker"
        };
        Ok(Route {
            state: Some(json!(count)),
            ..Route::to(to)
        })
    }
}
