//! How a generation is doing, for whoever looks after it: what was asked of it, what went wrong, and
//! where it runs. Who wraps a generation fills in what he counts; the rest is the generation's own.

use serde::{Deserialize, Serialize};

/// Counts and facts of one generation. What nobody knows is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Vitals {
    /// Calls that began.
    pub calls: u64,
    /// Calls that are under way.
    pub running: u64,
    /// Calls that ended in an error, those below among them; what the user gave up is none.
    pub failures: u64,
    /// Calls that panicked.
    pub panics: u64,
    /// Times its process ended by itself.
    pub crashes: u64,
    /// Why it takes no calls at present, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Where its code runs: `process` for one of its own, `none` for this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// The process it runs in, if that is one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// What identifies the content that serves, in short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}
