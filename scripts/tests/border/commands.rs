//! `register_command`.

use pliant_kernel::registry::Kind;
use serde_json::{Value, json};

use crate::kit::{Fake, load, load_error, load_with};

#[tokio::test]
async fn a_command_runs_with_its_arguments_and_completes_them() {
    let bench = load_with(
        r#"register_command("greet", #{
            description: "Say hello.",
            run: |args, ctx| ctx.ui.notify(`hello ${args}`),
            complete: |prefix| [prefix + "a", #{ value: "b", label: "B", description: "the b" }],
        });
        register_command("bare", #{ run: || 5 });"#,
        Fake::default().on("ui.show", |_| Ok(Value::Null)),
    )
    .await;
    assert_eq!(
        bench.contribution(Kind::Command, "greet").spec,
        json!({"id": 0, "kind": "command", "name": "greet", "description": "Say hello."})
    );
    let command = async |name: &str, op: &str, args: &str| {
        bench
            .invoke(Kind::Command, name, op, json!(args))
            .await
            .unwrap()
    };
    assert_eq!(command("greet", "run", " you ").await, Value::Null);
    assert_eq!(bench.fake.asked("ui.show")[0]["message"], "hello  you ");
    assert_eq!(
        command("greet", "complete", "x").await,
        json!([{"value": "xa", "label": "xa"}, {"value": "b", "label": "B", "description": "the b"}])
    );
    assert_eq!(command("bare", "run", "").await, Value::Null);
    assert_eq!(command("bare", "complete", "").await, json!([]));
}

#[tokio::test]
async fn completions_of_another_shape_are_an_error() {
    let bench = load(r#"register_command("c", #{ run: || 1, complete: || "x" });"#).await;
    let error = bench
        .invoke(Kind::Command, "c", "complete", json!(""))
        .await
        .unwrap_err();
    assert_eq!(
        error.message,
        "t.rhai: `complete` answered a string; it has to answer a list of texts or of maps with `value`"
    );
}

#[tokio::test]
async fn a_name_with_a_slash_or_a_space_is_refused() {
    let error = load_error(r#"register_command("/x", #{ run: || 1 });"#).await;
    assert!(
        error.message.contains("cannot be a command's name"),
        "{error}"
    );
}
