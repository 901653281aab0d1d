//! The code in the skills that ship is right.

use std::path::Path;

use pliant_kernel::registry::Kind;
use serde_json::json;

use crate::kit::{Bench, Fake, load_with};

/// The scripts in the text of a skill, one after another.
fn scripts(skill: &str) -> Vec<String> {
    let file = format!("skills/{skill}/SKILL.md");
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let blocks = text.split("```rhai\n").skip(1);
    let code = blocks.map(|block| block.split_once("```").unwrap().0.to_owned());
    code.collect()
}

/// All of them as one script, which a user may make of them.
async fn all() -> Bench {
    let fake = Fake::default()
        .stream("fs.read", |_| Ok(vec![b"one two\nthree\n".to_vec()]))
        .stream("exec.stream", |_| {
            let exit = json!({"code": 0, "timedOut": false});
            Ok(vec![b"omain\n".to_vec(), format!("x{exit}").into_bytes()])
        });
    load_with(&scripts("write-extension").join("\n"), fake).await
}

#[tokio::test]
async fn the_tool_of_the_skill_answers() {
    let said = all()
        .await
        .tool_text("count_words", json!({"path": "a.txt"}))
        .await;
    assert_eq!(said, "a.txt has 3 words.");
}

#[tokio::test]
async fn the_command_of_the_skill_tells_the_branch() {
    let bench = all().await;
    let run = bench.invoke(Kind::Command, "branch", "run", json!(""));
    run.await.unwrap();
    let shown = &bench.fake.asked("ui.show")[0];
    assert_eq!(shown["message"], "main", "{shown}");
}

#[tokio::test]
async fn the_rule_of_the_skill_blocks_what_it_names_and_nothing_else() {
    let bench = all().await;
    for (path, blocked) in [("Cargo.lock", true), ("a.txt", false)] {
        let event = json!({"toolName": "write", "input": {"path": path}});
        let answer = bench.hook("tool_call", event).await.unwrap();
        assert_eq!(answer["block"] == json!(true), blocked, "{path}");
    }
}
