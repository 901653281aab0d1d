//! Scripts seen from outside: source text in, contributions and JSON answers out.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; the setting that allows it in tests does not cover their helpers"
)]

mod kit;

mod commands;
mod errors;
mod event_examples;
mod examples;
mod guide;
mod hooks;
mod imports;
mod limits;
mod loading;
mod models;
mod naming;
mod providers;
mod readme;
mod services;
mod session;
mod shipped;
mod skills;
mod timers;
mod tools;
