//! The `ctx` argument of handlers: where the call is, whether it is still wanted, and how to show
//! partial results. Dialogs are in `ctx.ui`.

use std::path::Path;
use std::sync::Arc;

use pliant_sdk::error::code;
use pliant_sdk::ui::{UiInfo, UiMode};
use rhai::{Dynamic, Engine, EvalAltResult, Map};
use serde_json::json;

use super::ask::ask_if_there;
use super::ui::Ui;
use crate::call::{Call, ScriptResult, throw};
use crate::contribution;
use crate::convert;

/// One call as its handler sees it. Kept beyond the call, it refuses to work.
#[derive(Clone)]
pub(crate) struct Ctx {
    call: Arc<Call>,
    call_id: Arc<str>,
    cwd: Option<Arc<str>>,
}

impl Ctx {
    pub(crate) fn new(call: Arc<Call>, call_id: &str, cwd: Option<&str>) -> Self {
        Self {
            call,
            call_id: call_id.into(),
            cwd: cwd.filter(|cwd| !cwd.is_empty()).map(Arc::from),
        }
    }

    pub(super) fn call(&self) -> &Arc<Call> {
        &self.call
    }

    /// Where the call does not say, the session does; without one it is where pliant was started.
    fn cwd(&self) -> ScriptResult<String> {
        if let Some(cwd) = &self.cwd {
            return Ok(cwd.to_string());
        }
        let info = ask_if_there(&self.call, "session.read", &json!({"what": "info"}))?;
        let of_session = info
            .try_cast::<Map>()
            .and_then(|info| info.get("cwd").cloned());
        Ok(match of_session {
            Some(cwd) => convert::display(&cwd),
            None => std::env::current_dir()
                .as_deref()
                .map_or_else(|_| String::new(), |path: &Path| path.display().to_string()),
        })
    }

    /// How the session is shown; where there is none, nobody is shown anything.
    fn ui_info(&self) -> ScriptResult<UiInfo> {
        self.call.ensure_open()?;
        let asked = self.call.wait_for(self.call.host().ui().info())?;
        match asked {
            Err(error) if error.is(code::UNAVAILABLE) || error.is(code::UNSUPPORTED) => {
                Ok(UiInfo::default())
            }
            answer => answer.map_err(|error| throw(&error)),
        }
    }

    fn update(&self, partial: &Dynamic) -> ScriptResult<()> {
        self.call.ensure_open()?;
        let partial = contribution::to_result(partial)?;
        match serde_json::to_vec(&partial) {
            Ok(json) => self.call.emit(&json),
            Err(_) => Ok(()),
        }
    }
}

pub(super) fn install(engine: &mut Engine) {
    engine.register_type_with_name::<Ctx>("Ctx");
    engine.register_get("cwd", |ctx: &mut Ctx| ctx.cwd());
    engine.register_get("call_id", |ctx: &mut Ctx| ctx.call_id.to_string());
    engine.register_get("ui", |ctx: &mut Ctx| Ui::new(Arc::clone(&ctx.call)));
    engine.register_get("mode", |ctx: &mut Ctx| {
        let mode = match ctx.ui_info()?.mode {
            UiMode::Tui => "tui",
            UiMode::Rpc => "rpc",
            UiMode::Json => "json",
            UiMode::Print => "print",
        };
        Ok::<_, Box<EvalAltResult>>(mode.to_owned())
    });
    engine.register_get("has_ui", |ctx: &mut Ctx| {
        ctx.ui_info().map(|info| info.has_ui)
    });
    engine.register_fn("shutdown", |ctx: &mut Ctx| {
        ctx.call.wait(ctx.call.host().ui().shutdown())
    });
    // What came of it is said to the user; the script may not be the one that runs any more.
    engine.register_fn("reload", |ctx: &mut Ctx| {
        let reloading = async { ctx.call.host().session().reload().await.map(drop) };
        ctx.call.wait(reloading)
    });
    engine.register_fn("cancelled", |ctx: &mut Ctx| ctx.call.cancelled());
    engine.register_fn("update", |ctx: &mut Ctx, partial: Dynamic| {
        ctx.update(&partial)
    });
}
