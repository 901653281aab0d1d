//! What the modes without a protocol for it show for plugins: lines, where somebody looks.

use pliant_kernel::host::ui::{HostUi, unavailable};
use pliant_sdk::Error;
use pliant_sdk::host::BoxFuture;
use pliant_sdk::ui::{Display, NotifyType, UiInfo, UiMode};

use crate::launch::Mode;
use crate::say;

/// The user of a mode, as plugins reach him.
#[derive(Debug)]
pub struct Ui {
    mode: Mode,
}

impl Ui {
    /// Only the line mode has somebody to show things to.
    pub fn of(mode: Mode) -> Self {
        Self { mode }
    }

    fn display(&self, display: Display) -> Result<(), Error> {
        match (self.mode, display) {
            (
                Mode::Line,
                Display::Notify {
                    message,
                    notify_type,
                },
            ) => match notify_type {
                NotifyType::Error => say::error(message),
                NotifyType::Warning => say::warning(message),
                NotifyType::Info => say::note(message),
            },
            _ => return Err(unavailable("ui.show")),
        }
        Ok(())
    }
}

impl HostUi for Ui {
    fn info(&self) -> UiInfo {
        UiInfo {
            mode: match self.mode {
                Mode::Print => UiMode::Print,
                Mode::Json => UiMode::Json,
                Mode::Line => UiMode::Tui,
                Mode::Rpc => UiMode::Rpc,
            },
            has_ui: false,
        }
    }

    fn show(&self, display: Display) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(std::future::ready(self.display(display)))
    }
}
