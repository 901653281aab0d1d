//! Settings and variables, from where they are written to what they do.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pliant_tests::{ModelServer, Output, Reply, Request, TempHome, reply};
use serde_json::{Value, json};

/// One run with settings, and what it came to.
struct Effect {
    home: TempHome,
    requests: Vec<Request>,
    output: Output,
}

/// Prompts with these settings beside those of the test's home; `prepare` may add files and arguments.
fn with(
    settings: Value,
    replies: Vec<Reply>,
    prepare: impl FnOnce(&TempHome) -> Vec<String>,
) -> Effect {
    let server = ModelServer::start(replies);
    let home = TempHome::with_model(&server);
    let mut all = json!({"retry": {"enabled": false}});
    for (key, value) in settings.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    home.settings(all);
    let arguments = prepare(&home);
    let output = home.prompt("Go.").args(arguments).run();
    Effect {
        requests: server.finish(),
        home,
        output,
    }
}

fn plain(settings: Value) -> Effect {
    with(settings, vec![reply::text("x")], |_| Vec::new())
}

/// What a command that the model runs prints.
fn printed(settings: Value, command: &str) -> String {
    let calls = vec![
        reply::tool_call("bash", json!({"command": command})),
        reply::text("x"),
    ];
    let effect = with(settings, calls, |_| Vec::new());
    let result = effect.requests[1].tool_result("call_1");
    result.expect("the call is answered")
}

#[test]
fn the_models_of_a_start_are_as_the_settings_say() {
    // interfaces §5
    let start = |settings: Value| {
        let server = ModelServer::start([reply::text("x")]);
        let home = TempHome::with_model(&server);
        home.models(json!({"mock": {"baseUrl": server.url(), "api": "openai-completions", "apiKey": "test-key",
            "models": [{"id": "one", "reasoning": true}, {"id": "two", "reasoning": true}]}}));
        home.settings(settings);
        home.pliant().args(["-p", "x"]).run().success();
        let body = &server.finish()[0].body;
        (body["model"].clone(), body["reasoning_effort"].clone())
    };
    let two = json!({"defaultProvider": "mock", "defaultModel": "two"});
    assert_eq!(start(two), (json!("two"), json!("medium")));
    let one_of = json!({"enabledModels": ["mock/t*"], "defaultThinkingLevel": "low"});
    assert_eq!(start(one_of), (json!("two"), json!("low")));
    let of_model = json!({"defaultProvider": "mock", "defaultModel": "two", "defaultThinkingLevel": "low",
        "modelThinkingLevels": {"mock/two": "high"}});
    assert_eq!(start(of_model), (json!("two"), json!("high")));
}

#[test]
fn the_tools_of_a_start_are_as_the_settings_say() {
    // interfaces §5
    for (listed, tools) in [
        (json!(["read", "grep"]), &["read", "grep"][..]),
        (
            json!(["+grep", "-bash"]),
            &["read", "edit", "write", "grep"],
        ),
    ] {
        let effect = plain(json!({"defaultTools": listed}));
        assert_eq!(effect.requests[0].tools(), tools);
    }
}

#[test]
fn the_shell_and_its_first_line_are_as_the_settings_say() {
    // interfaces §5
    let shell = |home: &TempHome| {
        let path = home.write("../home/odd-shell", "#!/bin/sh\necho odd \"$2\"\n");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        Vec::new()
    };
    let call = || {
        vec![
            reply::tool_call("bash", json!({"command": "hello"})),
            reply::text("x"),
        ]
    };
    let effect = with(json!({"shellPath": "~/odd-shell"}), call(), shell);
    let said = effect.requests[1].tool_result("call_1");
    assert_eq!(said.as_deref(), Some("odd hello\n"));
    let prefix = json!({"shellCommandPrefix": "word=prefixed"});
    assert_eq!(printed(prefix, "echo $word"), "prefixed\n");
}

#[test]
fn images_stay_here_when_the_settings_say_so() {
    // interfaces §5, M17
    const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";
    for (blocked, sent) in [(true, false), (false, true)] {
        let server = ModelServer::start([
            reply::tool_call("read", json!({"path": "p.png"})),
            reply::text("x"),
        ]);
        let home = TempHome::with_model(&server);
        home.models(json!({"mock": {"baseUrl": server.url(), "api": "openai-completions", "apiKey": "test-key",
            "models": [{"id": "mock-model", "input": ["text", "image"]}]}}));
        home.settings(json!({"images": {"blockImages": blocked}}));
        home.write("p.png", PIXEL);
        home.prompt("Look.").run().success();
        let body = server.finish()[1].body.to_string();
        assert_eq!(body.contains("data:image/png;base64,"), sent, "{body}");
    }
}

#[test]
fn retries_are_as_the_settings_say() {
    // interfaces §5
    let busy = || reply::error(503, "busy");
    for (retry, requests, works) in [
        (json!({"enabled": false}), 1, false),
        (json!({"baseDelayMs": 1, "maxRetries": 1}), 2, false),
        (json!({"baseDelayMs": 1}), 3, true),
        (
            json!({"enabled": false, "provider": {"maxRetries": 2, "maxRetryDelayMs": 1}}),
            3,
            true,
        ),
    ] {
        let replies = vec![busy(), busy(), reply::text("x")];
        let replies = replies
            .into_iter()
            .skip(if works { 0 } else { 2 - requests.min(2) });
        let replies = replies.take(requests).collect();
        let effect = with(json!({"retry": retry}), replies, |_| Vec::new());
        assert_eq!(effect.requests.len(), requests, "{retry}");
        assert_eq!(effect.output.status.success(), works, "{retry}");
    }
}

#[test]
fn silence_of_a_service_lasts_as_long_as_the_settings_say() {
    // interfaces §5
    for settings in [
        json!({"httpIdleTimeoutMs": 50}),
        json!({"retry": {"enabled": false, "provider": {"timeoutMs": 50}}}),
    ] {
        let effect = with(settings, vec![reply::hold()], |_| Vec::new());
        effect.output.failure(&[]);
    }
}

#[test]
fn levels_think_as_long_as_the_settings_say() {
    // interfaces §5
    let server = ModelServer::start([reply::text("x")]);
    let home = TempHome::with_model(&server);
    home.models(json!({"mock": {"baseUrl": server.url(), "api": "openai-completions", "apiKey": "test-key",
        "models": [{"id": "mock-model", "reasoning": true, "compat": {"thinkingTokenBudgetField": "budget"}}]}}));
    home.settings(json!({"thinkingBudgets": {"low": 777}}));
    home.prompt("x").args(["--thinking", "low"]).run().success();
    let body = &server.finish()[0].body;
    assert_eq!(body["budget"], 777, "{body}");
}

#[test]
fn conversations_are_compacted_as_the_settings_say() {
    // interfaces §5
    for (compaction, compacted) in [
        (json!({"reserveTokens": 1000, "keepRecentTokens": 1}), true),
        (
            json!({"enabled": false, "reserveTokens": 1000, "keepRecentTokens": 1}),
            false,
        ),
        (json!({"reserveTokens": 10, "keepRecentTokens": 1}), false),
        (
            json!({"reserveTokens": 10, "keepRecentTokens": 1,
            "modelOverrides": {"mock/mock-model": {"reserveTokens": 1000}}}),
            true,
        ),
    ] {
        let server = ModelServer::start(
            [
                reply::text("One.").usage(7_500, 10),
                reply::text("Summary."),
                reply::text("Three."),
            ]
            .into_iter()
            .take(if compacted { 3 } else { 2 }),
        );
        let home = TempHome::with_model(&server);
        home.models(json!({"mock": {"baseUrl": server.url(), "api": "openai-completions", "apiKey": "test-key",
            "models": [{"id": "mock-model", "contextWindow": 8000, "maxTokens": 100}]}}));
        home.settings(json!({"compaction": compaction}));
        home.prompt("a").args(["b"]).run().success();
        let entries = home.session();
        let found = entries.iter().any(|entry| entry["type"] == "compaction");
        assert_eq!(found, compacted, "{compaction}");
    }
}

#[test]
fn sessions_are_stored_where_they_are_told_to_be_and_the_nearest_word_counts() {
    // interfaces §3–5
    let server = ModelServer::start((0..4).map(|_| reply::text("x")));
    let home = TempHome::with_model(&server);
    let count = |folder: &str| {
        fs::read_dir(home.project_dir().join(folder)).map_or(0, |found| {
            found
                .flatten()
                .filter(|file| {
                    file.path()
                        .extension()
                        .is_some_and(|ending| ending == "jsonl")
                })
                .count()
        })
    };
    home.settings(json!({"sessionDir": "by-user"}));
    home.prompt("x").run().success();
    assert_eq!(count("by-user"), 1);
    // Before the project is trusted.
    home.write(".pliant/settings.json", r#"{"sessionDir": "by-project"}"#);
    home.prompt("x").run().success();
    assert_eq!(count("by-project"), 1);
    let listed = home
        .pliant()
        .args(["session", "list"])
        .run()
        .success()
        .stdout;
    assert_eq!(listed.lines().count(), 2, "{listed}");
    let name = "PLIANT_CODING_AGENT_SESSION_DIR";
    home.prompt("x").env(name, "by-long-name").run().success();
    assert_eq!(count("by-long-name"), 1);
    let both = home
        .prompt("x")
        .env(name, "by-long-name")
        .env("PLIANT_SESSION_DIR", "by-name");
    both.run().success();
    assert_eq!((count("by-name"), count("by-long-name")), (1, 1));
}

#[test]
fn requests_go_through_the_proxy_of_the_users_settings_or_of_the_environment() {
    // interfaces §4, §5
    let check = |reached: bool, settings: Value, variables: &[(&str, &str)], project: Value| {
        // What is asked of a proxy is the whole address; this one answers for a host that is not there.
        let server = ModelServer::start(reached.then(|| reply::text("x")));
        let home = TempHome::with_model(&server);
        home.models(
            json!({"mock": {"baseUrl": "http://service.invalid/v1", "api": "openai-completions",
            "apiKey": "test-key", "models": [{"id": "mock-model"}]}}),
        );
        let proxy = server.url().replace("/v1", "");
        let text = settings.to_string().replace("PROXY", &proxy);
        home.write_agent("settings.json", text);
        let text = project.to_string().replace("PROXY", &proxy);
        home.write(".pliant/settings.json", text);
        let mut run = home.prompt("x").args(["-a"]);
        for (name, value) in variables {
            run = run.env(name, value.replace("PROXY", &proxy));
        }
        assert_eq!(run.run().status.success(), reached, "{variables:?}");
        assert_eq!(server.finish().len(), usize::from(reached));
    };
    let off = || json!({"retry": {"enabled": false}});
    check(true, json!({"httpProxy": "PROXY"}), &[], json!({}));
    check(true, off(), &[("http_proxy", "PROXY")], json!({}));
    check(true, off(), &[("HTTP_PROXY", "PROXY")], json!({}));
    let except = [("HTTP_PROXY", "PROXY"), ("NO_PROXY", ".invalid")];
    check(false, off(), &except, json!({}));
    // A project does not say where requests with the user's keys go.
    check(false, off(), &[], json!({"httpProxy": "PROXY"}));
}

#[test]
fn the_environment_asks_for_long_caching_under_both_names() {
    // interfaces §4
    for (name, value, long) in [
        ("PLIANT_CACHE_RETENTION", "long", true),
        ("PI_CACHE_RETENTION", "long", true),
        ("PLIANT_CACHE_RETENTION", "short", false),
    ] {
        let server = ModelServer::start([reply::text("x")]);
        let home = TempHome::with_model(&server);
        home.models(json!({"mock": {"baseUrl": server.url(), "api": "openai-completions", "apiKey": "test-key",
            "models": [{"id": "mock-model", "compat": {"supportsLongCacheRetention": true}}]}}));
        home.prompt("x").env(name, value).run().success();
        let body = &server.finish()[0].body;
        assert_eq!(
            body.get("prompt_cache_retention").is_some(),
            long,
            "{name}={value}: {body}"
        );
    }
}

#[test]
fn commands_of_the_model_know_their_session_and_whose_child_they_are() {
    // interfaces §4
    let server = ModelServer::start([
        reply::tool_call("bash", json!({"command": "env"})),
        reply::text("x"),
        reply::tool_call("bash", json!({"command": "env"})),
        reply::text("x"),
    ]);
    let home = TempHome::with_model(&server);
    let inherited = |run: pliant_tests::Pliant| {
        run.env("PLIANT_SESSION_ID", "outer")
            .env("PI_SESSION_FILE", "/outer")
            .env("PI_MODEL", "outer")
    };
    inherited(home.prompt("x")).run().success();
    inherited(home.prompt("x").args(["--no-session"]))
        .run()
        .success();
    let requests = server.finish();
    let variables = |request: &Request, call: &str| -> Vec<String> {
        let printed = request.tool_result(call).expect("the call is answered");
        let named = |line: &&str| line.starts_with("PLIANT_") || line.starts_with("AI_");
        let mut lines: Vec<String> = printed.lines().filter(named).map(str::to_owned).collect();
        lines.retain(|line| !line.starts_with("PLIANT_AGENT_DIR="));
        lines.sort();
        lines
    };
    let file = home.session_files().remove(0);
    let id = home.session()[0]["id"]
        .as_str()
        .expect("it has an id")
        .to_owned();
    assert_eq!(
        variables(&requests[1], "call_1"),
        [
            "AI_AGENT=pliant".to_owned(),
            "PLIANT_CODING_AGENT=true".to_owned(),
            "PLIANT_MODEL=mock-model".to_owned(),
            "PLIANT_PROVIDER=mock".to_owned(),
            "PLIANT_REASONING_LEVEL=off".to_owned(),
            format!("PLIANT_SESSION_FILE={}", file.display()),
            format!("PLIANT_SESSION_ID={id}"),
        ]
    );
    let printed = requests[1]
        .tool_result("call_1")
        .expect("the call is answered");
    assert!(!printed.contains("outer"), "{printed}");
    let in_memory = variables(&requests[3], "call_2");
    assert!(
        !in_memory.iter().any(|line| line.contains("SESSION_FILE")),
        "{in_memory:?}"
    );
}

#[test]
fn the_configuration_directory_has_two_names() {
    // interfaces §3, §4
    let server = ModelServer::start([reply::text("x")]);
    let home = TempHome::with_model(&server);
    let other = home.home_dir().join("elsewhere");
    fs::rename(home.agent_dir(), &other).expect("the home is writable");
    let run = home.prompt("x").env("PLIANT_AGENT_DIR", "");
    run.env("PLIANT_CODING_AGENT_DIR", "~/elsewhere")
        .run()
        .success();
    assert!(other.join("sessions").is_dir());
    assert!(!home.agent_dir().exists());
}

#[test]
fn a_wrong_type_costs_one_key_and_is_said_once() {
    // interfaces §5
    let effect = plain(
        json!({"defaultTools": "all", "shellPath": 7, "defaultThinkingLevel": "much",
        "images": {"blockImages": "no"}, "nobodyKnows": [1]}),
    );
    let told = effect.output.success().stderr;
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 4, "{told}");
    for key in [
        "defaultThinkingLevel",
        "defaultTools",
        "images.blockImages",
        "shellPath",
    ] {
        let of_key = |line: &&&str| line.starts_with(&format!("Warning: The setting {key} in "));
        assert_eq!(lines.iter().filter(of_key).count(), 1, "{key}: {told}");
    }
    assert_eq!(
        effect.requests[0].tools(),
        ["read", "bash", "edit", "write"]
    );
    drop(effect.home);
}

/// What it is, and how it comes there.
type OddFile = (&'static str, fn(&Path));

/// What may lie where a file of the user should be.
fn odd_files() -> Vec<OddFile> {
    vec![
        ("a pipe", |path| {
            let made = Command::new("mkfifo").arg(path).status();
            assert!(made.is_ok_and(|status| status.success()));
        }),
        ("a folder", |path| {
            fs::create_dir(path).expect("the home is writable")
        }),
        ("a device", |path| {
            std::os::unix::fs::symlink("/dev/zero", path).expect("the home is writable")
        }),
        ("100 MB", |path| {
            let file = fs::File::create(path).expect("the home is writable");
            file.set_len(100 << 20).expect("a file with a hole");
        }),
        ("a circle", |path| {
            std::os::unix::fs::symlink(path, path).expect("the home is writable")
        }),
        ("no text", |path| {
            fs::write(path, [0xff, 0xfe, 0x00]).expect("the home is writable")
        }),
        ("no JSON", |path| {
            fs::write(path, "{\"key\": \"sk-secret-in-file\",").expect("the home is writable")
        }),
        ("depth", |path| {
            fs::write(path, "[".repeat(200_000)).expect("the home is writable")
        }),
    ]
}

#[test]
fn whatever_lies_where_a_file_should_be_is_a_sentence_and_stays_there() {
    // interfaces §5
    for name in ["settings.json", "auth.json", "trust.json", "SYSTEM.md"] {
        for (what, put) in odd_files() {
            if name == "SYSTEM.md" && matches!(what, "no JSON" | "depth") {
                continue;
            }
            let server = ModelServer::start([reply::text("x")]);
            let home = TempHome::with_model(&server);
            home.write(".pliant/prompts/x.md", "x");
            let path = home.agent_dir().join(name);
            let _ = fs::remove_file(&path);
            put(&path);
            let before = fs::symlink_metadata(&path).expect("it is there");
            let output = home
                .prompt("x")
                .limit(Duration::from_secs(20))
                .run()
                .success();
            let told = output.stderr;
            assert!(told.contains(name), "{name} is {what}: {told}");
            assert!(!told.contains("sk-secret"), "{told}");
            let after = fs::symlink_metadata(&path).expect("it stays");
            assert_eq!(
                (before.file_type(), before.len()),
                (after.file_type(), after.len())
            );
            assert_eq!(server.finish().len(), 1);
        }
    }
}

#[test]
fn a_byte_order_mark_and_line_ends_of_windows_change_nothing() {
    let server = ModelServer::start([reply::text("x")]);
    let home = TempHome::with_model(&server);
    home.write_agent(
        "settings.json",
        "\u{feff}{\r\n  \"defaultTools\": [\"read\"]\r\n}\r\n",
    );
    home.write_agent(
        "auth.json",
        "\u{feff}{\r\n\"mock\": {\"type\": \"api_key\", \"key\": \"stored-key\"}}\r\n",
    );
    let output = home.prompt("x").run().success();
    assert_eq!(output.stderr, "");
    let request = server.finish().remove(0);
    assert_eq!(request.tools(), ["read"]);
    assert_eq!(request.header("authorization"), Some("Bearer stored-key"));
}

#[test]
fn lists_of_the_settings_bring_resources_and_leave_some_out() {
    // resources §2
    let effect = with(
        json!({"skills": ["more", "!dull"], "extensions": ["tools/shout.rhai"]}),
        vec![reply::text("x")],
        |home| {
            let skill = |text: &str| format!("---\ndescription: {text}\n---\n");
            home.write_agent("skills/dull/SKILL.md", skill("Is dull."));
            home.write_agent("more/bright/SKILL.md", skill("Is bright."));
            home.write_agent(
                "tools/shout.rhai",
                r#"register_tool(#{name: "shout", description: "Louder.", parameters: #{type: "object"},
                    execute: |args, ctx| "HEY"});"#,
            );
            Vec::new()
        },
    );
    let prompt = effect.requests[0].system_prompt();
    assert!(
        prompt.contains("Is bright.") && !prompt.contains("Is dull."),
        "{prompt}"
    );
    assert!(effect.requests[0].tools().contains(&"shout"));
}

#[test]
fn keys_are_in_no_log_whatever_goes_wrong() {
    // interfaces §14
    for failure in [
        reply::error(401, "Bad key test-key-of-this-run!"),
        reply::hang_up(),
    ] {
        let server = ModelServer::start([failure]);
        let home = TempHome::with_model(&server);
        home.write_agent(
            "auth.json",
            json!({"mock": {"type": "api_key", "key": "test-key-of-this-run"}}).to_string(),
        );
        let output = home
            .prompt("x")
            .args(["--log-file", "log.txt"])
            .env("PLIANT_LOG", "trace")
            .run();
        let log = home.read("log.txt");
        assert!(!log.is_empty());
        for text in [&log, &output.stdout, &output.stderr] {
            assert!(!text.contains("test-key-of-this-run"), "{text}");
        }
        for file in home.session_files() {
            let text = fs::read_to_string(file).expect("it is text");
            assert!(!text.contains("test-key-of-this-run"), "{text}");
        }
    }
}
