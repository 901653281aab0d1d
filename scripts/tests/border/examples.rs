//! Every script in `examples/` runs, and does what its first comment says.

use std::path::Path;

use pliant_kernel::registry::Kind;
use serde_json::{Value, json};

use crate::kit::{Fake, load, load_with};

fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[tokio::test]
async fn block_rm_stops_forced_recursive_deletion_and_nothing_else() {
    let bench = load(&example("block-rm.rhai")).await;
    let blocked = async |tool: &str, command: &str| {
        let event = json!({"toolName": tool, "input": {"command": command}});
        let answer = bench.hook("tool_call", event).await.unwrap();
        assert!(
            answer == Value::Null || answer["reason"].is_string(),
            "{answer}"
        );
        answer["block"] == json!(true)
    };
    assert!(blocked("bash", "rm -rf build").await);
    assert!(blocked("bash", "cd x && rm -fr .").await);
    assert!(!blocked("bash", "rm old.txt").await);
    assert!(!blocked("bash", "ls -rf").await);
    assert!(!blocked("write", "rm -rf build").await);
}

#[tokio::test]
async fn word_count_counts() {
    let fake = Fake::default().stream("fs.read", |request| {
        Ok(vec![match request["path"].as_str() {
            Some("a.txt") => b"one two\nthree\n".to_vec(),
            _ => b"\0\0".to_vec(),
        }])
    });
    let bench = load_with(&example("word-count.rhai"), fake).await;
    let text = async |path: &str| bench.tool_text("word_count", json!({"path": path})).await;
    assert_eq!(text("a.txt").await, "a.txt: 2 lines, 3 words");
    assert_eq!(text("b.bin").await, "b.bin is not a text file");
}

#[tokio::test]
async fn two_models_share_the_work() {
    let fake = Fake::default().on("session.scoped_models", |_| {
        let model = |id: &str| json!({"model": {"provider": "p", "id": id, "api": "x"}});
        Ok(json!([model("thinker"), model("worker")]))
    });
    let bench = load_with(&example("two-models.rhai"), fake).await;
    for (reason, model) in [
        ("user", "p/thinker"),
        ("continuation", "p/worker"),
        ("retry", "p/thinker"),
    ] {
        let asked = json!({ "reason": reason });
        let said = bench
            .invoke(Kind::VirtualModel, "duo/auto", "route", asked)
            .await;
        assert_eq!(said.unwrap(), json!({ "model": model }));
    }
    let bench = load(&example("two-models.rhai")).await;
    let asked = bench.invoke(
        Kind::VirtualModel,
        "duo/auto",
        "route",
        json!({"reason": "user"}),
    );
    let error = asked.await.unwrap_err();
    assert!(error.message.contains("enabledModels"), "{error}");
}

#[test]
fn every_example_has_a_test_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let tests = include_str!("examples.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            tests.contains(&format!("example(\"{name}\")")),
            "{name} has no test"
        );
    }
}
