//! Plugins that are being written beside a session: what their builds say is a notice there. That what
//! was built is loaded is the watcher's.

use std::sync::Arc;

use pliant_sdk::Event;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Kernel;
use crate::dev::{Dev, Report};

/// Builds what changes, until it is dropped.
#[derive(Debug)]
pub struct Developing {
    _dev: Dev,
    telling: JoinHandle<()>,
}

impl Drop for Developing {
    fn drop(&mut self) {
        self.telling.abort();
    }
}

impl Kernel {
    /// Builds the plugins that are being written whenever their sources change, and says so in the
    /// sessions; `None` when none are. What is built is loaded by whoever watches.
    ///
    /// # Errors
    /// When there are no threads to be had.
    pub fn develop(&self) -> std::io::Result<Option<Developing>> {
        if self.options.dev.is_empty() {
            return Ok(None);
        }
        let (tell, mut told) = mpsc::unbounded_channel();
        let dev = Dev::start(self.options.dev.clone(), move |report| {
            // Nobody listens at the end of the program.
            let _ = tell.send(report);
        })?;
        let reloader = Arc::clone(self.reloader());
        let telling = tokio::spawn(async move {
            while let Some(report) = told.recv().await {
                // That it begins is no news; that it is done is.
                if !matches!(report, Report::Building { .. }) {
                    let message = report.sentence();
                    reloader.say(Event::Notice { message }).await;
                }
            }
        });
        Ok(Some(Developing { _dev: dev, telling }))
    }
}
