//! What the README shows of scripts runs as it stands there.

use std::path::Path;

use serde_json::{Value, json};

use crate::kit::load;

/// The blocks of Rhai in the README.
fn snippets() -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let text = std::fs::read_to_string(file).unwrap();
    let blocks = text.split("```rhai\n").skip(1);
    blocks
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn every_snippet_can_be_loaded_and_registers_something() {
    for snippet in snippets() {
        let bench = load(&snippet).await;
        assert!(!bench.generation.contributions().is_empty(), "{snippet}");
    }
}

#[tokio::test]
async fn the_tool_of_the_readme_shouts_and_its_handler_blocks() {
    let snippets = snippets();
    let shout = snippets.iter().find(|text| text.contains("\"shout\""));
    let bench = load(shout.expect("the README shows it")).await;
    let said = bench.tool_text("shout", json!({"text": "hi"})).await;
    assert_eq!(said, "HI!");
    let call = |command: &str| json!({"toolName": "bash", "input": {"command": command}});
    let answer = bench.hook("tool_call", call("rm -rf x")).await.unwrap();
    assert_eq!(answer, json!({"block": true, "reason": "not here"}));
    let answer = bench.hook("tool_call", call("ls")).await.unwrap();
    assert_eq!(answer, Value::Null);
}
