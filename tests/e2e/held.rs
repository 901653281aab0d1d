//! Two processes and one session: one writes it, the other is told who, and may wait, read or fork
//! (`kernel.md` S18).

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use pliant_tests::{ModelServer, Running, TempHome, reply};

use super::signals::command;

/// A run that has asked the model and waits for the answer, and the session it has.
fn held(server: &ModelServer, home: &TempHome) -> (Running, PathBuf) {
    let running = home.prompt("first").spawn();
    server.wait_for(1);
    let [file] = home.session_files().try_into().expect("it has a session");
    (running, file)
}

/// What the session has of the conversation, by role.
fn roles(home: &TempHome) -> Vec<String> {
    let messages = home.stored_messages();
    let roles = messages
        .iter()
        .filter_map(|message| message["role"].as_str());
    let roles = roles.filter(|role| *role != "system");
    roles.map(str::to_owned).collect()
}

#[test]
fn a_prompt_is_stored_before_the_model_is_asked() {
    // reports S06
    let server = ModelServer::start([reply::hold()]);
    let home = TempHome::with_model(&server);
    let (running, file) = held(&server, &home);
    running.signal(libc::SIGKILL);
    drop(running.wait());
    assert_eq!(home.session_files(), [file]);
    assert_eq!(home.session()[0]["type"], "session");
    assert_eq!(roles(&home), ["user"]);
    server.finish();
}

#[test]
fn who_comes_second_is_told_who_has_the_session_and_changes_nothing() {
    let server = ModelServer::start([reply::hold()]);
    let home = TempHome::with_model(&server);
    let (running, file) = held(&server, &home);
    let before = fs::read(&file).expect("the session is there");
    let owner = format!("process {}", running.id());
    for mode in [home.prompt("second"), home.json_prompt("second")] {
        let output = mode.args(["--continue"]).run();
        let words = [&*owner, "is open in", "--wait", "--read-only", "--fork"];
        assert_eq!(output.failure(&words).stdout, "");
    }
    assert_eq!(fs::read(&file).expect("the session is there"), before);
    server.finish();
}

#[test]
fn who_waits_goes_on_when_the_other_has_ended() {
    let server = ModelServer::start([reply::hold(), reply::text("Here I am.")]);
    let home = TempHome::with_model(&server);
    let (running, file) = held(&server, &home);
    let mut second = command(&home, &["-p", "second", "--continue", "--wait"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary was built");
    let stderr = second.stderr.take().expect("it is piped");
    let mut told = BufReader::new(stderr).lines().map_while(Result::ok);
    // The first one must not end before the second has found it.
    let waits = told.find(|line| line.contains("Waiting"));
    let waits = waits.expect("it tells that it waits");
    let owner = format!("process {}", running.id());
    assert!(waits.contains(&owner), "{waits}");
    running.signal(libc::SIGTERM);
    drop(running.wait());
    let output = second.wait_with_output().expect("it is ours");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"Here I am.\n");
    assert_eq!(told.collect::<String>(), "");
    assert_eq!(home.session_files(), std::slice::from_ref(&file));
    assert_eq!(roles(&home), ["user", "assistant", "user", "assistant"]);
    let left = fs::read_dir(file.parent().expect("it is in a folder")).expect("it is there");
    assert_eq!(left.count(), 1, "no lease stays");
    server.finish();
}

#[test]
fn a_dead_owners_session_is_taken_over() {
    let server = ModelServer::start([reply::hold(), reply::text("Here I am.")]);
    let home = TempHome::with_model(&server);
    let (running, _) = held(&server, &home);
    running.signal(libc::SIGKILL);
    drop(running.wait());
    let output = home.prompt("second").args(["--continue"]).run().success();
    assert_eq!((&*output.stdout, &*output.stderr), ("Here I am.\n", ""));
    assert_eq!(roles(&home), ["user", "user", "assistant"]);
    server.finish();
}

#[test]
fn a_held_session_can_be_read_and_forked() {
    let replies = [reply::hold(), reply::text("Read."), reply::text("Forked.")];
    let server = ModelServer::start(replies);
    let home = TempHome::with_model(&server);
    let (running, file) = held(&server, &home);
    let before = fs::read(&file).expect("the session is there");
    let name = file.display().to_string();

    let read = ["--session", &name, "--read-only"];
    let output = home.prompt("second").args(read).run().success();
    assert_eq!(output.stdout, "Read.\n");
    assert!(
        output
            .stderr
            .contains("nothing that is said from now on is stored")
    );
    assert_eq!(home.session_files().len(), 1);

    let fork = ["--fork", &name];
    let output = home.prompt("third").args(fork).run().success();
    assert_eq!((&*output.stdout, &*output.stderr), ("Forked.\n", ""));
    assert_eq!(home.session_files().len(), 2);
    assert_eq!(fs::read(&file).expect("the session is there"), before);
    let requests = server.requests();
    let said = |at: usize| -> Vec<String> {
        let conversation = requests[at].conversation();
        conversation.into_iter().map(|(_, text)| text).collect()
    };
    assert_eq!(said(1), ["first", "second"]);
    assert_eq!(said(2), ["first", "third"]);
    drop(running);
    server.finish();
}

#[test]
fn an_id_of_another_directory_is_not_continued_here_but_forked() {
    let server = ModelServer::start([reply::text("One."), reply::text("Two.")]);
    let home = TempHome::with_model(&server);
    home.prompt("first").run().success();
    let id = home.session()[0]["id"]
        .as_str()
        .expect("it has an id")
        .to_owned();
    let elsewhere = home.project_dir().join("sub");
    fs::create_dir(&elsewhere).expect("the project is writable");
    let there = || home.prompt("second").current_dir(&elsewhere);
    let refused = there().args(["--session", &id]).run();
    refused.failure(&["belongs to", "--fork"]);
    let output = there().args(["--fork", &id]).run().success();
    assert_eq!(output.stdout, "Two.\n");
    assert_eq!(home.session_files().len(), 2);
    server.finish();
}
