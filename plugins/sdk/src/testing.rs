//! A plugin on the bench: its tools, handlers and commands called from the author's own tests, without a
//! kernel. What they answer is what the kernel would get, panics included, which are errors.
//!
//! ```
//! use pliant_sdk::testing::Bench;
//! use pliant_sdk::{Error, Plugin, Tool, ToolCtx, ToolResult, ToolSpec};
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Input {
//!     text: String,
//! }
//!
//! struct Shout;
//!
//! impl Tool for Shout {
//!     type Input = Input;
//!     fn spec(&self) -> ToolSpec {
//!         ToolSpec::new("shout", "Say something loudly.")
//!     }
//!     async fn execute(&self, input: Input, _ctx: ToolCtx) -> Result<ToolResult, Error> {
//!         Ok(ToolResult::text(input.text.to_uppercase()))
//!     }
//! }
//!
//! let bench = Bench::new(Plugin::new().tool(Shout));
//! let result = bench.tool("shout", json!({"text": "hello"})).unwrap();
//! assert_eq!(Bench::text(&result), "HELLO");
//! assert!(bench.tool("shout", json!({})).is_err());
//! ```

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::Error;
use crate::host::{Host, NoServices, Services};
use crate::message::joined_text;
use crate::model::Model;
use crate::plugin::{CallCtx, Invocation, Plugin};
use crate::tool::ToolResult;
use crate::view::View;

/// A plugin and the services it is given.
#[derive(Debug)]
pub struct Bench {
    plugin: Plugin,
    host: Host,
}

impl Bench {
    /// A plugin that gets no services: what it asks for is answered `unsupported`.
    #[must_use]
    pub fn new(plugin: Plugin) -> Self {
        Self::with_services(plugin, NoServices)
    }

    /// A plugin with services that the test makes up.
    #[must_use]
    pub fn with_services(plugin: Plugin, services: impl Services + 'static) -> Self {
        Self {
            plugin,
            host: Host::from_services(services),
        }
    }

    /// The host of such a plugin, for its `create` function.
    #[must_use]
    pub fn host() -> Host {
        Host::from_services(NoServices)
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// What it answers; `not_found` without such a tool.
    pub fn tool(&self, name: &str, arguments: Value) -> Result<ToolResult, Error> {
        let payload = json!({"toolCallId": "test", "input": arguments, "cwd": "/"});
        self.call("tool", name, "execute", &payload)
    }

    /// The text of a result.
    #[must_use]
    pub fn text(result: &ToolResult) -> String {
        joined_text(&result.content, "\n")
    }

    /// Tells the first handler of an event, and answers what it says; null for nothing.
    ///
    /// # Errors
    /// What it answers; `not_found` without such a handler.
    pub fn hook(&self, event: &str, payload: Value) -> Result<Value, Error> {
        self.call("hook", event, event, &payload)
    }

    /// Runs a command with what is typed behind its name.
    ///
    /// # Errors
    /// What it answers; `not_found` without such a command.
    pub fn command(&self, name: &str, typed: &str) -> Result<(), Error> {
        self.call::<Value>("command", name, "run", &json!(typed))
            .map(drop)
    }

    /// What a renderer shows: `kind` is `message_renderer`, `entry_renderer` or `tool_renderer` (its name
    /// is `tools`), `shown` what is to be shown.
    ///
    /// # Errors
    /// What it answers, and what is wrong with its view; `not_found` without such a renderer.
    pub fn view(&self, kind: &str, name: &str, shown: Value) -> Result<Option<View>, Error> {
        let view: Option<View> = self.call(kind, name, "render", &shown)?;
        view.iter().try_for_each(View::check)?;
        Ok(view)
    }

    /// Presses a key.
    ///
    /// # Errors
    /// What it answers; `not_found` without such a shortcut.
    pub fn press(&self, key: &str) -> Result<(), Error> {
        self.call::<Value>("shortcut", key, "press", &Value::Null)
            .map(drop)
    }

    /// The models of a provider.
    ///
    /// # Errors
    /// What it answers; `not_found` without such a provider.
    pub fn models(&self, provider: &str) -> Result<Vec<Model>, Error> {
        self.call("provider", provider, "models", &Value::Null)
    }

    fn call<A: DeserializeOwned>(
        &self,
        kind: &str,
        name: &str,
        op: &str,
        payload: &Value,
    ) -> Result<A, Error> {
        let described = self.plugin.describe();
        let is_meant = |item: &&Value| item["kind"] == kind && item["name"] == name;
        let id = described
            .iter()
            .find(is_meant)
            .and_then(|item| item["id"].as_u64());
        let id = id.and_then(|id| u32::try_from(id).ok()).ok_or_else(|| {
            let message = format!("the plugin contributes no {kind} \"{name}\"");
            Error::new(crate::error::code::NOT_FOUND, message)
        })?;
        let call = Invocation {
            op: op.to_owned(),
            payload: serde_json::to_vec(payload)?,
            ctx: CallCtx::answer_only(self.host.clone()),
        };
        let answer = block_on(self.plugin.invoke(id, call))?;
        Ok(serde_json::from_slice(&answer)?)
    }
}

/// Waits for a future on this thread.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => thread::park(),
        }
    }
}
