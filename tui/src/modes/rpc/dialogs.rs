//! What plugins show and ask, as records (`interfaces.md` §9). A dialog is open until the program
//! answers, its time is over, or whoever asked stops waiting; answers to others are passed by.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pliant_kernel::host::ui::HostUi;
use pliant_sdk::Error;
use pliant_sdk::host::BoxFuture;
use pliant_sdk::ui::{Answer, Dialog, Display, UiInfo, UiMode};
use serde::Serialize;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout as within;

use super::output::Records;
use super::request::Fields;

/// The user behind the program.
#[derive(Debug)]
pub struct RpcUi {
    records: Records,
    open: Mutex<HashMap<String, oneshot::Sender<Answer>>>,
    count: AtomicU64,
    over: AtomicBool,
    asked_to_end: Notify,
}

#[derive(Serialize)]
struct Record<'a, T> {
    r#type: &'static str,
    id: &'a str,
    #[serde(flatten)]
    what: &'a T,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
}

impl RpcUi {
    /// With a way to say things.
    pub fn new(records: Records) -> Self {
        Self {
            records,
            open: Mutex::default(),
            count: AtomicU64::default(),
            over: AtomicBool::default(),
            asked_to_end: Notify::new(),
        }
    }

    /// The program answered a dialog.
    pub fn answered(&self, fields: Fields) {
        let Ok(id) = fields.required::<String>("id") else {
            return;
        };
        let Some(waiting) = self.open().remove(&id) else {
            return;
        };
        let confirmed = fields.optional("confirmed").ok().flatten();
        let text = fields.optional("value").ok().flatten();
        let answer = match (fields.optional::<bool>("cancelled"), confirmed, text) {
            (Ok(Some(true)), _, _) => Answer::Dismissed,
            (_, Some(yes), _) => Answer::Confirmed(yes),
            (_, None, Some(text)) => Answer::Text(text),
            _ => Answer::Dismissed,
        };
        let _ = waiting.send(answer);
    }

    /// A plugin asked for the end.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Returns when a plugin asks for the end.
    pub async fn asked_to_end(&self) {
        self.asked_to_end.notified().await;
    }

    async fn say<T: Serialize>(&self, id: &str, what: &T, timeout: Option<Duration>) {
        let record = Record {
            r#type: "extension_ui_request",
            id,
            what,
            timeout: timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        };
        let Ok(mut line) = serde_json::to_vec(&record) else {
            return;
        };
        line.push(b'\n');
        let room = self.records.room().await;
        self.records.put(line, room);
    }

    fn next_id(&self) -> String {
        format!("ui-{}", self.count.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Answer>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HostUi for RpcUi {
    fn info(&self) -> UiInfo {
        UiInfo {
            mode: UiMode::Rpc,
            has_ui: true,
        }
    }

    fn show(&self, display: Display) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.say(&self.next_id(), &display, None).await;
            Ok(())
        })
    }

    fn ask(
        &self,
        dialog: Dialog,
        timeout: Option<Duration>,
    ) -> BoxFuture<'_, Result<Answer, Error>> {
        Box::pin(async move {
            let id = self.next_id();
            let (sender, answer) = oneshot::channel();
            self.open().insert(id.clone(), sender);
            let _closed_with_the_question = Open { ui: self, id: &id };
            self.say(&id, &dialog, timeout).await;
            let answered = match timeout {
                Some(limit) => within(limit, answer).await.ok(),
                None => Some(answer.await),
            };
            Ok(answered.and_then(Result::ok).unwrap_or(Answer::Dismissed))
        })
    }

    fn shutdown(&self) {
        self.over.store(true, Ordering::Release);
        self.asked_to_end.notify_one();
    }
}

/// A dialog that somebody waits for.
struct Open<'a> {
    ui: &'a RpcUi,
    id: &'a str,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.ui.open().remove(self.id);
    }
}
