//! The session file: what a run leaves behind, and what the next one makes of it.

use std::fs;
use std::path::PathBuf;
use std::slice;

use pliant_tests::{ModelServer, Request, TempHome, reply};
use serde_json::{Value, json};

/// A home with one finished run, and the session it left.
fn after_a_run(server: &ModelServer) -> (TempHome, PathBuf) {
    let home = TempHome::with_model(server);
    home.write("a.txt", "alpha\n");
    home.prompt("What is in a.txt?").run().success();
    let [file] = home
        .session_files()
        .try_into()
        .expect("a run leaves one session");
    (home, file)
}

fn first_run() -> [pliant_tests::Reply; 2] {
    [
        reply::tool_call("read", json!({"path": "a.txt"})),
        reply::text("It says alpha."),
    ]
}

/// The conversation of the second run's request, results of tools cut to their first word.
fn spoken(request: &Request) -> Vec<(String, String)> {
    let conversation = request.conversation().into_iter();
    conversation
        .map(|(role, text)| {
            let text = if role == "tool" {
                text.trim().to_owned()
            } else {
                text
            };
            (role.to_owned(), text)
        })
        .collect()
}

fn pairs(wanted: &[(&str, &str)]) -> Vec<(String, String)> {
    wanted
        .iter()
        .map(|(role, text)| ((*role).to_owned(), (*text).to_owned()))
        .collect()
}

const CONTINUED: &[(&str, &str)] = &[
    ("user", "What is in a.txt?"),
    ("assistant", ""),
    ("tool", "alpha"),
    ("assistant", "It says alpha."),
    ("user", "Are you sure?"),
];

#[test]
fn a_run_leaves_its_messages_in_a_file_of_the_directory() {
    let server = ModelServer::start(first_run());
    let (home, file) = after_a_run(&server);
    let folder = file
        .parent()
        .and_then(|folder| folder.file_name())
        .expect("it is in a folder");
    let cwd = home.project_dir().display().to_string();
    let encoded = format!("--{}--", cwd.trim_start_matches('/').replace('/', "-"));
    assert_eq!(folder.to_string_lossy(), encoded);

    let lines = home.session();
    assert_eq!(
        (&lines[0]["type"], &lines[0]["version"], &lines[0]["cwd"]),
        (&json!("session"), &json!(3), &json!(cwd))
    );
    let name = file
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let id = lines[0]["id"].as_str().expect("a session has an id");
    assert!(name.is_some_and(|name| name.ends_with(&format!("_{id}.jsonl"))));

    let mut parent = Value::Null;
    for entry in &lines[1..] {
        assert_eq!(entry["parentId"], parent, "{entry}");
        parent = entry["id"].clone();
    }
    let messages = home.stored_messages();
    let roles: Vec<_> = messages
        .iter()
        .filter_map(|message| message["role"].as_str())
        .collect();
    let spoken: Vec<_> = roles.into_iter().filter(|role| *role != "system").collect();
    assert_eq!(spoken, ["user", "assistant", "toolResult", "assistant"]);
    server.finish();
}

#[test]
fn a_continued_session_sends_what_was_said_before() {
    let again = reply::text("I am.");
    let server = ModelServer::start(first_run().into_iter().chain([again]));
    let (home, file) = after_a_run(&server);
    let before = fs::read(&file).expect("the session is there");
    let output = home
        .prompt("Are you sure?")
        .args(["--continue"])
        .run()
        .success();
    assert_eq!(output.stdout, "I am.\n");

    assert_eq!(home.session_files(), slice::from_ref(&file));
    let after = fs::read(&file).expect("the session is there");
    assert!(
        after.starts_with(&before),
        "earlier bytes stay as they were"
    );
    let requests = server.finish();
    assert_eq!(spoken(&requests[2]), pairs(CONTINUED));
}

#[test]
fn a_session_is_found_by_path_by_id_and_by_the_beginning_of_its_id() {
    let ways: [fn(&TempHome, &str) -> String; 3] = [
        |home, _| home.session_files()[0].display().to_string(),
        |_, id| id.to_owned(),
        |_, id| id[..13].to_owned(),
    ];
    for way in ways {
        let again = reply::text("I am.");
        let server = ModelServer::start(first_run().into_iter().chain([again]));
        let (home, _) = after_a_run(&server);
        let header = &home.session()[0];
        let name = way(&home, header["id"].as_str().expect("a session has an id"));
        home.prompt("Are you sure?")
            .args(["--session", &name])
            .run()
            .success();
        assert_eq!(home.session_files().len(), 1);
        assert_eq!(spoken(&server.finish()[2]), pairs(CONTINUED));
    }
}

#[test]
fn without_a_session_nothing_is_left() {
    let server = ModelServer::start([reply::text("x")]);
    let home = TempHome::with_model(&server);
    home.prompt("x").args(["--no-session"]).run().success();
    assert!(home.session_files().is_empty());
    server.finish();
}

#[test]
fn a_new_run_is_a_new_session_and_continue_takes_the_newest() {
    let replies = ["one", "two", "three"].map(reply::text);
    let server = ModelServer::start(replies);
    let home = TempHome::with_model(&server);
    home.prompt("first").run().success();
    home.prompt("second").run().success();
    assert_eq!(home.session_files().len(), 2);
    home.prompt("third").args(["--continue"]).run().success();
    assert_eq!(home.session_files().len(), 2);
    let wanted = pairs(&[("user", "second"), ("assistant", "two"), ("user", "third")]);
    assert_eq!(spoken(&server.finish()[2]), wanted);
}

#[test]
fn a_torn_last_line_and_unknown_entries_cost_nothing_else() {
    let again = reply::text("I am.");
    let server = ModelServer::start(first_run().into_iter().chain([again]));
    let (home, file) = after_a_run(&server);
    let mut torn = fs::read_to_string(&file).expect("the session is text");
    let leaf = home.session().last().map(|entry| entry["id"].clone());
    let unknown = json!({"type": "from_the_future", "id": "0badcafe", "parentId": leaf,
        "timestamp": "2026-01-01T00:00:00.000Z", "kept": [1, 2]});
    torn += &format!("{unknown}\n{{\"type\":\"message\",\"id\":\"dead");
    fs::write(&file, &torn).expect("the session is writable");

    home.prompt("Are you sure?")
        .args(["--continue"])
        .run()
        .success();
    let after = fs::read_to_string(&file).expect("the session is text");
    assert!(after.starts_with(&torn), "what is not understood stays");
    assert!(
        after[torn.len()..].starts_with('\n'),
        "the torn line is closed first"
    );
    assert_eq!(spoken(&server.finish()[2]), pairs(CONTINUED));
}
