//! The front end's side of what plugins show and ask, and the services by which they do it
//! (`extensions.md` §5.5).

use std::sync::Arc;
use std::time::Duration;

use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::BoxFuture;
use pliant_sdk::ui::{Answer, Dialog, Display, UiInfo};
use serde::Deserialize;
use serde_json::{Value, json};

use super::actions::Actions;

/// What a front end shows for plugins, and asks. The defaults are those of one without a user.
pub trait HostUi: Send + Sync {
    /// What plugins may know of it.
    fn info(&self) -> UiInfo {
        UiInfo::default()
    }

    /// Shows something.
    ///
    /// # Errors
    /// `unavailable` where nobody is shown anything.
    fn show(&self, display: Display) -> BoxFuture<'_, Result<(), Error>> {
        drop(display);
        Box::pin(std::future::ready(Err(unavailable("ui.show"))))
    }

    /// Asks, for no longer than `timeout`. Whoever stops waiting closes the dialog.
    ///
    /// # Errors
    /// `unavailable` where there is nobody to ask.
    fn ask(
        &self,
        dialog: Dialog,
        timeout: Option<Duration>,
    ) -> BoxFuture<'_, Result<Answer, Error>> {
        drop((dialog, timeout));
        Box::pin(std::future::ready(Err(unavailable("ui.ask"))))
    }

    /// Shows itself with another theme for this run, which there is.
    ///
    /// # Errors
    /// `unavailable` where nothing is drawn with a theme.
    fn set_theme(&self, name: &str) -> Result<(), Error> {
        Err(Error::new(
            code::UNAVAILABLE,
            format!(
                "The theme \"{name}\" is not shown, because this mode draws nothing with a theme."
            ),
        ))
    }

    /// The program is to end once nothing runs. One that ends by itself goes on.
    fn shutdown(&self) {}
}

/// The error of a dialog that this mode does not have.
#[must_use]
pub fn unavailable(service: &str) -> Error {
    Error::new(
        code::UNAVAILABLE,
        format!("{service} is not available in this mode"),
    )
}

/// No user.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoUi;

impl HostUi for NoUi {}

/// Names of the services.
pub(super) const SERVICES: [&str; 8] = [
    "ui.info",
    "ui.show",
    "ui.ask",
    "ui.notify",
    "ui.select",
    "ui.confirm",
    "ui.input",
    "ui.shutdown",
];

/// Answers a service of the front end.
///
/// # Errors
/// What is wrong with the question, or the refusal of the front end.
pub(super) async fn answer(
    session: &Arc<dyn Actions>,
    service: &str,
    payload: &[u8],
) -> Result<Value, Error> {
    let ui = session.ui();
    match service {
        "ui.info" => Ok(json!(ui.info())),
        "ui.show" => shown(ui, serde_json::from_slice(payload)?).await,
        "ui.notify" => {
            let line: Line = serde_json::from_slice(payload)?;
            shown(ui, line.into()).await
        }
        "ui.shutdown" => {
            ui.shutdown();
            Ok(Value::Null)
        }
        "ui.ask" => asked(session, serde_json::from_slice(payload)?).await,
        _ => {
            let mut question: Value = serde_json::from_slice(payload)?;
            match (service.strip_prefix("ui."), &mut question) {
                (Some(method), Value::Object(question)) if SERVICES.contains(&service) => {
                    question.insert("method".to_owned(), json!(method));
                }
                _ => return Err(unavailable(service)),
            }
            asked(session, question).await
        }
    }
}

async fn shown(ui: &dyn HostUi, display: Display) -> Result<Value, Error> {
    ui.show(display).await.map(|()| Value::Null)
}

async fn asked(session: &Arc<dyn Actions>, question: Value) -> Result<Value, Error> {
    let timeout = question.get("timeoutMs").and_then(Value::as_u64);
    let dialog = Dialog::deserialize(question)?;
    let ui = session.ui();
    // Where nobody can be asked nothing is shown either.
    let shown = ui
        .info()
        .has_ui
        .then(|| Arc::clone(session).asks_user(&dialog));
    let answer = ui.ask(dialog, timeout.map(Duration::from_millis)).await;
    drop(shown);
    let answer = answer?;
    Ok(answer.into_value())
}

/// A line with the levels of the log, as commands show it.
#[derive(Deserialize)]
struct Line {
    message: String,
    #[serde(default)]
    level: pliant_sdk::ui::NotifyType,
}

impl From<Line> for Display {
    fn from(line: Line) -> Self {
        Self::Notify {
            message: line.message,
            notify_type: line.level,
        }
    }
}
