//! The kernel of pliant: everything between a front end and the plugins. It is the program's library
//! too: the binary of pliant is one user of it.
//!
//! # A conversation in a program
//!
//! ```no_run
//! use pliant_kernel::{Builder, Prompt, SessionChoice};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! // The working directory, keys, settings and plugins of the user; `Builder::new` knows nobody.
//! let runtime = Builder::of_process()?
//!     .session(SessionChoice::InMemory)
//!     .build()
//!     .await?;
//! let session = runtime.session();
//! session.prompt(Prompt::text("What is in this directory?"), |_| ()).await?;
//! println!("{}", session.last_assistant_text().unwrap_or_default());
//! runtime.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # What there is
//!
//! - [`Builder`] puts a kernel and its first session together. What a program brings itself goes in
//!   here: tools, plugins, settings, keys, a [`HostUi`] that answers what plugins ask.
//! - [`Runtime`] owns the session that is open, and lets others take its place.
//! - [`Session`] is a cheap handle: prompts, queues, models, tools, the tree, numbers.
//!   [`Session::prompt`] returns when the run has settled and says earlier what becomes of the prompt.
//! - [`Session::subscribe`] gives every [`sdk::Event`] in order, as a stream that is bounded and loses
//!   nothing. [`sdk::Draft`] keeps the answer so far; [`sdk::Event::to_wire`] is the line that other
//!   programs read.
//! - [`tree`] is the session's file, usable without anything else.
//! - [`KernelOptions`], [`Kernel`] and [`OpenOptions`] are what the builder is made of, for programs
//!   that publish their own sources between booting and opening, as the binary does with scripts.
//!
//! The examples of this crate (`embed`, `custom_tool`, `front_end`) run without a key and a network.
//!
//! # Rules
//!
//! All futures are `Send`. A run ends early by [`Session::cancel`] (asks), [`Session::abort`] (asks and
//! waits), or when the future of its prompt is dropped, which gives the run up where it is: nothing
//! more is told of it. There is no global state, so a process may have several kernels, each with its
//! own directories. The process belongs to the program: only [`Builder::of_process`] and
//! [`Environment::of_process`] look at its variables, its home and its working directory, and nothing
//! writes to its standard streams. What tools start inherits its variables, without the keys.
//!
//! # The flow
//!
//! A front end gives a [`Session`] a prompt; the [`pipeline`] decides what it is; a [`run`] prepares
//! messages and starts the [`agent`] loop, which asks the model, runs tools and says events; messages
//! become entries of the [`tree`], events go to subscribers. At every stage the [`registry`] is asked
//! what plugins and scripts have to say.
//!
//! The kernel knows no wire, no tool, no terminal and no scripting language: those are contributed
//! by generations of sources, and reach the world through [`host`] services.
#![warn(missing_docs)]

pub mod boot;
pub mod digest;
pub mod environment;
pub mod jsonfile;
pub mod keys;
mod near;
pub mod settings;
pub mod textfile;
pub mod theme;
pub mod trust;

pub mod session;

pub mod pipeline;

pub mod run;

pub mod compaction;

pub mod agent;

pub mod prompt;

pub mod packages;
pub mod resources;

pub mod tree;

pub mod export;

pub mod registry;

pub mod dylib;

pub mod reload;

pub mod watch;

pub mod dev;

pub mod models;

pub mod host;

pub use boot::{
    BootError, BuildError, Builder, Kernel, KernelOptions, OpenError, OpenOptions, Runtime,
    SessionChoice, SessionFolders, WhenHeld,
};
pub use environment::Environment;
pub use host::ui::HostUi;
pub use pipeline::Prompt;
pub use session::{Session, Subscription, ToolSelection};

/// The types that plugins and kernel share: messages, events, tools, models.
pub use pliant_sdk as sdk;
