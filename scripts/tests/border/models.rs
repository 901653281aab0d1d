//! `register_virtual_model`, and what a script may ask of the session's model.

use pliant_kernel::registry::Kind;
use pliant_sdk::Error;
use serde_json::{Value, json};

use crate::kit::{Fake, load, load_error, load_with};

#[tokio::test]
async fn a_virtual_model_is_declared_and_routes_by_name_or_by_map() {
    // extensions §7.3
    let bench = load(
        r#"register_virtual_model(#{ provider: "router", id: "auto", name: "Auto",
            thinkingLevels: ["off", "high"], contextWindow: 1000,
            route: |request, ctx| {
                if request.reason == "retry" { return "acme/large"; }
                if request.state == () { return #{ model: "acme/small", state: #{ n: 1 } }; }
                #{ model: request.previous.model, thinkingLevel: "high" }
            } });"#,
    )
    .await;
    let spec = &bench.contribution(Kind::VirtualModel, "router/auto").spec;
    assert_eq!(
        [
            &spec["provider"],
            &spec["modelId"],
            &spec["label"],
            &spec["contextWindow"]
        ],
        [
            &json!("router"),
            &json!("auto"),
            &json!("Auto"),
            &json!(1000)
        ]
    );
    assert_eq!(spec["thinkingLevels"], json!(["off", "high"]));
    for (request, route) in [
        (json!({"reason": "retry"}), json!({"model": "acme/large"})),
        (
            json!({"reason": "user"}),
            json!({"model": "acme/small", "state": {"n": 1}}),
        ),
        (
            json!({"reason": "user", "state": 3, "previous": {"model": "a/b"}}),
            json!({"model": "a/b", "thinkingLevel": "high"}),
        ),
    ] {
        let said = bench
            .invoke(Kind::VirtualModel, "router/auto", "route", request)
            .await;
        assert_eq!(said.unwrap(), route);
    }
}

#[tokio::test]
async fn a_virtual_model_without_a_name_or_with_a_route_to_nothing_is_told() {
    let error =
        load_error(r#"register_virtual_model(#{ id: "auto", route: |r, ctx| "a/b" });"#).await;
    assert!(error.message.contains("`provider`"), "{error}");
    let error = load_error(r#"register_virtual_model(#{ provider: "r", id: "auto" });"#).await;
    assert!(error.message.contains("`route` is missing"), "{error}");
    let bench =
        load(r#"register_virtual_model(#{ provider: "r", id: "x", route: |r, ctx| 3 });"#).await;
    let asked = bench.invoke(Kind::VirtualModel, "r/x", "route", json!({}));
    let error = asked.await.unwrap_err();
    assert!(error.message.contains("`route` answered a"), "{error}");
}

#[tokio::test]
async fn a_script_selects_models_and_levels_and_asks_for_them() {
    // extensions §7.3
    let fake = Fake::default()
        .on("session.set_model", |asked| match asked["model"].as_str() {
            Some("acme/large") => Ok(json!(true)),
            Some("paid/gold") => Ok(json!(false)),
            _ => Err(Error::failed("There is no such model.")),
        })
        .on("session.set_thinking_level", |_| Ok(json!("low")))
        .on("session.model", |_| {
            Ok(json!({"provider": "acme", "id": "large"}))
        })
        .on("session.thinking_level", |_| Ok(json!("low")))
        .on("session.scoped_models", |_| Ok(json!([])))
        .on("session.usage", |_| {
            Ok(json!({"tokens": null, "contextWindow": 5, "percent": null}))
        })
        .on("models.list", |_| Ok(json!([{"id": "a"}, {"id": "b"}])));
    let script = r#"on("agent_start", |event, ctx| {
        let unknown = ();
        try { set_model("x"); } catch (error) { unknown = error.message; }
        #{
        set: [set_model("acme/large"), set_model("paid/gold"), set_thinking_level("high")],
        unknown: unknown,
        asked: [ctx.model.id, ctx.thinking_level, ctx.scoped_models.len(), models().len()],
        usage: [ctx.usage().tokens == (), ctx.usage().contextWindow],
        }
    });"#;
    let bench = load_with(script, fake).await;
    let said = bench
        .invoke(Kind::Hook, "agent_start", "agent_start", json!({}))
        .await
        .unwrap();
    assert_eq!(said["set"], json!([true, false, null]));
    assert_eq!(said["unknown"], json!("There is no such model."));
    assert_eq!(said["asked"], json!(["large", "low", 0, 2]));
    assert_eq!(said["usage"], json!([true, 5]));
    let levels = bench.fake.asked("session.set_thinking_level");
    assert_eq!(levels, [json!({"level": "high"})]);
}

#[tokio::test]
async fn outside_a_session_there_is_no_model_to_tell_of() {
    let script =
        r#"on("agent_start", |event, ctx| #{ model: ctx.model, level: ctx.thinking_level });"#;
    let bench = load(script).await;
    let said = bench
        .invoke(Kind::Hook, "agent_start", "agent_start", Value::Null)
        .await
        .unwrap();
    assert_eq!(said, json!({"model": null, "level": null}));
}
