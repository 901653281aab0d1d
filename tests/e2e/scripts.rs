//! Rhai extensions given with `-e`: handlers, tools, commands, and a provider that is a script.

use pliant_tests::{ModelServer, TempHome, reply, workspace};
use serde_json::json;

const GUARD: &str = r#"
on("tool_call", |event, ctx| {
    if event.toolName == "bash" && event.input.command.contains("rm -rf") {
        return #{ block: true, reason: "not in this house" };
    }
});

register_tool(#{
    name: "shout",
    description: "Says it louder.",
    parameters: #{
        type: "object",
        properties: #{ text: #{ type: "string" } },
        required: ["text"],
    },
    execute: |args, ctx| args.text.to_upper() + "!",
});
"#;

#[test]
fn an_extension_blocks_a_command_and_adds_a_tool_in_one_run() {
    let server = ModelServer::start([
        reply::tool_calls([
            ("bash", json!({"command": "rm -rf precious"})),
            ("bash", json!({"command": "echo harmless"})),
            ("shout", json!({"text": "hello"})),
        ]),
        reply::text("Done."),
    ]);
    let home = TempHome::with_model(&server);
    let precious = home.write("precious/data.txt", "x");
    let guard = home.write_agent("guard.rhai", GUARD).display().to_string();
    home.prompt("Clean up.")
        .args(["-e", &guard])
        .run()
        .success();

    assert!(precious.exists());
    let requests = server.finish();
    assert!(
        requests[0].tools().contains(&"shout"),
        "{:?}",
        requests[0].tools()
    );
    let blocked = requests[1]
        .tool_result("call_1")
        .expect("the call is answered");
    assert!(blocked.contains("not in this house"), "{blocked}");
    let ran = requests[1]
        .tool_result("call_2")
        .expect("the call is answered");
    assert!(ran.contains("harmless"), "{ran}");
    assert_eq!(requests[1].tool_result("call_3").as_deref(), Some("HELLO!"));
}

#[test]
fn an_extension_in_the_agent_directory_needs_no_flag() {
    let server = ModelServer::start([reply::text("x")]);
    let home = TempHome::with_model(&server);
    home.write_agent("extensions/guard.rhai", GUARD);
    home.prompt("x").run().success();
    let requests = server.finish();
    assert!(
        requests[0].tools().contains(&"shout"),
        "{:?}",
        requests[0].tools()
    );
}

#[test]
fn a_failing_handler_closes_the_gate_and_a_throwing_tool_answers() {
    let script = r#"
        on("tool_call", |event, ctx| {
            if event.toolName == "bash" { throw "the gate is stuck"; }
        });
        register_tool(#{
            name: "throws",
            description: "Throws.",
            parameters: #{ type: "object", properties: #{} },
            execute: |args, ctx| { throw "nothing to give" },
        });
    "#;
    let server = ModelServer::start([
        reply::tool_calls([
            ("bash", json!({"command": "touch passed"})),
            ("throws", json!({})),
        ]),
        reply::text("Done."),
    ]);
    let home = TempHome::with_model(&server);
    let script = home.write_agent("gate.rhai", script).display().to_string();
    home.prompt("Go.").args(["-e", &script]).run().success();
    assert!(!home.project_dir().join("passed").exists());
    let requests = server.finish();
    for (call, words) in [
        ("call_1", "the gate is stuck"),
        ("call_2", "nothing to give"),
    ] {
        let answer = requests[1].tool_result(call).expect("the call is answered");
        assert!(answer.contains(words), "{answer}");
    }
}

#[test]
fn a_script_can_be_the_model() {
    let script = r#"
        register_provider("parrot", #{
            keyless: true,
            models: [#{ id: "grey" }],
            stream: |request, out| {
                if request.messages.last().role == "user" {
                    out.thinking("I could look.");
                    out.tool_call("bash", #{ command: "echo from the tool" });
                } else {
                    out.text("The tool ");
                    out.text("answered.");
                }
                out.finish();
            },
        });
    "#;
    let home = TempHome::new();
    let script = home
        .write_agent("parrot.rhai", script)
        .display()
        .to_string();
    let output = home
        .pliant()
        .args([
            "-e",
            &script,
            "--provider",
            "parrot",
            "--model",
            "grey",
            "-p",
            "Speak.",
        ])
        .run()
        .success();
    assert_eq!(output.stdout, "The tool answered.\n");
    let messages = home.stored_messages();
    let result = messages
        .iter()
        .find(|message| message["role"] == "toolResult");
    let result = result.expect("the tool was called");
    assert!(
        result["content"].to_string().contains("from the tool"),
        "{result}"
    );
}

#[test]
fn a_script_says_which_model_answers_each_request() {
    // V9, V10, V11, extensions §7.3
    let server = ModelServer::start([
        reply::tool_call("bash", json!({"command": "echo found"})),
        reply::text("Done."),
        reply::text("More."),
    ]);
    let home = TempHome::with_model(&server);
    home.models(json!({"local": {
        "baseUrl": server.url(), "api": "openai-completions", "apiKey": "test-key",
        "models": [{"id": "thinker"}, {"id": "worker"}],
    }}));
    home.settings(json!({"enabledModels": ["thinker", "worker"]}));
    let example = workspace().join("scripts/examples/two-models.rhai");
    let example = example.display().to_string();
    let answered = home
        .pliant()
        .args(["-e", &example, "--model", "duo/auto", "-p", "Look."])
        .run()
        .success();
    assert_eq!(answered.stdout, "Done.\n");
    // Without the script the session goes on with who answered last.
    home.pliant().args(["-c", "-p", "More."]).run().success();
    let requests = server.finish();
    let models: Vec<_> = requests.iter().map(|r| r.body["model"].clone()).collect();
    assert_eq!(models, ["thinker", "worker", "worker"]);
}

#[test]
fn a_server_that_the_settings_name_is_a_provider_with_the_models_it_lists() {
    let server = ModelServer::start([reply::text("From the server.")]);
    let home = TempHome::new();
    home.settings(json!({
        "extensions": ["+builtin:openai-compatible"],
        "openaiCompatible": {"baseUrl": server.url()},
    }));
    let model = format!("compatible/{}", pliant_tests::MODEL);
    let answered = home
        .pliant()
        .env("OPENAI_COMPATIBLE_API_KEY", "key-of-the-server")
        .args(["--model", &model, "-p", "Hi."])
        .run()
        .success();
    assert_eq!(answered.stdout, "From the server.\n");
    let request = &server.finish()[0];
    assert_eq!(request.body["model"], pliant_tests::MODEL);
    assert_eq!(
        request.header("authorization"),
        Some("Bearer key-of-the-server")
    );
}
