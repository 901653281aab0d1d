//! What a plugin can contribute, and what it can ask for, by example. Every example here is compiled and
//! run by the tests of this crate, on the [bench](crate::testing) that plugins' own tests have.
//!
//! A plugin is what its `create` function answers: a [`Plugin`](crate::Plugin) to which contributions are
//! added. `export!` names them once more, so that pliant knows them without running the library; a
//! difference between the two is refused with a sentence when the library is loaded.
//!
//! # The loop of work
//!
//! `pliant plugin new NAME` starts a crate, `pliant dev` opens a session with it: every save is built, the
//! compiler's errors are shown in the session while the version before goes on serving, and what was
//! built is live at the end of the turn. `pliant plugin check FILE` says everything the loader would say.
//!
//! # A tool
//!
//! The input type is the schema that the model sees; what does not fit it never reaches the tool. A
//! failure is an [`Error`](crate::Error), which the model reads. [`ToolCtx`](crate::ToolCtx) shows partial
//! results, says whether anybody still waits, and lends the services.
//!
//! ```
//! use pliant_sdk::testing::Bench;
//! use pliant_sdk::{Error, Plugin, Tool, ToolCtx, ToolResult, ToolSpec};
//! use serde_json::json;
//!
//! /// Doc comments become descriptions.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Roll {
//!     /// How many sides the die has.
//!     sides: u32,
//! }
//!
//! struct Dice;
//!
//! impl Tool for Dice {
//!     type Input = Roll;
//!
//!     fn spec(&self) -> ToolSpec {
//!         ToolSpec::new("dice", "Roll a die. Use it whenever chance should decide.")
//!     }
//!
//!     async fn execute(&self, roll: Roll, ctx: ToolCtx) -> Result<ToolResult, Error> {
//!         if roll.sides < 2 {
//!             return Err(Error::invalid("A die has two sides at least."));
//!         }
//!         if ctx.cancelled() {
//!             return Err(Error::cancelled());
//!         }
//!         Ok(ToolResult::text(format!("{}", 1 + 3 % roll.sides)))
//!     }
//! }
//!
//! let bench = Bench::new(Plugin::new().tool(Dice));
//! assert_eq!(Bench::text(&bench.tool("dice", json!({"sides": 6})).unwrap()), "4");
//! let error = bench.tool("dice", json!({"sides": 1})).unwrap_err();
//! assert_eq!(error.message, "A die has two sides at least.");
//! ```
//!
//! # A provider
//!
//! A service whose protocol pliant knows is only declared; the kernel sends the requests and adds the
//! key, which the plugin never sees. `export!` names the variable that may hold it:
//! `provider "acme" env "ACME_KEY"`. A protocol of its own is a [`Wire`](crate::provider::Wire).
//!
//! ```
//! use pliant_sdk::provider::{Provider, ProviderSpec};
//! use pliant_sdk::testing::Bench;
//! use pliant_sdk::{Model, Plugin};
//!
//! struct Acme;
//!
//! impl Provider for Acme {
//!     fn spec(&self) -> ProviderSpec {
//!         ProviderSpec {
//!             name: "acme".into(),
//!             label: "Acme".into(),
//!             base_url: "https://api.acme.example/v1".into(),
//!             api: "openai-completions".into(),
//!             env: vec!["ACME_KEY".into()],
//!             ..ProviderSpec::default()
//!         }
//!     }
//!
//!     fn models(&self) -> Vec<Model> {
//!         vec![Model { id: "anvil-2".into(), provider: "acme".into(),
//!             api: "openai-completions".into(), ..Model::default() }]
//!     }
//! }
//!
//! let bench = Bench::new(Plugin::new().provider(Acme));
//! assert_eq!(bench.models("acme").unwrap()[0].id, "anvil-2");
//! ```
//!
//! # A hook
//!
//! Handlers attach to everything a prompt passes; [`hook`](crate::hook) has the typed ones, and
//! [`Plugin::on_event`](crate::Plugin::on_event) takes any. A gate that fails blocks: its reason is what the
//! model reads.
//!
//! ```
//! use pliant_sdk::hook::{ToolCallAnswer, ToolCallEvent};
//! use pliant_sdk::testing::Bench;
//! use pliant_sdk::Plugin;
//! use serde_json::json;
//!
//! let plugin = Plugin::new().on(|call: ToolCallEvent, _ctx| async move {
//!     let command = call.input.get("command").and_then(|it| it.as_str()).unwrap_or_default();
//!     Ok(match command.contains("rm -rf /") {
//!         true => ToolCallAnswer::block("Not on this machine."),
//!         false => ToolCallAnswer::default(),
//!     })
//! });
//! let event = json!({"toolName": "bash", "toolCallId": "1", "input": {"command": "rm -rf /"}});
//! assert_eq!(Bench::new(plugin).hook("tool_call", event).unwrap()["reason"], "Not on this machine.");
//! ```
//!
//! # A command
//!
//! `/name`, typed by the user. Commands may do what handlers may not, such as waiting for the run.
//!
//! ```
//! use pliant_sdk::command::{Command, CommandCtx, CommandSpec};
//! use pliant_sdk::testing::Bench;
//! use pliant_sdk::{Error, Plugin};
//!
//! struct Greet;
//!
//! impl Command for Greet {
//!     fn spec(&self) -> CommandSpec {
//!         CommandSpec::new("greet", "Greet somebody.")
//!     }
//!
//!     async fn run(&self, name: String, ctx: CommandCtx) -> Result<(), Error> {
//!         if name.is_empty() {
//!             return Err(Error::invalid("Whom? /greet NAME"));
//!         }
//!         // Where nobody is shown anything, this does nothing.
//!         let _ = ctx.ui().notify(&format!("Hello, {name}!"), Default::default()).await;
//!         Ok(())
//!     }
//! }
//!
//! let bench = Bench::new(Plugin::new().command(Greet));
//! assert!(bench.command("greet", "you").is_ok());
//! assert!(bench.command("greet", "").is_err());
//! ```
//!
//! # A renderer
//!
//! What is shown in place of what a front end shows by itself is a [`View`](crate::view::View): plain data,
//! which the front end lays out with its theme. [`display`](crate::display) has renderers for custom messages,
//! custom entries and calls of tools, and what changes Markdown; a tool may show its own calls.
//!
//! ```
//! use pliant_sdk::display::ToolPart;
//! use pliant_sdk::testing::Bench;
//! use pliant_sdk::view::View;
//! use pliant_sdk::Plugin;
//! use serde_json::json;
//!
//! let plugin = Plugin::new().tool_renderer(|shown, ctx| async move {
//!     // `None` leaves it to whoever comes next: another plugin, the tool, at last the front end.
//!     if shown.tool_name != "bash" || shown.part != ToolPart::Call {
//!         return Ok(None);
//!     }
//!     let command = shown.input["command"].as_str().unwrap_or_default();
//!     // What would be shown without this renderer; nothing on a bench.
//!     let next = ctx.host().next_view().await.unwrap_or_default();
//!     let line = View::colored(format!("$ {command}"), "accent");
//!     Ok(Some(View::column([line].into_iter().chain(next))))
//! });
//! let bench = Bench::new(plugin);
//! let call = json!({"part": "call", "toolName": "bash", "input": {"command": "ls"}});
//! let view = bench.view("tool_renderer", "tools", call).unwrap().unwrap();
//! assert_eq!(view.to_plain(), "$ ls");
//! let other = json!({"part": "call", "toolName": "read"});
//! assert_eq!(bench.view("tool_renderer", "tools", other).unwrap(), None);
//! ```
//!
//! # Keys, completions, servers, and what comes later
//!
//! [`shortcut`](crate::shortcut) gives a key something to do, [`autocomplete`](crate::autocomplete) completes
//! what is typed, [`mcp`](crate::mcp) declares a server of the Model Context Protocol. What is known only
//! while the plugin serves is registered then, with [`Late`](crate::late::Late).
//!
//! # Work beside a call
//!
//! Futures of a plugin are polled on threads that other plugins share. What computes or blocks goes to
//! [`Host::blocking`](crate::Host::blocking), or to a thread of the plugin's own. A thread that outlives its
//! generation is told so: every service answers [`STALE`](crate::error::code::STALE) from then on, which is
//! its sign to end.
//!
//! ```
//! use pliant_sdk::testing::{Bench, block_on};
//!
//! let host = Bench::host();
//! let sum = block_on(host.blocking(|| (1..=1_000_000_u64).sum::<u64>())).unwrap();
//! assert_eq!(sum, 500_000_500_000);
//! ```
//!
//! # State
//!
//! [`state`](crate::state) hands a value to the next version of the plugin when it is reloaded.
//! [`Host::keep_state`](crate::Host::keep_state) keeps one beyond the process, and
//! [`Session::append_entry`](crate::session::Session::append_entry) in the conversation it belongs to.
//!
//! # Services
//!
//! Everything from outside comes through [`Host`](crate::Host): HTTP, processes, files, time, settings, the
//! log, the session, the user. In a test a few lines stand for them:
//!
//! ```
//! use pliant_sdk::host::{BoxFuture, ByteStream, Services};
//! use pliant_sdk::testing::{Bench, block_on};
//! use pliant_sdk::{Error, Host};
//!
//! struct Settings;
//!
//! impl Services for Settings {
//!     fn call(&self, service: &str, _: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
//!         let answer = match service {
//!             "config.get" => Ok(b"\"dark\"".to_vec()),
//!             other => Err(Error::unsupported(other)),
//!         };
//!         Box::pin(std::future::ready(answer))
//!     }
//!     fn open(&self, service: &str, _: Vec<u8>) -> BoxFuture<'static, Result<ByteStream, Error>> {
//!         Box::pin(std::future::ready(Err(Error::unsupported(service))))
//!     }
//!     fn notify(&self, _: &str, _: &[u8]) {}
//! }
//!
//! let host = Host::from_services(Settings);
//! assert_eq!(block_on(host.config("theme")).unwrap(), "dark");
//! ```
//!
//! # When things go wrong
//!
//! A panic is an error of its call; three in a row, and the plugin takes no more calls until its file
//! changes or the user reloads. A handler has 30 seconds (`extensions.handlerTimeoutMs`), a start ten. What
//! cannot be contained in one process (a wrong address, an abort, an endless loop) can be in two:
//! `isolation: "process"` in `export!`, or the user's setting `plugins.isolation`. Before a library of a
//! user is loaded for the first time, it is tried out in a process of its own, where services answer
//! `unavailable`: `create` has to cope with that.
