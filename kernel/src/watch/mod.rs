//! From events of the file system to the paths that really changed (`plugin-abi.md` §10, `resources.md`
//! §12.3). Events only mark a path; it is looked at when it has been quiet, and what is as it was is
//! silent. Knows nothing of plugins, scripts or sessions: whoever started it is told of paths.
//!
//! One thread, which sleeps until the system has something to say or a path is due.

mod files;
mod place;
mod quiet;
mod roots;
mod thread;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};

pub use files::Stamp;
pub use place::{Class, Only, Place};
pub use quiet::Pauses;

use thread::{Message, Work};

/// What changed since the last batch. Paths are written as the places are, whatever links there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// New, or other than before.
    pub changed: Vec<PathBuf>,
    /// Gone.
    pub removed: Vec<PathBuf>,
}

/// What a watcher tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// Files changed.
    Changes(Changes),
    /// Something is odd; a sentence.
    Notice(String),
}

/// Watches places until it is dropped.
#[derive(Debug)]
pub struct Watcher {
    messages: Sender<Message>,
}

impl Watcher {
    /// Starts watching, on a thread of its own; `tell` is called there. What changes after this returns
    /// is told. With `known`, so is what is not as it is known there: it changed before.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(
        places: Vec<Place>,
        known: Option<HashMap<PathBuf, Stamp>>,
        pauses: Pauses,
        tell: impl Fn(Told) + Send + 'static,
    ) -> io::Result<Self> {
        let (messages, inbox) = channel();
        let (ready, is_ready) = std::sync::mpsc::sync_channel(1);
        let outbox = messages.clone();
        let work = move || {
            let mut work = Work::new(pauses, outbox, Box::new(tell));
            work.watch(places, HashMap::new());
            if let Some(known) = known {
                work.compare(known);
            }
            // Whoever started it has gone away if nobody listens.
            let _ = ready.send(());
            work.run(&inbox);
        };
        std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(work)?;
        // An error is the end of the thread, which has said why by its panic.
        let _ = is_ready.recv();
        Ok(Self { messages })
    }

    /// Watches these places from now on, and no others. What changes in them after this returns is told,
    /// and so is what is not as it is known here.
    pub fn watch(&self, places: Vec<Place>, known: HashMap<PathBuf, Stamp>) {
        let (ready, is_ready) = std::sync::mpsc::sync_channel(1);
        // The thread ends with this value only.
        let _ = self.messages.send(Message::Places(places, known, ready));
        let _ = is_ready.recv();
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.messages.send(Message::Stop);
    }
}
