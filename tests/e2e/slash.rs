//! Slash words and shell commands of the plain prompt (`interfaces.md` §12).

use pliant_tests::{ModelServer, TempHome, reply};
use serde_json::json;

use super::line::{GREETING, Talk};

fn two_answers() -> (ModelServer, TempHome) {
    let server = ModelServer::start([reply::text("First."), reply::text("Second.")]);
    let home = TempHome::with_model(&server);
    (server, home)
}

#[test]
fn a_shell_command_joins_the_next_prompt_unless_it_is_private() {
    let server = ModelServer::start([reply::text("First.")]);
    let home = TempHome::with_model(&server);
    let mut talk = Talk::start(&home, &[]);
    let mut shown = format!("{GREETING}> ");
    talk.shows(&shown);
    for (keys, says) in [
        ("!echo seen\n", "!echo seen\nseen\n> "),
        ("!!echo private\n", "!!echo private\nprivate\n> "),
        ("!exit 3\n", "!exit 3\n[exit code 3]\n> "),
        ("hi\n", "hi\nFirst.\n> "),
    ] {
        talk.keys(keys);
        shown.push_str(says);
        talk.shows(&shown);
    }
    talk.keys("/quit\n");
    talk.ends(0);
    let requests = server.finish();
    let sent = json!(requests[0].messages()).to_string();
    assert!(sent.contains("Ran `echo seen`"), "{sent}");
    assert!(!sent.contains("private"), "{sent}");
}

#[test]
fn another_session_takes_the_place_of_the_open_one_and_the_first_is_taken_up_again() {
    let (server, home) = two_answers();
    let mut talk = Talk::start(&home, &["--name", "one", "alpha"]);
    talk.shows_in_the_end(GREETING, "> alpha\nFirst.\n> ");
    talk.keys("/new\n");
    talk.shows_in_the_end(GREETING, "]\n> ");
    talk.keys("beta\n");
    talk.shows_in_the_end(GREETING, "beta\nSecond.\n> ");
    talk.keys("/resume\n");
    talk.shows_in_the_end(GREETING, "  one\n[/resume NUMBER goes on with one]\n> ");
    talk.keys("/resume 1\n");
    talk.shows_in_the_end(GREETING, "/resume 1\n[session one]\n> ");
    talk.keys("/name other\n");
    talk.shows_in_the_end(GREETING, "[named other]\n> ");
    talk.keys("/session\n");
    talk.shows_in_the_end(GREETING, "\n> ");
    talk.keys("/quit\n");
    talk.ends(0);
    let requests = server.finish();
    let sent = json!(requests[1].messages()).to_string();
    assert!(sent.contains("beta") && !sent.contains("alpha"), "{sent}");
    assert_eq!(home.session_files().len(), 2);
}

#[test]
fn a_place_of_the_tree_is_gone_to_labelled_forked_and_copied() {
    let (server, home) = two_answers();
    let mut talk = Talk::start(&home, &["alpha"]);
    talk.shows_in_the_end(GREETING, "> alpha\nFirst.\n> ");
    let stored = home.session();
    let said = stored
        .iter()
        .find(|entry| entry["message"]["role"] == "user")
        .expect("it was stored");
    let id = said["id"].as_str().expect("entries have ids").to_owned();
    talk.keys(&format!("/label {id} start\n"));
    talk.shows_in_the_end(GREETING, " start\n> ");
    talk.keys("/tree\n");
    talk.shows_in_the_end(GREETING, &format!("* {id}  (start) alpha\n> "));
    talk.keys(&format!("/tree {id}\n"));
    talk.shows_in_the_end(GREETING, "[what you said there:]\nalpha\n> ");
    talk.keys("gamma\n");
    talk.shows_in_the_end(GREETING, "gamma\nSecond.\n> ");
    talk.keys("/clone\n");
    talk.shows_in_the_end(GREETING, "]\n> ");
    talk.keys("/tree nowhere\n");
    talk.shows_in_the_end(
        GREETING,
        "Error: No entry begins with \"nowhere\"; /tree lists them.\n> ",
    );
    talk.keys("/export page.html\n");
    talk.shows_in_the_end(GREETING, "[exported to page.html]\n> ");
    talk.keys("/quit\n");
    talk.ends(0);
    let requests = server.finish();
    let sent = json!(requests[1].messages()).to_string();
    assert!(sent.contains("gamma") && !sent.contains("alpha"), "{sent}");
    assert_eq!(home.session_files().len(), 2);
    assert!(home.project_dir().join("page.html").is_file());
}
