//! A session over in-process sources: a scripted wire, tools, handlers and commands made with the SDK's
//! own builder. A module for each area; the rules of `kernel.md` and `extensions.md` are named at
//! each test.

#![allow(clippy::unwrap_used, reason = "test code")]

mod heard;
mod support;

mod compaction;
mod compaction_hooks;
mod context;
mod messages;
mod navigation;
mod prompt;
mod provider_hooks;
mod services;
