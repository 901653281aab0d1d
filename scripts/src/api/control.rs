//! How the session stands, and steering it: `ctx.is_idle()`, `ctx.abort()`, `ctx.has_pending()`,
//! `ctx.compact(#{…})`, `ctx.system_prompt()`, `ctx.is_project_trusted()`; in commands also
//! `ctx.wait_for_idle()` and `ctx.navigate_tree(id, #{…})` (`extensions.md` §5.2, §5.3).

use rhai::{Dynamic, Engine, Map};
use serde_json::{Value, json};

use super::ask::{ask_if_there, ask_of};
use super::{Ctx, options};
use crate::call::ScriptResult;

pub(super) fn install(engine: &mut Engine) {
    for (function, service) in [
        ("is_idle", "session.is_idle"),
        ("has_pending", "session.has_pending_messages"),
        ("system_prompt", "session.system_prompt"),
        ("system_prompt_options", "session.system_prompt_options"),
        ("is_project_trusted", "session.is_project_trusted"),
    ] {
        engine.register_fn(function, move |ctx: &mut Ctx| {
            ask_if_there(ctx.call(), service, &Value::Null)
        });
    }
    for (function, service) in [
        ("abort", "session.abort"),
        ("wait_for_idle", "session.wait_idle"),
    ] {
        engine.register_fn(function, move |ctx: &mut Ctx| {
            ask_of(ctx.call(), service, &Value::Null).map(drop)
        });
    }
    engine.register_fn("compact", |ctx: &mut Ctx| compact(ctx, Map::new()));
    engine.register_fn("compact", compact);
    engine.register_fn("navigate_tree", |ctx: &mut Ctx, id: &str| {
        navigate_tree(ctx, id, Map::new())
    });
    engine.register_fn("navigate_tree", navigate_tree);
}

/// Begins a compaction and does not wait for it: a handler would wait for the run that waits for it.
fn compact(ctx: &mut Ctx, given: Map) -> ScriptResult<()> {
    let given: Value = options("ctx.compact", given, &["customInstructions"])?;
    ask_of(ctx.call(), "session.compact", &given).map(drop)
}

/// Goes to another place of the tree; answers `#{cancelled, editorText, summaryEntryId}`.
fn navigate_tree(ctx: &mut Ctx, id: &str, given: Map) -> ScriptResult<Dynamic> {
    let known = [
        "summarize",
        "customInstructions",
        "replaceInstructions",
        "label",
    ];
    let mut given: Value = options("ctx.navigate_tree", given, &known)?;
    given["targetId"] = json!(id);
    ask_of(ctx.call(), "session.navigate", &given)
}
