//! From an accepted prompt to settled: prepare the messages, run the loop, decide what comes after,
//! settle. The run reads and changes a session through [`RunHost`] alone.

mod host;

mod driver;
mod prepare;

mod advice;
mod after;
mod attempts;
mod boundary;
mod compact;
mod retry;
mod route;
mod settle;
mod summary;
mod tail;

mod navigate;

mod convert;
mod hooks;
mod images;
mod loadout;
mod nested;
mod repair;
mod request;

use std::sync::Arc;

use pliant_sdk::{Error, Message};
use tokio_util::sync::CancellationToken;

use crate::agent::{self, Begin};

pub use advice::advice;
pub use compact::{Ending, compact};
pub use host::{ModelHost, PluginHost, QueueHost, RunHost, Selection, ToolHost, TreeHost};
pub use loadout::{Loadout, LoadoutParts, ToolServices, ToolSet};
pub use navigate::{Arrival, NavigateError, NavigateOptions, navigate};
pub use repair::{Transcript, repair_notice};
pub use request::{Assembly, RequestView};
pub use retry::{RetryPolicy, is_overflow, is_retryable};
pub use route::limits;

/// How a session run ended.
#[derive(Debug, Default)]
pub struct RunEnd {
    /// The last answer.
    pub last: Option<Arc<Message>>,
    /// Set when a message could not be stored.
    pub failure: Option<Error>,
}

/// Runs a prompt until it has settled (`kernel.md` §6.1). `started` is called once, after
/// preparation and before the first request (P2).
pub async fn run<H: RunHost>(
    host: &H,
    prompt: Message,
    cancel: &CancellationToken,
    started: impl FnOnce() + Send,
) -> RunEnd {
    let driver = driver::RunDriver::new(host, cancel);
    after::before_prompt(&driver).await;
    let prompts = driver.prepare(prompt).await;
    // Before the run's own messages (P8). What cannot be stored now is said of at the end.
    let _ = host.flush_bash();
    let _ = host.flush_held().await;
    started();
    // What cannot be stored now cannot be later, and the prompt's own message will say so.
    let _ = host.record_selection().await;
    let mut end = RunEnd::default();
    let mut begin = Some(Begin::Prompt(prompts));
    while let Some(how) = begin {
        let outcome = agent::run(&driver, how, cancel).await;
        begin = after::low_level_run(&driver, outcome, &mut end).await;
        if begin.is_none() {
            begin = settle::once_more(&driver, &mut end).await;
        }
    }
    settle::flush(&driver, &mut end).await;
    settle::settle(&driver, cancel.is_cancelled()).await;
    end
}
