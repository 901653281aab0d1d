//! The top level as a factory.

use pliant_kernel::registry::{Kind, Registry};
use serde_json::json;

use crate::kit::{Fake, load, load_error, load_with};

#[tokio::test]
async fn a_top_level_that_fails_half_way_registers_nothing() {
    // E05, G1
    let registry = Registry::default();
    let error = load_error(
        r#"register_tool(#{ name: "t", description: "d", execute: || 1 });
on("tool_call", || ());
let x = 1 / 0;"#,
    )
    .await;
    assert_eq!(error.message, "t.rhai:3:11: Division by zero: 1 / 0");
    assert_eq!(registry.snapshot().tools().count(), 0);
}

#[tokio::test]
async fn registrations_keep_their_order_and_replace_their_namesakes() {
    let bench = load(
        r#"on("input", || #{ n: 1 });
        register_tool(#{ name: "t", description: "old", execute: || 1 });
        register_command("c", #{ run: || 1 });
        register_tool(#{ name: "t", description: "new", execute: || 2 });
        on("input", || #{ n: 2 });"#,
    )
    .await;
    let all = bench.generation.contributions();
    let list: Vec<_> = all
        .iter()
        .map(|item| (item.id, item.name.as_str()))
        .collect();
    assert_eq!(list, [(0, "input"), (1, "t"), (2, "c"), (3, "input")]);
    assert_eq!(all[1].spec["description"], "new");
    assert_eq!(bench.tool_text("t", json!({})).await, "2");
}

#[tokio::test]
async fn the_registry_takes_a_script_like_any_other_source() {
    let bench = load(r#"register_tool(#{ name: "t", description: "d", execute: || 1 });"#).await;
    let registry = Registry::default();
    registry.publish(bench.generation);
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.tool("t").unwrap().spec.description, "d");
    assert!(snapshot.diagnostics().is_empty());
}

#[tokio::test]
async fn registering_where_there_is_no_session_is_refused_with_a_reason() {
    let bench = load(r#"on("input", || on("turn_end", || 1));"#).await;
    let error = bench.hook("input", json!({})).await.unwrap_err();
    assert_eq!(
        error.message,
        "t.rhai:1:16: nothing can be registered here, because there is no session: register it at the top level, or in on(\"session_start\", |event, ctx| …)"
    );
}

#[tokio::test]
async fn top_level_constants_are_seen_by_functions_also_later() {
    let bench = load(
        r#"const LIMIT = 3; const NAMES = ["a"];
        fn limit() { global::LIMIT + global::NAMES.len() }
        register_tool(#{ name: "t", description: "d", execute: || limit() });"#,
    )
    .await;
    assert_eq!(bench.tool_text("t", json!({})).await, "4");
}

#[tokio::test]
async fn named_functions_can_be_handlers() {
    let bench = load(
        r#"fn double(args) { args.n * 2 }
        register_tool(#{ name: "t", description: "d", execute: Fn("double") });"#,
    )
    .await;
    assert_eq!(bench.tool_text("t", json!({"n": 4})).await, "8");
}

#[tokio::test]
async fn the_top_level_may_use_services_and_leave_early() {
    let fake = Fake::default().stream("fs.read", |_| Ok(vec![b"{\"n\":5}".to_vec()]));
    let bench = load_with(
        r#"let config = json_parse(read_file("c.json"));
        register_tool(#{ name: "t", description: "d", execute: || config.n });
        if config.n == 5 { return; }
        register_tool(#{ name: "u", description: "d", execute: || 1 });"#,
        fake,
    )
    .await;
    assert_eq!(bench.generation.contributions().len(), 1);
    assert_eq!(bench.tool_text("t", json!({})).await, "5");
}

#[tokio::test]
async fn a_hook_has_no_spec_but_its_name() {
    let bench = load(r#"on("input", || ());"#).await;
    let spec = &bench.contribution(Kind::Hook, "input").spec;
    assert_eq!(*spec, json!({"id": 0, "kind": "hook", "name": "input"}));
}

#[tokio::test]
async fn lifecycle_operations_are_unsupported_as_for_a_plugin_without_any() {
    let bench = load("").await;
    assert_eq!(
        bench
            .generation
            .control("quiesce", b"null")
            .unwrap_err()
            .code,
        "unsupported"
    );
}
