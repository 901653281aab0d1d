//! A session over in-process sources: a scripted wire, tools, handlers and commands made with the SDK's
//! own builder. A module for each area; the rules of `kernel.md` and `extensions.md` are named at
//! each test.

#![allow(clippy::unwrap_used, reason = "test code")]

mod support;

mod compaction;
mod context;
mod messages;
mod prompt;
mod provider_hooks;
mod services;
