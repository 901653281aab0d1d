//! From an accepted prompt to settled: prepare the messages, run the loop, decide what comes after,
//! settle. The run reads and changes a session through [`RunHost`] alone.

mod host;

mod driver;
mod prepare;

mod after;
mod compact;
mod retry;
mod settle;
mod summary;

mod navigate;

mod convert;
mod hooks;
mod images;
mod loadout;
mod repair;
mod request;

use std::sync::Arc;

use pliant_sdk::{Error, Message};
use tokio_util::sync::CancellationToken;

use crate::agent;

pub use compact::{Ending, compact};
pub use host::{ModelHost, PluginHost, QueueHost, RunHost, Selection, TreeHost};
pub use loadout::{Loadout, ToolServices};
pub use navigate::{Arrival, NavigateError, NavigateOptions, navigate};
pub use repair::{Transcript, repair_notice};
pub use request::{Assembly, RequestView};
pub use retry::{RetryPolicy, is_overflow, is_retryable};

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
    let mut prompts = prepare::messages(host, &driver.prompt_state(), prompt);
    // Before the run's own messages (P8). What cannot be stored now is said of at the end.
    let _ = host.flush_held().await;
    started();
    let mut end = RunEnd::default();
    loop {
        let outcome = agent::run(&driver, prompts, cancel).await;
        prompts = Vec::new();
        if after::goes_on(&driver, outcome, &mut end).await {
            continue;
        }
        driver.arrived().await;
        if host.begin_settling(end.failure.is_some() || cancel.is_cancelled()) {
            break;
        }
        prompts = prepare::queued(host);
    }
    settle::flush(&driver, &mut end).await;
    settle::settle(&driver, cancel.is_cancelled()).await;
    end
}
