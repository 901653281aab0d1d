//! The end-to-end tests: one module per behaviour.

mod abi;
mod bad_input;
mod beside_pi;
mod compaction;
mod export;
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
mod scripts;
mod session;
mod session_command;
mod settings;
mod signals;
mod stdout;
mod tools;
mod trust;
mod unruly;
