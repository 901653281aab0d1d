//! The session as a run sees it, a file for each side of it.

mod models;
mod plugins;
mod queues;
mod tree;

use std::sync::Arc;

use super::Shared;
use crate::run::RunHost;

impl RunHost for Arc<Shared> {
    fn now_ms(&self) -> i64 {
        self.now()
    }
}
