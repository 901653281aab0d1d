//! What can be shown to the user, and asked: the kinds of dialogs and displays (`extensions.md` §5.5),
//! and typed access to them for authors.
//!
//! The JSON forms are those of the records that an RPC client receives (`interfaces.md` §9). Where there
//! is nobody to ask, a dialog is answered as one that was closed, and a display does nothing.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{Error, code};
use crate::host::Host;

/// A question to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "method",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum Dialog {
    /// One of several; the answer is its text.
    Select {
        /// What it is about.
        title: String,
        /// What there is to choose from.
        options: Vec<String>,
    },
    /// Yes or no.
    Confirm {
        /// What it is about.
        title: String,
        /// The question.
        #[serde(default)]
        message: String,
    },
    /// A line of text.
    Input {
        /// What it is about.
        title: String,
        /// Shown while nothing is typed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        placeholder: Option<String>,
    },
    /// A longer text.
    Editor {
        /// What it is about.
        title: String,
        /// The text to begin with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefill: Option<String>,
    },
}

/// How a dialog ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It was closed, its time was over, or there was nobody to ask.
    Dismissed,
    /// A yes or a no.
    Confirmed(bool),
    /// What was chosen or typed.
    Text(String),
}

impl Answer {
    /// As services answer it: null, a truth value, or a text.
    #[must_use]
    pub fn into_value(self) -> Value {
        match self {
            Self::Dismissed => Value::Null,
            Self::Confirmed(yes) => Value::Bool(yes),
            Self::Text(text) => Value::String(text),
        }
    }
}

/// Something that is shown and asks for no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "method",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum Display {
    /// A line.
    Notify {
        /// The line.
        message: String,
        /// How grave it is.
        #[serde(default)]
        notify_type: NotifyType,
    },
    /// A short text that stays, by key.
    SetStatus {
        /// Which.
        status_key: String,
        /// The text; nothing takes it away.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status_text: Option<String>,
    },
    /// Lines beside the editor, by key.
    SetWidget {
        /// Which.
        widget_key: String,
        /// The lines; nothing takes them away.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        widget_lines: Option<Vec<String>>,
        /// Where; above the editor unless it says otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        widget_placement: Option<WidgetPlacement>,
    },
    /// The title of the window.
    SetTitle {
        /// The title.
        title: String,
    },
    /// The text that the user is writing.
    #[serde(rename = "set_editor_text")]
    SetEditorText {
        /// The text.
        text: String,
    },
}

/// How grave a notice is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotifyType {
    /// Good to know.
    #[default]
    #[serde(alias = "debug", alias = "trace")]
    Info,
    /// To be looked at.
    #[serde(alias = "warn")]
    Warning,
    /// Something failed.
    Error,
}

/// Where a widget stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WidgetPlacement {
    /// Above the editor.
    #[default]
    AboveEditor,
    /// Below it.
    BelowEditor,
}

/// How the session is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UiMode {
    /// In a terminal.
    Tui,
    /// To a program that sends commands.
    Rpc,
    /// Every event on standard output.
    Json,
    /// The last answer on standard output.
    #[default]
    Print,
}

/// What a front end is, as the code behind a call may know it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UiInfo {
    /// How the session is shown.
    pub mode: UiMode,
    /// Dialogs reach somebody.
    pub has_ui: bool,
}

/// The user, as the code behind a call reaches him.
#[derive(Debug, Clone, Copy)]
pub struct Ui<'a> {
    host: &'a Host,
}

impl Host {
    /// The user of the session that the call belongs to.
    #[must_use]
    pub fn ui(&self) -> Ui<'_> {
        Ui { host: self }
    }
}

impl Ui<'_> {
    /// How the session is shown, and whether there is somebody to ask.
    ///
    /// # Errors
    /// `unsupported` outside a session.
    pub async fn info(&self) -> Result<UiInfo, Error> {
        self.host.call("ui.info", &Value::Null).await
    }

    /// Asks; what was chosen or typed, or `None` when the dialog was closed, its time was over, or there
    /// is nobody to ask. The time of a dialog does not count for the limit of a handler.
    ///
    /// # Errors
    /// When the call has no session any more.
    pub async fn ask(
        &self,
        dialog: &Dialog,
        timeout: Option<Duration>,
    ) -> Result<Option<String>, Error> {
        let answer = self.answer(dialog, timeout).await?;
        Ok(answer.as_str().map(str::to_owned))
    }

    /// Asks for a yes; false also when the dialog was closed or there is nobody to ask.
    ///
    /// # Errors
    /// When the call has no session any more.
    pub async fn confirm(&self, title: &str, message: &str) -> Result<bool, Error> {
        let dialog = Dialog::Confirm {
            title: title.to_owned(),
            message: message.to_owned(),
        };
        Ok(self.answer(&dialog, None).await? == Value::Bool(true))
    }

    /// Lets the user choose one of several.
    ///
    /// # Errors
    /// As [`Ui::ask`].
    pub async fn select(&self, title: &str, options: &[&str]) -> Result<Option<String>, Error> {
        let dialog = Dialog::Select {
            title: title.to_owned(),
            options: options.iter().map(ToString::to_string).collect(),
        };
        self.ask(&dialog, None).await
    }

    /// Shows something. Where nobody is shown anything, nothing happens.
    ///
    /// # Errors
    /// When the call has no session any more.
    pub async fn show(&self, display: &Display) -> Result<(), Error> {
        available(self.host.call::<Value>("ui.show", display).await).map(drop)
    }

    /// Shows a line.
    ///
    /// # Errors
    /// As [`Ui::show`].
    pub async fn notify(&self, message: &str, notify_type: NotifyType) -> Result<(), Error> {
        let message = message.to_owned();
        self.show(&Display::Notify {
            message,
            notify_type,
        })
        .await
    }

    /// Asks the program to end once nothing runs. One that ends by itself goes on.
    ///
    /// # Errors
    /// `unsupported` outside a session.
    pub async fn shutdown(&self) -> Result<(), Error> {
        self.host.call("ui.shutdown", &Value::Null).await
    }

    async fn answer(&self, dialog: &Dialog, timeout: Option<Duration>) -> Result<Value, Error> {
        let mut question = json!(dialog);
        if let Some(timeout) = timeout {
            question["timeoutMs"] = json!(timeout.as_millis());
        }
        available(self.host.call("ui.ask", &question).await)
    }
}

/// A host without a user is an answer, not a failure.
fn available(answer: Result<Value, Error>) -> Result<Value, Error> {
    match answer {
        Err(error) if error.is(code::UNAVAILABLE) || error.is(code::UNSUPPORTED) => Ok(Value::Null),
        answer => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialogs_and_displays_are_written_as_clients_of_pi_read_them() {
        // interfaces §9
        let input = Dialog::Input {
            title: "Name".to_owned(),
            placeholder: Some("type here".to_owned()),
        };
        assert_eq!(
            json!(input),
            json!({"method": "input", "title": "Name", "placeholder": "type here"})
        );
        let status = Display::SetStatus {
            status_key: "k".to_owned(),
            status_text: None,
        };
        assert_eq!(
            json!(status),
            json!({"method": "setStatus", "statusKey": "k"})
        );
        let text = Display::SetEditorText {
            text: "E".to_owned(),
        };
        assert_eq!(
            json!(text),
            json!({"method": "set_editor_text", "text": "E"})
        );
        let notice: Display =
            serde_json::from_value(json!({"method": "notify", "message": "m"})).unwrap();
        assert_eq!(
            json!(notice),
            json!({"method": "notify", "message": "m", "notifyType": "info"})
        );
    }
}
