//! What a handler, tool or command may ask of the session it runs in. `session` implements it; the
//! host services reach a session through nothing else.

use std::path::Path;

use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::LogLevel;

/// The session behind a call.
pub trait Actions: Send + Sync {
    /// Working directory.
    fn cwd(&self) -> &Path;

    /// Environment of the model's shell commands: session id and file, provider, model, level
    /// (`interfaces.md` §4), as of now.
    fn environment(&self) -> Vec<(String, String)>;

    /// The front end's side.
    fn ui(&self) -> &dyn HostUi;
}

/// What a front end shows for plugins. The defaults are those of a mode without a user interface.
pub trait HostUi: Send + Sync {
    /// Shows a line.
    ///
    /// # Errors
    /// `unavailable` where nobody is shown anything.
    fn notify(&self, message: &str, level: LogLevel) -> Result<(), Error> {
        let _ = (message, level);
        Err(unavailable("ui.notify"))
    }
}

/// The error of a dialog that this mode does not have.
#[must_use]
pub fn unavailable(service: &str) -> Error {
    Error::new(
        code::UNAVAILABLE,
        format!("{service} is not available in this mode"),
    )
}

/// No user interface.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoUi;

impl HostUi for NoUi {}
