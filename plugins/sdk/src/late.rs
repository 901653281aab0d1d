//! Registering more while the plugin serves (`extensions.md` §4.1): tools that are known only when a server
//! has been asked, a command for a mode that has been switched on.
//!
//! ```
//! use pliant_sdk::command::{Command, CommandCtx, CommandSpec};
//! use pliant_sdk::late::Late;
//! use pliant_sdk::{Error, Host, Init, Plugin, Tool, ToolCtx, ToolResult, ToolSpec};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Nothing {}
//!
//! /// A tool whose name is known only later.
//! struct Found(String);
//!
//! impl Tool for Found {
//!     type Input = Nothing;
//!     fn spec(&self) -> ToolSpec {
//!         ToolSpec::new(self.0.clone(), "Found by looking.")
//!     }
//!     async fn execute(&self, _: Nothing, _: ToolCtx) -> Result<ToolResult, Error> {
//!         Ok(ToolResult::text("here"))
//!     }
//! }
//!
//! /// Registers it.
//! struct Look(Late);
//!
//! impl Command for Look {
//!     fn spec(&self) -> CommandSpec {
//!         CommandSpec::new("look", "Find a tool.")
//!     }
//!     async fn run(&self, name: String, ctx: CommandCtx) -> Result<(), Error> {
//!         self.0.add(ctx.host(), Plugin::new().tool(Found(name))).await
//!     }
//! }
//!
//! fn create(_host: Host, _init: Init) -> Result<Plugin, Error> {
//!     let late = Late::default();
//!     Ok(Plugin::new().command(Look(late.clone())).later(&late))
//! }
//! # create(pliant_sdk::testing::Bench::host(), Init::default()).unwrap();
//! ```

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Value, json};

use crate::error::Error;
use crate::host::Host;
use crate::plugin::{Contribution, Plugin};

/// The service that takes in what a source has registered since it was loaded.
pub const LOOK_AGAIN: &str = "registry.look_again";

/// What a plugin registers later. Clones share it; the plugin is built with [`Plugin::later`].
#[derive(Clone, Default)]
pub struct Late(Arc<RwLock<Added>>);

#[derive(Default)]
struct Added {
    /// How many contributions the plugin was built with.
    first_id: usize,
    contributions: Vec<Contribution>,
}

impl fmt::Debug for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Late")
    }
}

impl Late {
    /// Registers everything that `more` contributes; it counts when this returns. Something of the same
    /// kind and name is replaced, handlers of events add up. `host` is that of a call, as it is given to
    /// handlers, tools and commands.
    ///
    /// # Errors
    /// `unsupported` outside a session, `stale` when the plugin has been replaced, `invalid` for more than
    /// there may be.
    pub async fn add(&self, host: &Host, mut more: Plugin) -> Result<(), Error> {
        let described = {
            let mut added = self.0.write().unwrap_or_else(PoisonError::into_inner);
            added.contributions.append(more.contributions_mut());
            added.describe()
        };
        host.call(LOOK_AGAIN, &json!({"contributions": described}))
            .await
    }

    /// Ids go on from what the plugin was built with.
    pub(crate) fn begins_at(&self, first_id: usize) {
        let mut added = self.0.write().unwrap_or_else(PoisonError::into_inner);
        added.first_id = first_id;
    }

    /// The contribution of that id.
    pub(crate) fn find<T>(&self, id: usize, of: impl FnOnce(&Contribution) -> T) -> Option<T> {
        let added = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let index = id.checked_sub(added.first_id)?;
        added.contributions.get(index).map(of)
    }
}

impl Added {
    fn describe(&self) -> Vec<Value> {
        let numbered = (self.first_id..).zip(&self.contributions);
        numbered.map(|(id, item)| item.describe(id)).collect()
    }
}
