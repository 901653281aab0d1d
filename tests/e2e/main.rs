//! The end-to-end tests: one module per behaviour.

mod abi;
mod bad_input;
mod compaction;
mod guide;
mod held;
mod line;
mod model_server;
mod plugins;
mod prompt;
mod repair;
mod requests;
mod resources;
mod retry;
mod rpc;
mod scripts;
mod session;
mod session_command;
mod signals;
mod stdout;
mod tools;
mod unruly;
