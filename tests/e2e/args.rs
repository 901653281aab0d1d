//! The command line as a whole: which words are prompts, options, files and commands, and what each
//! wrong one is told (`interfaces.md` §1).

use std::fs;

use pliant_tests::{MODEL, ModelServer, PROVIDER, Reply, TempHome, reply, workspace};
use serde_json::{Value, json};

use super::line::Talk;

/// What the first request of a run with these arguments says, and declares as tools.
fn asked(args: &[&str]) -> (String, Vec<String>) {
    let server = ModelServer::start([reply::text("x")]);
    let home = TempHome::with_model(&server);
    let run = home.pliant_with_model().args(args).run();
    run.success();
    let request = &server.finish()[0];
    let said = request.conversation();
    let tools = request.tools().into_iter().map(str::to_owned).collect();
    (said[0].1.clone(), tools)
}

/// Runs arguments that cannot be meant; nothing may be asked.
#[track_caller]
fn refused(args: &[&str], words: &[&str]) {
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let output = home.pliant().args(args).run().failure(words);
    assert_eq!(output.stdout, "");
    assert!(home.session_files().is_empty());
    assert!(server.finish().is_empty());
}

#[test]
fn an_option_that_nobody_knows_is_a_mistake() {
    // interfaces §1.1
    refused(&["-q", "-p", "x"], &["-q"]);
    refused(&["-p", "x", "--modle", "y"], &["--modle", "--model"]);
    refused(&["-p", "x", "--plan"], &["--plan", "no extension"]);
    refused(&["--mode", "xml", "x"], &["--mode", "json"]);
    refused(&["-p", "x", "-t", "read,+grep"], &["--tools"]);
    refused(
        &["-p", "x", "--provider", PROVIDER],
        &["--provider", "--model"],
    );
    refused(&["-p", "x", "--api-key", "k"], &["--api-key", "--model"]);
    refused(
        &["-p", "x", "--session-id", "end-"],
        &["--session-id", "end-"],
    );
    refused(&["-p", "x", "-n", " "], &["--name"]);
}

#[test]
fn a_wrong_thinking_level_is_a_warning() {
    // interfaces §1.1
    let server = ModelServer::start([reply::text("x")]);
    let home = TempHome::with_model(&server);
    let run = home.prompt("x").args(["--thinking", "deeply"]);
    let output = run.run().success();
    assert!(
        output.stderr.starts_with("Warning: ") && output.stderr.contains("deeply"),
        "{output:#?}"
    );
    server.finish();
}

#[test]
fn a_prompt_may_look_like_an_option() {
    // interfaces §1.1
    let matter = "---\nname: x\n---\nDo it.";
    assert_eq!(asked(&["-p", matter]).0, matter);
    assert_eq!(asked(&["-p", "--", "-n"]).0, "-n");
    assert_eq!(asked(&["--", "list"]).0, "list");
    assert_eq!(asked(&["list my files"]).0, "list my files");
}

#[test]
fn tools_are_chosen_by_short_options_too() {
    // interfaces §1.2
    let tools = |args: &[&str]| {
        let mut tools = asked(&[args, &["-p", "x"]].concat()).1;
        tools.sort_unstable();
        tools
    };
    assert_eq!(
        tools(&["-t", "+grep,-write"]),
        ["bash", "edit", "grep", "read"]
    );
    assert_eq!(tools(&["-xt", "*i*"]), ["bash", "read"]);
    assert!(tools(&["-nbt"]).is_empty());
    assert_eq!(tools(&["-nt", "-t", "ls,find"]), ["find", "ls"]);
}

#[test]
fn a_tool_that_does_not_exist_is_a_warning() {
    let server = ModelServer::start([reply::text("x")]);
    let home = TempHome::with_model(&server);
    let run = home.prompt("x").args(["--tools", "read,raed"]);
    let output = run.run().success();
    assert!(output.stderr.contains("raed"), "{output:#?}");
    assert_eq!(server.finish()[0].tools(), ["read"]);
}

#[test]
fn options_without_an_effect_here_are_accepted() {
    // interfaces §1.2
    let options = [
        "--offline",
        "--verbose",
        "--no-mcp",
        "--no-themes",
        "--use-theme",
        "light/dark",
        "--tui-mode",
        "regular",
        "-nc",
    ];
    assert_eq!(asked(&[&options[..], &["-p", "x"]].concat()).0, "x");
}

#[test]
fn a_theme_is_a_file_that_is_there_and_chosen_by_a_name_or_two() {
    // interfaces §1.2, resources §2
    refused(
        &["--theme", "gone.json", "-p", "x"],
        &["gone.json", "which the command line names as a theme"],
    );
    refused(&["--use-theme", "a/b/c", "-p", "x"], &["light/dark"]);
}

#[test]
fn a_command_that_does_not_exist_yet_is_no_prompt() {
    refused(&["acp", "x"], &["acp", "--"]);
    refused(&["completions"], &["bash"]);
    refused(&["completions", "cmd"], &["cmd", "bash"]);
}

#[test]
fn completions_know_options_and_commands() {
    let home = TempHome::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = home.pliant().args(["completions", shell]).run().success();
        for word in ["append-system-prompt", "session", "doctor", "completions"] {
            assert!(output.stdout.contains(word), "{word} is not for {shell}");
        }
        assert_eq!(output.stderr, "");
    }
}

const FLAGS: &str = r#"
register_flag("plan", #{ description: "Plan first." });
register_flag("tone", #{ kind: "string", default_value: "plain" });
let at_load = flag("tone");
on("input", |event, ctx| {
    #{ action: "transform", text: `${event.text} ${flag("plan")} ${ctx.flag("tone")} ${flag("other")}` }
});
"#;

/// What the model is asked by a run with an extension that declares flags.
fn with_flags(args: &[&str]) -> String {
    let home = TempHome::new();
    let script = home.write_agent("x.rhai", FLAGS).display().to_string();
    asked(&[&["-e", &script], args].concat()).0
}

#[test]
fn an_extension_reads_the_flags_that_it_declared() {
    // extensions §4.6
    assert_eq!(with_flags(&["-p", "x"]), "x  plain ");
    assert_eq!(
        with_flags(&["-p", "--plan", "x", "--tone=dry"]),
        "x true dry "
    );
    assert_eq!(
        with_flags(&["--tone", "dry", "--plan", "-p", "x"]),
        "x true dry "
    );
    let home = TempHome::new();
    let script = home.write_agent("x.rhai", FLAGS).display().to_string();
    refused(&["-e", &script, "-p", "x", "--tone"], &["--tone", "value"]);
}

#[test]
fn the_help_shows_the_flags_of_extensions() {
    // interfaces §1.1, extensions §4.6
    let home = TempHome::new();
    let script = home.write_agent("x.rhai", FLAGS).display().to_string();
    for words in [&["--help"][..], &["-h", "--model", "none", "x"], &["help"]] {
        let run = match words {
            ["help"] => home.pliant().args(words),
            _ => home.pliant().args(["-e", &script]).args(words),
        };
        let output = run.run().success();
        assert!(
            output.stdout.contains("--append-system-prompt"),
            "{output:#?}"
        );
        assert_eq!(
            output.stdout.contains("Plan first."),
            words != ["help"],
            "{output:#?}"
        );
    }
}

#[test]
fn a_flag_that_two_extensions_declare_is_that_of_the_first() {
    // extensions §4.12
    let server = ModelServer::start([reply::text("x")]);
    let home = TempHome::with_model(&server);
    let declare = "register_flag(\"plan\", #{});";
    let a = home.write_agent("a.rhai", declare).display().to_string();
    let b = home.write_agent("b.rhai", declare).display().to_string();
    let run = home.prompt("x").args(["-e", &a, "-e", &b, "--plan"]);
    let output = run.run().success();
    let told =
        |line: &str| line.contains("--plan") && line.contains("a.rhai") && line.contains("b.rhai");
    assert!(output.stderr.lines().any(told), "{output:#?}");
    server.finish();
}

#[test]
fn a_flag_whose_default_is_of_another_type_keeps_the_script_out() {
    // extensions §4.6
    let home = TempHome::new();
    let script = "register_flag(\"plan\", #{ default_value: \"yes\" });";
    let script = home.write_agent("x.rhai", script).display().to_string();
    refused(&["-e", &script, "-p", "x"], &["plan", "default"]);
}

#[test]
fn a_session_has_the_id_and_the_name_it_is_given() {
    // interfaces §1.2
    let server = ModelServer::start(["a", "b", "c"].map(reply::text));
    let home = TempHome::with_model(&server);
    let run = |more: &[&str]| home.prompt("x").args(more).run();
    let output = run(&["--session-id", "job-42", "--name", " The job "]).success();
    assert!(
        output.stderr.starts_with("Warning: ") && output.stderr.contains("job-42"),
        "{output:#?}"
    );
    assert_eq!(run(&["--session-id", "job-42"]).success().stderr, "");
    let entries = home.session();
    assert_eq!(entries[0]["id"], "job-42");
    let names: Vec<&Value> = entries
        .iter()
        .filter(|entry| entry["type"] == "session_info")
        .collect();
    assert_eq!((names.len(), &names[0]["name"]), (1, &json!("The job")));
    // The id of a copy must be free.
    run(&["--fork", "job-42", "--session-id", "job-42"]).failure(&["job-42"]);
    run(&["--fork", "job-42", "--session-id", "job-43"]).success();
    let copies = home.session_files();
    assert!(
        copies
            .iter()
            .any(|file| file.display().to_string().ends_with("_job-43.jsonl")),
        "{copies:?}"
    );
    server.finish();
}

#[test]
fn sessions_are_where_the_command_line_says() {
    // interfaces §1.2
    let server = ModelServer::start(["a", "b", "c"].map(reply::text));
    let home = TempHome::with_model(&server);
    let run = |more: &[&str]| {
        home.prompt("x")
            .args(["--session-dir", "kept"])
            .args(more)
            .run()
            .success()
    };
    run(&[]);
    run(&["-c"]);
    let kept = fs::read_dir(home.project_dir().join("kept")).expect("the folder is there");
    assert_eq!(kept.count(), 1);
    assert!(home.session_files().is_empty());
    run(&["-c", "--no-session"]);
    assert_eq!(server.finish()[2].conversation().len(), 1);
}

#[test]
fn a_log_has_no_keys_in_it() {
    let server = ModelServer::start([
        reply::tool_call("bash", json!({"command": "echo $SOME_API_KEY"})),
        reply::text("x"),
        reply::text("x"),
    ]);
    let home = TempHome::with_model(&server);
    let log = home.tmp_dir().join("log").display().to_string();
    let run = home.prompt("x").env("PLIANT_LOG", "trace");
    let run = run.args(["--log-file", &log, "--api-key", "key-of-this-run"]);
    run.run().success();
    let log = fs::read_to_string(log).expect("a log was asked for");
    let on_stderr = home.prompt("x").env("PLIANT_LOG", "trace");
    let on_stderr = on_stderr
        .args(["--api-key", "key-of-this-run"])
        .run()
        .success();
    assert_eq!(on_stderr.stdout, "x\n");
    for log in [log, on_stderr.stderr] {
        assert!(log.contains("DEBUG"), "{log}");
        for secret in ["key-of-this-run", "test-key", "Bearer"] {
            assert!(!log.contains(secret), "{secret} is in the log");
        }
    }
    let requests = server.finish();
    assert_eq!(
        requests[0].header("authorization"),
        Some("Bearer key-of-this-run")
    );
}

#[test]
fn without_a_prompt_the_last_answer_is_printed_again() {
    let server = ModelServer::start([reply::text("The answer.")]);
    let home = TempHome::with_model(&server);
    assert_eq!(home.prompt("x").run().success().stdout, "The answer.\n");
    let output = home.pliant_with_model().args(["-c", "-p"]).run().success();
    assert_eq!(output.stdout, "The answer.\n");
    let output = home.pliant_with_model().args(["-p"]).run().success();
    assert_eq!(output.stdout, "");
    assert!(output.stderr.contains("no prompt"), "{output:#?}");
    server.finish();
}

/// A picture of one pixel.
fn picture() -> Vec<u8> {
    let file = workspace().join("tests/fixtures/pixel.png");
    fs::read(file).expect("the fixture is there")
}

/// A model that takes pictures.
fn with_eyes(server: &ModelServer) -> TempHome {
    let home = TempHome::with_model(server);
    home.models(json!({PROVIDER: {
        "baseUrl": server.url(), "api": "openai-completions", "apiKey": "test-key",
        "models": [{"id": MODEL, "input": ["text", "image"]}],
    }}));
    home
}

fn answers<const N: usize>() -> [Reply; N] {
    std::array::from_fn(|_| reply::text("x"))
}

#[test]
fn the_first_prompt_is_what_is_piped_in_then_files_then_the_first_message() {
    // interfaces §1.3
    let server = ModelServer::start(answers::<2>());
    let home = TempHome::with_model(&server);
    let a = home.write("a.md", "\u{feff}text of a\n");
    let b = home.write("sub/b.md", "text of b");
    home.write("empty.md", "");
    let run = home.pliant_with_model().stdin("\n piped \n");
    let run = run.args(["@a.md", "one", "@empty.md", "two", "@sub/b.md"]);
    run.run().success();
    let requests = server.finish();
    let first = format!(
        "piped<file name=\"{}\">\ntext of a\n\n</file>\n<file name=\"{}\">\ntext of b\n</file>\none",
        a.display(),
        b.display()
    );
    assert_eq!(requests[0].conversation(), [("user", first)]);
    assert_eq!(requests[1].conversation()[2], ("user", "two".to_owned()));
}

#[test]
fn a_picture_is_attached_whatever_its_name_is() {
    // interfaces §1.3
    let server = ModelServer::start(answers::<1>());
    let home = with_eyes(&server);
    let file = home.write("picture.txt", picture());
    let run = home
        .pliant_with_model()
        .args(["-p", "@picture.txt", "What is it?"]);
    run.run().success();
    let user = home
        .stored_messages()
        .into_iter()
        .find(|message| message["role"] == "user");
    let content = user.expect("the prompt is stored")["content"].take();
    let text = format!("<file name=\"{}\"></file>\nWhat is it?", file.display());
    assert_eq!(content[0], json!({"type": "text", "text": text}));
    assert_eq!(
        (&content[1]["type"], &content[1]["mimeType"]),
        (&json!("image"), &json!("image/png"))
    );
    let sent = server.finish()[0].body.to_string();
    assert!(sent.contains("data:image/png;base64,iVBOR"), "{sent}");
}

#[test]
fn a_picture_alone_is_a_prompt() {
    let server = ModelServer::start(answers::<1>());
    let home = with_eyes(&server);
    home.write("p.png", picture());
    home.pliant_with_model()
        .args(["-p", "@p.png"])
        .run()
        .success();
    assert!(server.finish()[0].body.to_string().contains("base64"));
}

#[test]
fn what_cannot_be_attached_is_told_before_anything_is_sent() {
    // interfaces §1.3
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    home.write("binary", [0x7f, b'E', b'L', b'F', 0, 1]);
    home.write("dir/x", "");
    let pipe = home.project_dir().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo is there").success());
    let huge = fs::File::create(home.project_dir().join("huge")).expect("it can be made");
    huge.set_len(1 << 40).expect("holes cost nothing");
    let picture = picture();
    home.write("half.png", &picture[..picture.len() / 2]);
    for (name, words) in [
        ("half.png", "end is missing"),
        ("missing", "missing"),
        ("binary", "neither a text nor a picture"),
        ("dir", "directory"),
        ("pipe", "no regular file"),
        ("huge", "16 MB"),
    ] {
        let file = format!("@{name}");
        let output = home.pliant_with_model().args(["-p", &file, "x"]).run();
        output.failure(&[name, words]);
    }
    assert!(home.session_files().is_empty());
    server.finish();
}

#[test]
fn a_text_in_another_encoding_is_shown_as_far_as_it_can_be_read() {
    let server = ModelServer::start(answers::<1>());
    let home = TempHome::with_model(&server);
    home.write("latin.txt", b"caf\xe9");
    let run = home.pliant_with_model().args(["-p", "@latin.txt"]);
    let output = run.run().success();
    assert!(output.stderr.contains("UTF-8"), "{output:#?}");
    let said = server.finish()[0].conversation()[0].1.clone();
    assert!(said.contains("caf\u{fffd}"), "{said}");
}

#[test]
fn a_file_has_its_shortest_name_and_may_be_in_the_home() {
    let server = ModelServer::start(answers::<1>());
    let home = TempHome::with_model(&server);
    home.write("dir/x", "");
    let a = home.write("a.md", "a");
    fs::write(home.home_dir().join("h.md"), "h").expect("the home is there");
    let run = home
        .pliant_with_model()
        .args(["-p", "@dir/../a.md", "@~/h.md"]);
    run.run().success();
    let said = server.finish()[0].conversation()[0].1.clone();
    let h = home.home_dir().join("h.md");
    let wanted = [a, h].map(|file| format!("<file name=\"{}\">", file.display()));
    assert!(wanted.iter().all(|wanted| said.contains(wanted)), "{said}");
}

#[test]
fn a_named_session_begins_like_any_other() {
    // V3
    let server = ModelServer::start(answers::<1>());
    let home = TempHome::with_model(&server);
    home.prompt("x").args(["--name", "N"]).run().success();
    let kinds: Vec<_> = home
        .session()
        .iter()
        .map(|entry| entry["type"].clone())
        .collect();
    assert_eq!(
        kinds[1..4],
        ["session_info", "model_change", "thinking_level_change"]
    );
    server.finish();
}

#[test]
fn a_model_that_its_provider_does_not_list_is_asked_for_all_the_same() {
    let server = ModelServer::start(answers::<2>());
    let home = TempHome::with_model(&server);
    for model in [
        &["--model", "mock/brand-new"][..],
        &["--provider", PROVIDER, "--model", "brand-new:high"],
    ] {
        let output = home.pliant().args(model).args(["-p", "x"]).run().success();
        assert!(output.stderr.contains("brand-new"), "{output:#?}");
    }
    let requests = server.finish();
    assert!(
        requests
            .iter()
            .all(|request| request.body["model"] == "brand-new")
    );
    assert_eq!(requests[1].body["reasoning_effort"], "high");
}

#[test]
fn the_key_of_the_command_line_needs_a_model_to_be_for() {
    // interfaces §1.2
    let server = ModelServer::start(answers::<1>());
    let home = TempHome::with_model(&server);
    let run = |models: &str| {
        home.pliant()
            .args(["--api-key", "k", "--models", models, "-p", "x"])
            .run()
    };
    run("zork").failure(&["zork"]);
    run("mock*").success();
    assert_eq!(server.finish()[0].header("authorization"), Some("Bearer k"));
}

#[test]
fn a_session_is_not_asked_for_where_nobody_answers() {
    refused(
        &["--resume", "-p", "x"],
        &["--resume", "--session", "--continue"],
    );
}

#[test]
fn extensions_are_left_out_but_for_those_that_are_named() {
    // interfaces §1.2
    let home = TempHome::new();
    home.write_agent("extensions/own.rhai", "throw \"not today\";");
    let listed = |args: &[&str]| home.pliant().args(["--list-models"]).args(args).run();
    let output = listed(&["-ne"]).success();
    assert!(
        !output.stdout.contains("guide") && output.stderr.is_empty(),
        "{output:#?}"
    );
    let output = listed(&["-ne", "-e", "builtin:guide"]).success();
    assert!(output.stdout.contains("guide"), "{output:#?}");
    listed(&["-e", "builtin:nothing"]).failure(&["nothing", "guide"]);
}

#[test]
fn a_terminal_is_asked_which_session_goes_on() {
    // interfaces §1.2
    let server = ModelServer::start(answers::<2>());
    let home = TempHome::with_model(&server);
    home.prompt("The older one.").run().success();
    home.prompt("x")
        .args(["-n", "The newer one"])
        .run()
        .success();
    let mut talk = Talk::start(&home, &["--resume"]);
    talk.shows_in_the_end("  1  ", "Which one (a number, or q to leave)? ");
    talk.keys("3\n2\n");
    talk.shows_in_the_end("", "ends.\n> ");
    talk.keys("/quit\n");
    talk.ends(0);
    assert_eq!(home.session_files().len(), 2);
    server.finish();
}

#[test]
fn a_terminal_is_asked_whether_a_session_of_another_directory_is_copied() {
    // interfaces §1.2
    let server = ModelServer::start(answers::<1>());
    let home = TempHome::with_model(&server);
    let elsewhere = home.write("sub/x", "");
    let run = home.prompt("x").args(["--session-id", "there"]);
    run.current_dir(elsewhere.parent().expect("it is in a folder"))
        .run()
        .success();
    let run = home.prompt("x").args(["--session", "there"]).run();
    run.failure(&["there", "--fork"]);
    for (answer, files) in [("n\n", 1), ("y\n", 2)] {
        let mut talk = Talk::start(&home, &["--session", "the"]);
        talk.shows_in_the_end("Warning: The session the", "[y/N] ");
        talk.keys(answer);
        if files == 2 {
            talk.shows_in_the_end("", "ends.\n> ");
            talk.keys("/quit\n");
        }
        talk.ends(if files == 1 { 1 } else { 0 });
        assert_eq!(home.session_files().len(), files);
    }
    server.finish();
}
