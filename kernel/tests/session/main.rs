//! A session over in-process sources: a scripted wire, tools, handlers and commands made with the SDK's
//! own builder. A module for each area; the rules of `kernel.md` and `extensions.md` are named at
//! each test.

#![allow(clippy::unwrap_used, reason = "test code")]

mod heard;
mod support;

mod asking;
mod bash;
mod boundary;
mod compaction;
mod compaction_hooks;
mod context;
mod displays;
mod embedding;
mod export;
mod messages;
mod misbehaving;
mod models;
mod navigation;
mod opening;
mod previews;
mod prompt;
mod provider_hooks;
mod reading;
mod registering;
mod reload;
mod replacement;
mod requests;
mod services;
mod start;
mod stopping;
mod tools;
mod turns;
mod virtual_models;
mod wandering;
