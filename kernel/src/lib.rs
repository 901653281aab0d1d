//! The kernel of pliant: everything between a front end and the plugins.
//!
//! The flow: a front end gives a [`session::Session`] a prompt; the [`pipeline`] decides what it is;
//! a [`run`] prepares messages and starts the [`agent`] loop, which asks the model, runs tools and
//! says [`pliant_sdk::Event`]s; messages become entries of the [`tree`], events go to subscribers.
//! At every stage the [`registry`] is asked what plugins and scripts have to say.
//!
//! The kernel knows no wire, no tool, no terminal and no scripting language: those are contributed
//! by generations of sources, and reach the world through [`host`] services.

pub mod boot;
pub mod environment;
pub mod jsonfile;
pub mod settings;
pub mod textfile;
pub mod trust;

pub mod session;

pub mod pipeline;

pub mod run;

pub mod compaction;

pub mod agent;

pub mod prompt;

pub mod resources;

pub mod tree;

pub mod export;

pub mod registry;

pub mod dylib;

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
