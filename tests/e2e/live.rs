//! Texts that change while a session is open: skills, prompt templates, instructions and the prompt's own
//! files count from the next request on, as sections that changed (`resources.md` §12.2, §12.5).

use std::fs;

use pliant_tests::rpc::Rpc;
use pliant_tests::{ModelServer, Request, TempHome, reply};
use serde_json::{Value, json};

fn skill(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n\nDo it.\n")
}

/// The next changes, as `source outcome`.
fn changed(rpc: &mut Rpc) -> Vec<String> {
    let event = rpc.event("resources_changed");
    let changes = event["changes"].as_array().expect("changes");
    let line = |change: &Value| {
        let text = |field: &str| change[field].as_str().expect("a text").to_owned();
        format!("{} {}", text("source"), text("outcome"))
    };
    changes.iter().map(line).collect()
}

#[test]
fn a_text_that_is_saved_counts_from_the_next_request_on_as_a_section_of_its_own() {
    let server = ModelServer::start((0..6).map(|_| reply::text("ok")));
    let home = TempHome::with_model(&server);
    home.write_agent("AGENTS.md", "Be brief.");
    let mut rpc = home.rpc();
    rpc.state();
    rpc.turn("one");

    let file = home.write_agent("skills/tidy/SKILL.md", skill("tidy", "Use for disorder."));
    assert_eq!(changed(&mut rpc), ["skill:tidy added"]);
    rpc.turn("two");
    fs::write(&file, skill("tidy", "Use for chaos.")).expect("written");
    assert_eq!(changed(&mut rpc), ["skill:tidy reloaded"]);
    rpc.turn("three");
    home.write_agent("AGENTS.md", "Be long.");
    assert_eq!(changed(&mut rpc), ["AGENTS.md reloaded"]);
    home.write_agent("APPEND_SYSTEM.md", "Say please.");
    assert_eq!(changed(&mut rpc), ["APPEND_SYSTEM.md added"]);
    rpc.turn("four");
    fs::remove_file(&file).expect("removed");
    assert_eq!(changed(&mut rpc), ["skill:tidy removed"]);
    rpc.turn("five");
    // What changed and changed back is not told to the model.
    home.write("AGENTS.md", "Only for a moment.");
    assert_eq!(changed(&mut rpc), ["AGENTS.md added"]);
    fs::remove_file(home.project_dir().join("AGENTS.md")).expect("removed");
    assert_eq!(changed(&mut rpc), ["AGENTS.md removed"]);
    rpc.turn("six");
    rpc.end();

    // What each request was made with.
    let prompts: Vec<String> = server.finish().iter().map(Request::system_prompt).collect();
    assert!(prompts[0].contains("Be brief.") && !prompts[0].contains("tidy"));
    assert!(prompts[1].contains("Use for disorder.") && prompts[1].contains("Be brief."));
    assert!(prompts[2].contains("Use for chaos.") && !prompts[2].contains("disorder"));
    assert!(prompts[3].contains("Be long.") && prompts[3].contains("Say please."));
    assert!(!prompts[4].contains("tidy"));
    assert_eq!(prompts[4], prompts[5]);
    // What the conversation keeps of it: the sections that changed, and no more.
    let stored = home.stored_messages();
    let patches = stored.iter().filter(|message| message["role"] == "system");
    let sections = |patch: &Value| {
        let sections = patch["sections"].as_object().expect("sections");
        let name = |(name, text): (&String, &Value)| match text {
            Value::Null => format!("-{name}"),
            _ => name.clone(),
        };
        sections.iter().map(name).collect::<Vec<_>>()
    };
    let patches: Vec<Vec<String>> = patches.skip(1).map(sections).collect();
    let expected: [&[&str]; 4] = [
        &["skills"],
        &["skills"],
        &["addendum", "project_context"],
        &["skills"],
    ];
    assert_eq!(patches, expected);
}

#[test]
fn a_template_that_is_saved_can_be_called_and_a_broken_one_is_told_once() {
    let server = ModelServer::start((0..3).map(|_| reply::text("ok")));
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    rpc.state();
    rpc.turn("/greet you");
    let file = home.write_agent("prompts/greet.md", "Greet $1.");
    assert_eq!(changed(&mut rpc), ["prompt:greet added"]);
    let commands = rpc.ok(json!({"type": "get_commands"}));
    assert!(commands.to_string().contains("greet"), "{commands}");
    rpc.turn("/greet you");
    fs::write(&file, "---\nbroken: [\n---\nx").expect("written");
    let said = changed(&mut rpc);
    assert_eq!(said, ["prompt:greet removed", "resources failed"]);
    fs::write(&file, "Hail $1.").expect("written");
    assert_eq!(changed(&mut rpc), ["prompt:greet added"]);
    rpc.turn("/greet you");
    rpc.end();
    let requests = server.finish();
    let last = |request: &Request| request.conversation().last().expect("one").1.clone();
    let said: Vec<String> = requests.iter().map(last).collect();
    assert_eq!(said, ["/greet you", "Greet you.", "Hail you."]);
}

#[test]
fn a_user_who_wants_no_watching_reloads_texts_by_hand() {
    let server = ModelServer::start([reply::text("ok")]);
    let home = TempHome::with_model(&server);
    home.settings(json!({"hotReload": {"enabled": false}}));
    let mut rpc = home.rpc();
    rpc.state();
    home.write_agent("prompts/greet.md", "Greet $1.");
    let answer = rpc.ok(json!({"type": "reload"}));
    assert!(answer.to_string().contains("prompt:greet"), "{answer}");
    rpc.turn("/greet you");
    rpc.end();
    let requests = server.finish();
    assert_eq!(
        requests[0].conversation().last().expect("one").1,
        "Greet you."
    );
}

/// The one change there is, and what is said of it.
fn told(rpc: &mut Rpc) -> String {
    let event = rpc.event("resources_changed");
    let change = &event["changes"][0];
    assert_eq!(change["source"], "settings.json", "{event}");
    change["message"].as_str().expect("a message").to_owned()
}

#[test]
fn settings_that_are_saved_count_at_once_and_a_broken_file_leaves_them_as_they_were() {
    // resources.md §12.2
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    home.write_agent("skills/tidy/SKILL.md", skill("tidy", "Use for disorder."));
    home.settings(json!({}));
    let mut rpc = home.rpc();
    rpc.state();
    let has_skill = |rpc: &mut Rpc| {
        let commands = rpc.ok(json!({"type": "get_commands"}));
        commands.to_string().contains("skill:tidy")
    };
    assert!(has_skill(&mut rpc));
    home.settings(json!({"enableSkillCommands": false, "sessionDir": "/elsewhere"}));
    let said = told(&mut rpc);
    assert!(said.contains("enableSkillCommands, sessionDir."), "{said}");
    assert!(
        said.contains("At the next start only: sessionDir."),
        "{said}"
    );
    assert!(!has_skill(&mut rpc));
    home.write_agent("settings.json", "{\"enableSkillCommands\": tr");
    let said = told(&mut rpc);
    assert!(
        said.contains("count as before") && said.contains("line 1"),
        "{said}"
    );
    assert!(!has_skill(&mut rpc));
    home.settings(json!({}));
    told(&mut rpc);
    assert!(has_skill(&mut rpc));
    // What a front end changes is written to the file, and is no news.
    rpc.ok(json!({"type": "set_auto_compaction", "enabled": false}));
    home.write_agent("prompts/greet.md", "Greet.");
    assert_eq!(changed(&mut rpc), ["prompt:greet added"]);
    rpc.end();
    drop(server);
}

#[test]
fn what_the_settings_list_is_loaded_when_they_are_saved() {
    // resources.md §2, §12.2
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    home.write_agent("more/skills/neat/SKILL.md", skill("neat", "Use for order."));
    let script = "register_command(\"wave\", #{ run: |args, ctx| ctx.ui.notify(\"hi\") });";
    let file = home.write_agent("more/wave.rhai", script);
    let mut rpc = home.rpc();
    rpc.state();
    home.settings(json!({"skills": ["more/skills"], "extensions": ["more/wave.rhai"]}));
    let lines = changed(&mut rpc);
    let script = format!("{} added", file.display());
    assert_eq!(
        lines,
        ["settings.json reloaded", "skill:neat added", &script]
    );
    // They are watched from now on.
    fs::write(
        &file,
        "register_command(\"bow\", #{ run: |args, ctx| () });",
    )
    .expect("written");
    assert_eq!(changed(&mut rpc), [format!("{} reloaded", file.display())]);
    home.settings(json!({}));
    let lines = changed(&mut rpc);
    assert!(
        lines.contains(&"skill:neat removed".to_owned()),
        "{lines:?}"
    );
    assert!(
        lines.contains(&format!("{} removed", file.display())),
        "{lines:?}"
    );
    rpc.end();
    drop(server);
}

#[test]
fn an_extension_that_ships_is_switched_on_and_off_by_a_line_of_the_settings() {
    // resources.md §2; reports T09
    let push = || reply::tool_call("bash", json!({"command": "true && git push"}));
    let server = ModelServer::start([push(), reply::text("a"), push(), reply::text("b")]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    rpc.state();
    rpc.turn("without it");
    home.settings(json!({"extensions": ["+builtin:permission-gate"],
        "permissionGate": {"deny": ["git push **"]}}));
    let lines = changed(&mut rpc);
    assert_eq!(
        lines,
        ["settings.json reloaded", "permission-gate.rhai added"]
    );
    rpc.turn("with it");
    home.settings(json!({}));
    assert!(changed(&mut rpc).contains(&"permission-gate.rhai removed".to_owned()));
    rpc.end();
    let requests = server.finish();
    let result = |request: &Request| request.messages().last().expect("one")["content"].to_string();
    assert!(
        !result(&requests[1]).contains("forbidden"),
        "{}",
        result(&requests[1])
    );
    assert!(
        result(&requests[3]).contains("forbidden by the rule"),
        "{}",
        result(&requests[3])
    );
    let logged = home.session();
    let logged = logged
        .iter()
        .find(|entry| entry["customType"] == "permission-gate");
    assert_eq!(logged.expect("it is logged")["data"]["decision"], "deny");
}

#[test]
fn skills_and_templates_that_ship_are_there_until_the_user_has_his_own_or_wants_none() {
    // resources.md §2
    let server = ModelServer::start([reply::text("a"), reply::text("b"), reply::text("c")]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    rpc.state();
    rpc.turn("/explain the tests");
    home.write_agent("prompts/explain.md", "My own way: $1");
    assert_eq!(changed(&mut rpc), ["prompt:explain reloaded"]);
    rpc.turn("/explain it");
    home.settings(json!({"skills": ["-builtin:write-plugin"], "prompts": ["-builtin:commit"]}));
    let lines = changed(&mut rpc);
    for gone in ["skill:write-plugin removed", "prompt:commit removed"] {
        assert!(lines.contains(&gone.to_owned()), "{lines:?}");
    }
    rpc.turn("hi");
    rpc.end();
    let requests = server.finish();
    let last = |request: &Request| request.conversation().last().expect("one").1.clone();
    assert!(
        last(&requests[0]).starts_with("Explain the tests."),
        "{}",
        last(&requests[0])
    );
    assert_eq!(last(&requests[1]), "My own way: it");
    let prompt = |number: usize| requests[number].system_prompt();
    assert!(prompt(0).contains("<name>write-plugin</name>"));
    assert!(
        prompt(2).contains("<name>write-extension</name>") && !prompt(2).contains("write-plugin")
    );
    // The file that the model is told of is there to be read.
    let prompt = prompt(0);
    let (_, rest) = prompt.split_once("<location>").expect("a place");
    let (path, _) = rest.split_once("</location>").expect("its end");
    assert!(
        fs::read_to_string(path)
            .expect("readable")
            .contains("# Extend pliant")
    );
}

#[test]
fn models_and_keys_count_from_the_next_request_on() {
    // resources §12.2
    let first = ModelServer::start([reply::text("from the first")]);
    let second = ModelServer::start([
        reply::text("one"),
        reply::text("two"),
        reply::text("three"),
        reply::text("four"),
    ]);
    let home = TempHome::with_model(&first);
    let models = |server: &ModelServer, key: Option<&str>| {
        let mut provider = json!({
            "baseUrl": server.url(), "api": "openai-completions", "models": [{"id": "mock-model", "contextWindow": 50_000}],
        });
        if let Some(key) = key {
            provider["apiKey"] = key.into();
        }
        json!({"providers": {"mock": provider}}).to_string()
    };
    let mut rpc = home.rpc();
    rpc.state();
    rpc.turn("a");
    home.write_agent("models.json", models(&second, Some("other-key")));
    let told = rpc.event("resources_changed");
    assert_eq!(told["changes"][0]["source"], "models.json");
    rpc.turn("b");
    home.write_agent("models.json", "{\"providers\": {,}");
    let told = rpc.event("resources_changed")["changes"][0].clone();
    assert_eq!(told["outcome"], "failed");
    let message = told["message"].as_str().expect("a message");
    assert!(
        message.contains("counted before counts on") && message.contains("line 1"),
        "{message}"
    );
    rpc.turn("c");
    home.write_agent("models.json", models(&second, None));
    rpc.event("resources_changed");
    home.write_agent(
        "auth.json",
        json!({"mock": {"type": "api_key", "key": "stored-key"}}).to_string(),
    );
    let told = rpc.event("resources_changed");
    assert_eq!(told["changes"][0]["source"], "auth.json");
    rpc.turn("d");
    // A broken file of keys is told once, and keeps nothing of the other from counting.
    home.write_agent("auth.json", "{\"mock\": ");
    let told = rpc.event("resources_changed")["changes"][0].clone();
    assert_eq!(
        (&told["source"], &told["outcome"]),
        (&json!("auth.json"), &json!("failed"))
    );
    home.write_agent("models.json", models(&second, Some("third-key")));
    let told = rpc.event("resources_changed")["changes"].clone();
    let names: Vec<&Value> = told
        .as_array()
        .expect("changes")
        .iter()
        .map(|one| &one["source"])
        .collect();
    assert_eq!(names, ["models.json"]);
    // The model that is selected is gone from the file.
    let other = json!({"providers": {"mock": {"baseUrl": second.url(), "api": "openai-completions", "models": [{"id": "another"}]}}});
    home.write_agent("models.json", other.to_string());
    rpc.event("resources_changed");
    rpc.turn("e");
    let notice = rpc
        .records()
        .iter()
        .find(|record| record["type"] == "notice");
    let notice = notice.expect("it is told")["message"]
        .as_str()
        .expect("a text")
        .to_owned();
    assert!(
        notice.contains("mock/mock-model is not known any more"),
        "{notice}"
    );
    rpc.end();
    let keys: Vec<_> = second
        .requests()
        .iter()
        .map(|request| request.header("authorization").map(str::to_owned))
        .collect();
    let bearer = |key: &str| Some(format!("Bearer {key}"));
    assert_eq!(
        keys,
        [
            bearer("other-key"),
            bearer("other-key"),
            bearer("stored-key"),
            bearer("stored-key")
        ]
    );
}

#[test]
fn default_tools_of_the_settings_are_added_live_and_what_was_turned_off_stays_off() {
    // R53, extensions §2.6
    let server = ModelServer::start((0..3).map(|_| reply::text("ok")));
    let home = TempHome::with_model(&server);
    home.settings(json!({"defaultTools": ["read", "bash"]}));
    let off = "register_command(\"off\", #{ run: |args, ctx| set_active_tools([\"read\"]) });";
    home.write_agent("extensions/off.rhai", off);
    let mut rpc = home.rpc();
    rpc.state();
    rpc.turn("a");
    rpc.ok(json!({"type": "prompt", "message": "/off"}));
    home.settings(json!({"defaultTools": ["bash", "grep"]}));
    rpc.event("resources_changed");
    rpc.turn("b");
    home.settings(json!({"defaultTools": []}));
    rpc.event("resources_changed");
    rpc.turn("c");
    rpc.end();
    let requests = server.requests();
    let tools: Vec<Vec<&str>> = requests.iter().map(|request| request.tools()).collect();
    assert_eq!(
        tools,
        [
            vec!["read", "bash"],
            vec!["read", "grep"],
            vec!["read", "grep"]
        ]
    );
}
