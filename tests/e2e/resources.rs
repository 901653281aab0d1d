//! Skills and prompt templates: files of the user's directory in the prompt and in what is sent.

use std::path::Path;

use pliant_tests::{ModelServer, Request, TempHome, reply};
use serde_json::json;

const SKILL: &str = "---\nname: tidy\ndescription: Use when files are in disorder.\n---\n\n# Tidy\n\nSort by name.\n";
const TEMPLATE: &str = "---\ndescription: Reviews.\n---\nReview $1 for ${2:-bugs}; then ${@:3}.";

/// Prompts one after another, and the requests they cause.
fn ask(home: impl FnOnce(&ModelServer) -> TempHome, prompts: &[&str]) -> (TempHome, Vec<Request>) {
    let server = ModelServer::start(prompts.iter().map(|_| reply::text("x")));
    let home = home(&server);
    home.prompt(prompts[0]).args(&prompts[1..]).run().success();
    (home, server.finish())
}

fn equipped(server: &ModelServer) -> TempHome {
    let home = TempHome::with_model(server);
    home.write_agent("skills/tidy/SKILL.md", SKILL);
    home.write_agent("prompts/review.md", TEMPLATE);
    home
}

fn last_of_user(request: &Request) -> String {
    let conversation = request.conversation();
    let (role, text) = conversation.last().expect("there is a message");
    assert_eq!(*role, "user");
    text.clone()
}

fn block(file: &Path) -> String {
    format!(
        "<skill name=\"tidy\" location=\"{}\">\nReferences are relative to {}.\n\n# Tidy\n\nSort by name.\n</skill>",
        file.display(),
        file.parent().expect("it lies in a folder").display()
    )
}

#[test]
fn a_skill_is_named_in_the_prompt_and_sent_as_its_block() {
    // M13, P20, P21
    let (home, requests) = ask(equipped, &["/skill:tidy", "/skill:tidy my desk"]);
    let file = home.agent_dir().join("skills/tidy/SKILL.md");
    let prompt = requests[0].system_prompt();
    for words in [
        "<skills>".to_owned(),
        "<description>Use when files are in disorder.</description>".to_owned(),
        format!("<location>{}</location>", file.display()),
    ] {
        assert!(prompt.contains(&words), "{words} is missing in {prompt}");
    }
    assert_eq!(last_of_user(&requests[0]), block(&file));
    let asked = format!("{}\n\nmy desk", block(&file));
    assert_eq!(last_of_user(&requests[1]), asked);
    assert_eq!(home.stored_messages()[3]["content"][0]["text"], asked);
}

#[test]
fn without_a_tool_that_reads_files_no_skill_is_named() {
    // M13
    let server = ModelServer::start([reply::text("x")]);
    let home = equipped(&server);
    home.prompt("x").args(["--tools", "write"]).run().success();
    assert!(!server.finish()[0].system_prompt().contains("<skills>"));
}

#[test]
fn a_template_takes_its_arguments_and_unknown_words_are_sent_as_they_are() {
    // P26–P28
    let prompts = [
        "/review \"two words\" '' $1 rest",
        "/review a.rs",
        "/nobody here",
        "/skill:nobody here",
    ];
    let (_home, requests) = ask(equipped, &prompts);
    let sent: Vec<String> = requests.iter().map(last_of_user).collect();
    assert_eq!(
        sent,
        [
            "Review two words for bugs; then $1 rest.",
            "Review a.rs for bugs; then .",
            "/nobody here",
            "/skill:nobody here"
        ]
    );
}

#[test]
fn what_is_broken_is_a_warning_and_changes_nothing_else() {
    let server = ModelServer::start([reply::text("Fine."), reply::text("Fine.")]);
    let home = equipped(&server);
    let broken = "---\ndescription: Use when: it breaks\n---\nX";
    home.write_agent("skills/broken/SKILL.md", broken);
    home.write_agent("skills/silent/SKILL.md", "No description.");
    home.write_agent("prompts/broken.md", broken);
    home.write_agent("prompts/binary.md", [0xff, 0xfe]);
    let output = home.prompt("/review a").args(["/broken b"]).run().success();
    let warnings: Vec<&str> = output.stderr.lines().collect();
    assert_eq!(warnings.len(), 4, "{warnings:#?}");
    for (warning, file, why) in [
        (warnings[0], "skills/broken/SKILL.md", "YAML"),
        (warnings[1], "skills/silent/SKILL.md", "no description"),
        (warnings[2], "prompts/binary.md", "cannot be read"),
        (warnings[3], "prompts/broken.md", "YAML"),
    ] {
        assert!(warning.contains(file) && warning.contains(why), "{warning}");
    }
    let requests = server.finish();
    assert!(requests[0].system_prompt().contains("<name>tidy</name>"));
    assert_eq!(last_of_user(&requests[0]), "Review a for bugs; then .");
    assert_eq!(last_of_user(&requests[1]), "/broken b");
}

#[test]
fn flags_name_resources_and_leave_out_those_that_are_found() {
    // interfaces.md §1.2
    let server = ModelServer::start([reply::text("x"), reply::text("x")]);
    let home = equipped(&server);
    home.write("mine/SKILL.md", "---\ndescription: Mine.\n---\nDo mine.");
    home.write("t/greet.md", "Hello, $@!");
    home.prompt("/greet all of you")
        .args(["/review a", "-ns", "--skill", "mine"])
        .args(["--no-prompt-templates", "--prompt-template", "t"])
        .run()
        .success();
    let requests = server.finish();
    let prompt = requests[0].system_prompt();
    assert!(prompt.contains("<name>mine</name>"), "{prompt}");
    assert!(!prompt.contains("<name>tidy</name>"), "{prompt}");
    assert_eq!(last_of_user(&requests[0]), "Hello, all of you!");
    assert_eq!(last_of_user(&requests[1]), "/review a");

    let output = home.prompt("x").args(["--skill", "gone"]).run();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        output.stderr.contains("There is no file or folder"),
        "{}",
        output.stderr
    );
}

#[test]
fn folders_of_other_agents_count_after_the_users_own_and_the_project_not_at_all() {
    // resources.md §2, interfaces.md §3.1
    let template = |server: &ModelServer| {
        let home = TempHome::with_model(server);
        let other = |path: &str, text: &str| {
            let path = home.home_dir().join(path);
            let folder = path.parent().expect("it lies in a folder");
            std::fs::create_dir_all(folder).expect("the home is writable");
            std::fs::write(path, text).expect("the home is writable");
        };
        home.write_agent("prompts/both.md", "Own.");
        other(".pi/agent/prompts/both.md", "Pi's.");
        other(".pi/agent/prompts/pi.md", "Only pi's.");
        other(".agents/skills/shared/SKILL.md", SKILL);
        home.write(".pliant/prompts/project.md", "The project's.");
        home.write(".pi/prompts/project.md", "The project's.");
        home
    };
    let (_home, requests) = ask(template, &["/both", "/pi", "/project"]);
    let sent: Vec<String> = requests.iter().map(last_of_user).collect();
    assert_eq!(sent, ["Own.", "Only pi's.", "/project"]);
    assert!(requests[0].system_prompt().contains("<name>tidy</name>"));
}

#[test]
fn handlers_see_what_was_typed_and_commands_come_first() {
    // P13, P18
    let script = r#"
        register_command("review", #{ description: "Taken.", run: |args, ctx| () });
        on("input", |event, ctx| {
            if event.text.contains("<skill") { return #{ action: "handled" } }
            if event.text == "please tidy" { return #{ action: "transform", text: "/skill:tidy now" } }
        });
    "#;
    let server = ModelServer::start([reply::text("x"), reply::text("x")]);
    let home = equipped(&server);
    let script = home.write_agent("taken.rhai", script).display().to_string();
    home.prompt("/review a")
        .args(["/skill:tidy", "please tidy", "-e", &script])
        .run()
        .success();
    let requests = server.finish();
    let block = block(&home.agent_dir().join("skills/tidy/SKILL.md"));
    assert_eq!(last_of_user(&requests[0]), block);
    assert_eq!(last_of_user(&requests[1]), format!("{block}\n\nnow"));
}

#[test]
fn a_skill_that_breaks_while_the_agent_runs_is_reported_and_the_text_is_sent() {
    // P22
    let server = ModelServer::start([
        reply::text("").and_call(
            "bash",
            json!({"command": "rm -r ~/.pliant/agent/skills/tidy"}),
        ),
        reply::text("Gone."),
        reply::text("x"),
    ]);
    let home = equipped(&server);
    let output = home.prompt("Go.").args(["/skill:tidy"]).run().success();
    assert!(
        output.stderr.contains("The skill \"tidy\" is not used"),
        "{}",
        output.stderr
    );
    let requests = server.finish();
    assert_eq!(last_of_user(&requests[2]), "/skill:tidy");
}
