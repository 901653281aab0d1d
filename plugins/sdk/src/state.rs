//! State that a plugin hands to the next version of itself when it is reloaded: a cache, a counter, what
//! it has found out. It may be lost at any time, by a crash or a refusal; what must not be lost belongs
//! into the session ([`crate::session::Session::append_entry`]) or into `state.put`.
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use pliant_sdk::{Error, Host, Init, Plugin};
//! use pliant_sdk::state::Handed;
//!
//! fn create(_host: Host, _init: Init) -> Result<Plugin, Error> {
//!     let seen: Arc<Mutex<Vec<String>>> = Arc::default();
//!     let (kept, taken) = (Arc::clone(&seen), seen);
//!     Ok(Plugin::new().state(
//!         1,
//!         move || kept.lock().map(|seen| seen.clone()).unwrap_or_default(),
//!         move |handed: Handed| {
//!             // Version 1 is all there ever was; another one is not understood.
//!             let old: Vec<String> = handed.of_version(1)?;
//!             if let Ok(mut seen) = taken.lock() {
//!                 *seen = old;
//!             }
//!             Ok(())
//!         },
//!     ))
//! }
//! # create(pliant_sdk::testing::Bench::host(), Init::default()).unwrap();
//! ```

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::plugin::Plugin;

/// Asks a generation to write no more: what it exports next is what counts.
#[doc(hidden)]
pub const QUIESCE: &str = "quiesce";
/// Tells it that it goes on after all.
#[doc(hidden)]
pub const RESUME: &str = "resume";
/// Asks for its state.
#[doc(hidden)]
pub const EXPORT: &str = "export_state";
/// Offers it the state of the one before.
#[doc(hidden)]
pub const IMPORT: &str = "import_state";
/// Tells it that its last call has ended.
#[doc(hidden)]
pub const SHUTDOWN: &str = "shutdown";

/// More than this is not handed over, bytes of JSON.
pub const LARGEST: usize = 1 << 20;

/// The state of the generation before.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Handed {
    /// The version of its shape, as [`Plugin::state`] names it.
    pub version: u32,
    /// What was exported.
    pub state: Value,
}

impl Handed {
    /// The state, if it has this version and fits the type.
    ///
    /// # Errors
    /// What does not fit. Answered from the import, it means a fresh start, which the user is told.
    pub fn of_version<T: DeserializeOwned>(self, version: u32) -> Result<T, Error> {
        if self.version != version {
            return Err(Error::invalid(format!(
                "the state has version {}, and version {version} is understood",
                self.version
            )));
        }
        serde_json::from_value(self.state)
            .map_err(|error| Error::invalid(format!("the state has another shape: {error}")))
    }
}

/// Whether the new generation took the state.
#[doc(hidden)]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Imported {
    /// It did.
    pub accepted: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Plugin {
    /// Hands state to the next version of this plugin: `export` answers it, `import` of that version
    /// takes it over, before it serves. An error of `import` is a refusal: the plugin starts afresh and
    /// the user is told why. Each may take a second, and a megabyte is the most.
    #[must_use]
    pub fn state<T: Serialize>(
        self,
        version: u32,
        export: impl Fn() -> T + Send + Sync + 'static,
        import: impl Fn(Handed) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Self {
        self.control(EXPORT, move |(): ()| {
            let state = serde_json::to_value(export())?;
            Ok(Handed { version, state })
        })
        .control(IMPORT, move |handed: Handed| {
            Ok(match import(handed) {
                Ok(()) => Imported {
                    accepted: true,
                    reason: None,
                },
                Err(error) => Imported {
                    accepted: false,
                    reason: Some(error.message),
                },
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_of_another_version_or_shape_is_refused_with_the_reason() {
        let plugin = || {
            Plugin::new().state(
                2,
                || vec![1, 2],
                |handed: Handed| handed.of_version::<Vec<u32>>(2).map(drop),
            )
        };
        let exported = plugin().run_control(EXPORT, b"null").unwrap();
        assert_eq!(exported, br#"{"version":2,"state":[1,2]}"#);
        let import = |handed: &[u8]| {
            let answer = plugin().run_control(IMPORT, handed).unwrap();
            serde_json::from_slice::<Imported>(&answer).unwrap().reason
        };
        assert_eq!(import(&exported), None);
        assert_eq!(
            import(br#"{"version":1,"state":[]}"#).unwrap(),
            "the state has version 1, and version 2 is understood"
        );
        let reason = import(br#"{"version":2,"state":{}}"#).unwrap();
        assert!(
            reason.starts_with("the state has another shape: "),
            "{reason}"
        );
    }
}
