//! Native plugins: found by their file's manifest, staged as a private copy, checked by their header,
//! and served to the registry as a [`crate::registry::Generation`] (`plugin-abi.md` §5).
//!
//! No code of a library runs before its manifest says that it fits, and a library once loaded is
//! never unloaded: it only becomes unreachable.

mod blocks;
mod check;
#[cfg(unix)]
mod child;
mod described;
mod endings;
mod find;
mod generation;
mod glue;
mod library;
mod load;
mod manifest;
mod pulse;
mod runtime;
mod stage;
mod task;
mod workers;

pub use check::{Checked, check};
#[cfg(unix)]
pub use child::{ChildLimits, HostProgram, serve};
pub use find::{PLUGIN_PREFIX, SearchPath, find_plugins, found_at};
pub use generation::{PluginHost, open, reopen};
pub use manifest::{FoundPlugin, LoadError, Manifest, Provided};
pub use runtime::PluginRuntime;
pub use stage::Stage;
pub use task::PluginTask;
