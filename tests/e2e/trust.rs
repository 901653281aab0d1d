//! A project's own files: they change nothing until somebody says that the project is trusted.

use std::fs;

use pliant_tests::{ModelServer, Request, TempHome, reply};
use serde_json::json;

use super::line::Talk;
use super::signals::{command, until};

/// A project with one file of each kind that takes effect.
fn project(server: &ModelServer) -> TempHome {
    let home = TempHome::with_model(server);
    home.write(
        ".pliant/settings.json",
        r#"{"defaultTools": ["read"], "defaultProjectTrust": "always"}"#,
    );
    home.write(".pliant/SYSTEM.md", "You are the project's.");
    home.write(".pliant/APPEND_SYSTEM.md", "Mind the project.");
    home.write(".pliant/prompts/greet.md", "Greeting of the project");
    home.write(
        ".pliant/skills/tidy/SKILL.md",
        "---\ndescription: Tidies the project.\n---\n",
    );
    home.write(
        ".pliant/extensions/louder.rhai",
        r#"register_tool(#{name: "shout", description: "Louder.", parameters: #{type: "object"},
            execute: |args, ctx| "HEY"});"#,
    );
    home.write("AGENTS.md", "Instructions of the project.");
    home.write_agent("APPEND_SYSTEM.md", "Mind the user.");
    home
}

#[track_caller]
fn check(request: &Request, trusted: bool) {
    let prompt = request.system_prompt();
    let told = |words: &str| prompt.contains(words);
    assert!(told("Instructions of the project."), "{prompt}");
    assert_eq!(told("You are the project's."), trusted, "{prompt}");
    assert_eq!(told("Mind the project."), trusted, "{prompt}");
    assert_eq!(told("Mind the user."), !trusted, "{prompt}");
    assert_eq!(told("Tidies the project."), trusted, "{prompt}");
    let mut tools = request.tools();
    tools.sort_unstable();
    let expected: &[&str] = match trusted {
        true => &["read", "shout"],
        false => &["bash", "edit", "read", "write"],
    };
    assert_eq!(tools, expected);
    let conversation = request.conversation();
    let sent = &conversation.last().expect("there is a prompt").1;
    let expanded = if trusted {
        "Greeting of the project"
    } else {
        "/greet"
    };
    assert_eq!(sent, expanded);
}

fn ask(arguments: &[&str], prepare: impl FnOnce(&TempHome)) -> (Request, String) {
    let server = ModelServer::start([reply::text("x")]);
    let home = project(&server);
    prepare(&home);
    let output = home.prompt("/greet").args(arguments).run().success();
    (server.finish().remove(0), output.stderr)
}

#[test]
fn without_trust_nothing_of_a_project_counts_but_its_instructions_and_that_is_said() {
    // interfaces §14
    let (request, told) = ask(&[], |_| {});
    check(&request, false);
    assert_eq!(told.lines().count(), 1, "{told}");
    for words in [
        "left out, because it is not trusted",
        ".pliant/settings.json",
        "--approve",
    ] {
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn the_command_line_trusts_for_one_run() {
    // interfaces §1.2, §14
    for flag in ["--approve", "-a"] {
        let (request, told) = ask(&[flag], |home| {
            home.write_agent(
                "trust.json",
                json!({home.project_dir().to_str().unwrap(): false}).to_string(),
            );
        });
        check(&request, true);
        assert_eq!(told, "");
    }
    for flag in ["--no-approve", "-na"] {
        let (request, told) = ask(&[flag], |home| {
            home.write_agent("trust.json", json!({"/": true}).to_string());
        });
        check(&request, false);
        assert_eq!(told, "");
    }
}

#[test]
fn a_stored_decision_holds_for_the_folder_and_those_below_and_the_nearest_counts() {
    // interfaces §14
    let (request, told) = ask(&[], |home| {
        let above = home.project_dir().parent().unwrap().to_owned();
        home.write_agent(
            "trust.json",
            json!({above.to_str().unwrap(): true}).to_string(),
        );
    });
    check(&request, true);
    assert_eq!(told, "");
    let (request, told) = ask(&[], |home| {
        let own = home.project_dir();
        home.write_agent(
            "trust.json",
            json!({"/": true, own.to_str().unwrap(): false}).to_string(),
        );
    });
    check(&request, false);
    assert_eq!(told, "");
}

#[test]
fn the_users_setting_decides_where_nobody_did() {
    // interfaces §14
    for (word, trusted) in [("always", true), ("never", false)] {
        let (request, told) = ask(&[], |home| {
            home.settings(json!({"defaultProjectTrust": word, "retry": {"enabled": false}}));
        });
        check(&request, trusted);
        assert_eq!(told, "");
    }
}

#[test]
fn a_store_that_is_damaged_trusts_nothing_and_stays_as_it_is() {
    // resources §11
    for damaged in ["{\"/\": true", "[]", "{\"/\": \"yes\"}"] {
        let (request, told) = ask(&[], |home| {
            home.write_agent("trust.json", damaged);
        });
        check(&request, false);
        assert!(told.contains("trust.json cannot be used"), "{told}");
    }
}

#[test]
fn shared_skills_above_the_project_need_trust_and_those_of_the_home_do_not() {
    // resources §11
    let skill = |text| format!("---\ndescription: {text}\n---\n");
    let told = |flag: &[&str]| {
        let server = ModelServer::start([reply::text("x")]);
        let home = TempHome::with_model(&server);
        home.write("../.agents/skills/up/SKILL.md", skill("Lies above."));
        home.write("../home/.agents/skills/own/SKILL.md", skill("Is at home."));
        home.prompt("x").args(flag).run().success();
        let prompt = server.finish()[0].system_prompt();
        assert!(prompt.contains("Is at home."), "{prompt}");
        prompt.contains("Lies above.")
    };
    assert!(!told(&[]));
    assert!(told(&["-a"]));
}

#[test]
fn a_broken_extension_of_a_project_stops_a_run_only_when_the_project_is_trusted() {
    // interfaces §1.5
    let server = ModelServer::start([reply::text("x")]);
    let home = TempHome::with_model(&server);
    home.write(".pliant/extensions/broken.rhai", "let = ;");
    home.prompt("x").run().success();
    home.prompt("x").args(["-a"]).run().failure(&["broken"]);
    assert_eq!(server.finish().len(), 1);
}

#[test]
fn at_a_terminal_the_user_is_asked_once_and_the_answer_is_kept() {
    // interfaces §14
    let server = ModelServer::start([reply::text("One."), reply::text("Two.")]);
    let home = project(&server);
    let mut talk = Talk::with(command(&home, &[]));
    talk.shows_in_the_end("This project has files", "Trust this project? [1-5] ");
    talk.keys("1\n");
    talk.shows_in_the_end("This project has files", "> ");
    talk.keys("/greet\n");
    talk.shows_in_the_end("This project has files", "One.\n> ");
    drop(talk);
    let stored = home.agent_dir().join("trust.json");
    let stored: serde_json::Value =
        serde_json::from_str(&until("trust.json", || fs::read_to_string(&stored).ok())).unwrap();
    assert_eq!(stored, json!({home.project_dir().to_str().unwrap(): true}));
    home.prompt("/greet").run().success();
    for request in server.finish() {
        check(&request, true);
    }
}
