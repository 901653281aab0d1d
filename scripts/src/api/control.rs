//! How the session stands, and steering it: `ctx.is_idle()`, `ctx.abort()`, `ctx.has_pending()`,
//! `ctx.compact(#{…})`, `ctx.system_prompt()`, `ctx.is_project_trusted()`; in commands also
//! `ctx.wait_for_idle()`, `ctx.navigate_tree(id, #{…})`, and another session in the place of this one:
//! `ctx.new_session(#{…})`, `ctx.switch_session(path)`, `ctx.fork_at(id, #{…})` (`extensions.md` §5.2, §5.3).

use rhai::{Dynamic, Engine, FnPtr, Map, NativeCallContext};
use serde_json::{Value, json};

use super::ask::{ask_if_there, ask_of};
use super::{Ctx, options};
use crate::call::{ScriptResult, fail};

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
    replacements(engine);
}

/// The command goes on in the session that takes the place; `then` is called there too.
fn replacements(engine: &mut Engine) {
    engine.register_fn(
        "new_session",
        |context: NativeCallContext, ctx: &mut Ctx| {
            replace(&context, ctx, "session.new", Map::new(), json!({}))
        },
    );
    engine.register_fn(
        "new_session",
        |context: NativeCallContext, ctx: &mut Ctx, given: Map| {
            replace(&context, ctx, "session.new", given, json!({}))
        },
    );
    engine.register_fn(
        "switch_session",
        |context: NativeCallContext, ctx: &mut Ctx, path: &str| {
            let asked = json!({"sessionPath": path});
            replace(&context, ctx, "session.switch", Map::new(), asked)
        },
    );
    engine.register_fn(
        "switch_session",
        |context: NativeCallContext, ctx: &mut Ctx, path: &str, given: Map| {
            let asked = json!({"sessionPath": path});
            replace(&context, ctx, "session.switch", given, asked)
        },
    );
    engine.register_fn(
        "fork_at",
        |context: NativeCallContext, ctx: &mut Ctx, id: &str| {
            let asked = json!({"entryId": id});
            replace(&context, ctx, "session.fork", Map::new(), asked)
        },
    );
    engine.register_fn(
        "fork_at",
        |context: NativeCallContext, ctx: &mut Ctx, id: &str, given: Map| {
            let asked = json!({"entryId": id});
            replace(&context, ctx, "session.fork", given, asked)
        },
    );
}

fn replace(
    context: &NativeCallContext<'_>,
    ctx: &mut Ctx,
    service: &str,
    mut given: Map,
    mut asked: Value,
) -> ScriptResult<Dynamic> {
    let then = given.remove("then").unwrap_or_default();
    let (name, known): (_, &[&str]) = match service {
        "session.new" => ("ctx.new_session", &["parentSession"]),
        "session.fork" => ("ctx.fork_at", &["position"]),
        _ => ("ctx.switch_session", &[]),
    };
    let given: Value = options(name, given, known)?;
    if let (Value::Object(asked), Value::Object(given)) = (&mut asked, given) {
        asked.extend(given);
    }
    let then = match then.is_unit() {
        true => None,
        false => Some(
            then.try_cast::<FnPtr>()
                .ok_or_else(|| fail(format!("{name}: `then` has to be a closure, |ctx| …")))?,
        ),
    };
    let outcome = ask_of(ctx.call(), service, &asked)?;
    let cancelled = outcome.as_map_ref().is_ok_and(|map| {
        map.get("cancelled")
            .is_some_and(|it| it.as_bool() == Ok(true))
    });
    if let (Some(then), false) = (then, cancelled) {
        let _: Dynamic = then.call_within_context(context, (ctx.clone(),))?;
    }
    Ok(outcome)
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
