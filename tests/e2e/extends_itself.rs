//! The agent extends itself by the skill that ships: it reads it, writes a script, is told what is wrong with
//! it, mends it, and uses the new tool in the same session.

use pliant_tests::{MODEL, ModelServer, PROVIDER, TempHome, binary, reply};
use serde_json::json;

#[test]
fn the_agent_writes_an_extension_by_the_skill_and_uses_it_in_the_same_session() {
    // Issue "Everything a user writes", Build 5 and Show.
    const WRONG: &str = "register_tool(#{ name: \"line_count\", execute: |args| 1 });\nlet x = ;";
    const RIGHT: &str = r#"register_tool(#{
        name: "line_count",
        description: "Count the lines of a text file.",
        parameters: #{ type: "object", properties: #{ path: #{ type: "string" } }, required: ["path"] },
        execute: |args, ctx| `${read_file(args.path).lines().len} lines`,
    });"#;
    let check = || {
        reply::tool_call(
            "bash",
            json!({"command": "\"$PLIANT\" script check draft.rhai"}),
        )
    };
    let home = TempHome::new();
    let skill = home
        .agent_dir()
        .join("cache/shipped/skills/write-extension/SKILL.md");
    let server = ModelServer::start([
        reply::tool_call("read", json!({"path": skill})),
        reply::tool_call("write", json!({"path": "draft.rhai", "content": WRONG})),
        check(),
        reply::tool_call("write", json!({"path": "draft.rhai", "content": RIGHT})),
        check(),
        reply::tool_call(
            "bash",
            json!({"command": "mkdir -p \"$PLIANT_AGENT_DIR/extensions\" && cp draft.rhai \"$PLIANT_AGENT_DIR/extensions/lines.rhai\""}),
        ),
        reply::text("It is there."),
        reply::tool_call("line_count", json!({"path": "poem.txt"})),
        reply::text("Two."),
    ]);
    home.models(json!({PROVIDER: {
        "baseUrl": server.url(), "api": "openai-completions", "apiKey": "test-key",
        "models": [{"id": MODEL}],
    }}));
    home.write("poem.txt", "roses\nviolets\n");
    let pliant = home.pliant_with_model().env("PLIANT", binary());
    let mut rpc = pliant.args(["--mode", "rpc"]).rpc();
    rpc.state();
    rpc.turn("Give yourself a tool that counts lines.");
    rpc.event("resources_changed");
    rpc.turn("How many lines has poem.txt?");
    rpc.end();
    let requests = server.finish();
    let result = |at: usize| {
        let messages = requests[at].messages();
        messages.last().expect("a result")["content"].to_string()
    };
    assert!(result(1).contains("pliant script check"), "{}", result(1));
    assert!(result(3).contains("draft.rhai:2"), "{}", result(3));
    assert!(result(5).contains("line_count"), "{}", result(5));
    assert!(!requests[6].tools().contains(&"line_count"));
    assert!(requests[7].tools().contains(&"line_count"));
    assert!(result(8).contains("2 lines"), "{}", result(8));
}
