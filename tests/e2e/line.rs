//! The plain prompt on a terminal: what stands there, in which order, and how it ends.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread;

use pliant_tests::{ModelServer, TempHome, reply};
use serde_json::json;

use super::signals::{command, send, until};

pub(super) const GREETING: &str = "pliant, with mock/mock-model. Ctrl-C stops an answer; /help lists the commands; /quit or Ctrl-D ends.\n";

/// The binary on a terminal of its own. Dropping it kills it.
pub(super) struct Talk {
    child: Child,
    keys: File,
    shown: Arc<Mutex<String>>,
}

impl Talk {
    pub(super) fn start(home: &TempHome, arguments: &[&str]) -> Self {
        Self::with(command(home, arguments))
    }

    pub(super) fn with(mut command: Command) -> Self {
        let (keys, terminal) = terminal();
        let copy = || terminal.try_clone().expect("a terminal can be shared");
        let child = command.stdin(copy()).stdout(copy()).stderr(copy()).spawn();
        let shown = Arc::new(Mutex::new(String::new()));
        let mut screen = keys.try_clone().expect("a terminal can be shared");
        let seen = Arc::clone(&shown);
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let mut some = [0; 1024];
            // A terminal that nobody has open any more cannot be read.
            while let Ok(read @ 1..) = screen.read(&mut some) {
                bytes.extend_from_slice(&some[..read]);
                let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
                *seen.lock().expect("nobody panics with it") = text;
            }
        });
        Self {
            child: child.expect("the binary was built"),
            keys,
            shown,
        }
    }

    pub(super) fn keys(&mut self, keys: &str) {
        let written = self.keys.write_all(keys.as_bytes());
        written.expect("the terminal is there");
    }

    /// Waits until exactly this stands on the terminal.
    #[track_caller]
    pub(super) fn shows(&self, wanted: &str) {
        let shown = || self.shown.lock().expect("nobody panics with it").clone();
        until(&format!("{wanted:?}"), || {
            let shown = shown();
            assert!(
                wanted.starts_with(&shown),
                "wanted:\n{wanted}\nshown:\n{shown}"
            );
            (shown == wanted).then_some(())
        });
    }

    /// Waits until what stands on the terminal begins and ends so.
    #[track_caller]
    pub(super) fn shows_in_the_end(&self, begins: &str, ends: &str) {
        until(&format!("{ends:?}"), || {
            let shown = self.shown.lock().expect("nobody panics with it").clone();
            (shown.starts_with(begins) && shown.ends_with(ends)).then_some(())
        });
    }

    #[track_caller]
    pub(super) fn ends(&mut self, status: i32) {
        let ended = until("the end", || self.child.try_wait().expect("it is ours"));
        assert_eq!(ended.code(), Some(status));
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A terminal: the side of the user, and the side of the program.
#[allow(unsafe_code)]
fn terminal() -> (File, File) {
    use std::ptr::null_mut;
    let (mut user, mut program) = (0, 0);
    let sides = (&raw mut user, &raw mut program);
    // SAFETY: both numbers are written before they are used; nothing else is asked for.
    let made = unsafe { libc::openpty(sides.0, sides.1, null_mut(), null_mut(), null_mut()) };
    assert_eq!(made, 0, "the system has a terminal left");
    // SAFETY: both are open, and nobody else has them.
    let sides = unsafe { [File::from_raw_fd(user), File::from_raw_fd(program)] };
    // Unlike these, copies are not inherited by every process that a test starts.
    let [user, program] = sides.map(|side| side.try_clone().expect("a terminal can be shared"));
    (user, program)
}

#[test]
fn the_prompt_comes_after_the_answer_and_tools_are_named() {
    let server = ModelServer::start([
        reply::text("Hello."),
        reply::text("Let me look.").and_call("bash", json!({"command": "echo seen"})),
        reply::text("Seen."),
    ]);
    let home = TempHome::with_model(&server);
    let mut talk = Talk::start(&home, &["Greet me."]);
    let mut shown = format!("{GREETING}> Greet me.\nHello.\n> ");
    talk.shows(&shown);
    talk.keys("\n");
    shown += "\n> ";
    talk.shows(&shown);
    talk.keys("Look.\n");
    shown += "Look.\nLet me look.\n· bash echo seen\nSeen.\n> ";
    talk.shows(&shown);
    talk.keys("/quit\n");
    talk.ends(0);
    shown += "/quit\n";
    talk.shows(&shown);
    server.finish();
}

#[test]
fn an_interrupt_stops_the_answer_and_the_next_prompt_is_answered() {
    let server = ModelServer::start([reply::hold(), reply::text("Again.")]);
    let home = TempHome::with_model(&server);
    let mut talk = Talk::start(&home, &["Wait."]);
    server.wait_for(1);
    send(&talk.child, libc::SIGINT);
    let mut shown = format!("{GREETING}> Wait.\n\n[The request was aborted.]\n> ");
    talk.shows(&shown);
    talk.keys("And now?\n");
    shown += "And now?\nAgain.\n> ";
    talk.shows(&shown);
    // End of the input.
    talk.keys("\u{4}");
    talk.ends(0);
    server.finish();
}

#[test]
fn a_failed_write_leaves_the_prompt_and_a_held_session_is_asked_about() {
    // S12, S18
    let server = ModelServer::start([reply::text("Hello.")]);
    let home = TempHome::with_model(&server);
    let mut talk = Talk::start(&home, &["Greet me."]);
    let mut shown = format!("{GREETING}> Greet me.\nHello.\n> ");
    talk.shows(&shown);

    let mut second = Talk::start(&home, &["--continue"]);
    let file = home.session_files().remove(0);
    let size = fs::metadata(&file).expect("it is there").len();
    let file = file.display();
    let question = "[w]ait, [f]ork into a new session, [r]ead without storing, or [q]uit? ";
    let begins = format!(
        "Warning: The session {file} is open in process {} ",
        talk.child.id()
    );
    second.shows_in_the_end(&begins, question);
    second.keys("q\n");
    second.ends(1);

    fs::write(home.session_files().remove(0), "").expect("it can be written");
    talk.keys("And now?\n");
    shown += &format!(
        "And now?\nError: The session file {file} was cut from {size} to 0 bytes by another program, so nothing was recorded. Open the session again to go on with what is left.\n> "
    );
    talk.shows(&shown);
    talk.keys("/quit\n");
    talk.ends(0);
    server.finish();
}

#[test]
fn two_interrupts_at_the_prompt_end_it() {
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let mut talk = Talk::start(&home, &[]);
    talk.shows(&format!("{GREETING}> "));
    send(&talk.child, libc::SIGINT);
    talk.shows(&format!("{GREETING}> \n[Ctrl-C again or Ctrl-D ends.]\n> "));
    send(&talk.child, libc::SIGINT);
    talk.ends(130);
    server.finish();
}

#[test]
fn a_command_that_never_ends_ends_with_a_signal() {
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let script = home.write(
        "loop.rhai",
        r#"register_command("loop", #{
            description: "Never ends.",
            run: |args, ctx| { exec("touch", ["begun"]); loop {} },
        });"#,
    );
    let script = script.display().to_string();
    let file = home.project_dir().join("begun");
    let mut talk = Talk::start(&home, &["/loop", "-e", &script]);
    until("the command", || fs::remove_file(&file).ok());
    send(&talk.child, libc::SIGINT);
    talk.shows(&format!("{GREETING}> /loop\n\n> "));
    talk.keys("/loop\n");
    until("the command", || fs::remove_file(&file).ok());
    send(&talk.child, libc::SIGTERM);
    talk.ends(143);
    server.finish();
}

#[test]
fn the_conversation_is_compacted_when_the_user_says_so() {
    // R25
    let replies = ["Hello to whoever sits there.", "A summary.", "Here."].map(reply::text);
    let server = ModelServer::start(replies);
    let home = TempHome::with_model(&server);
    home.settings(json!({"compaction": {"keepRecentTokens": 5}}));
    let mut talk = Talk::start(&home, &["Greet me."]);
    let shown = format!("{GREETING}> Greet me.\nHello to whoever sits there.\n> ");
    talk.shows(&shown);
    talk.keys("/compact the greeting\n");
    let shown = format!(
        "{shown}/compact the greeting\n[compacting the conversation, because you asked for it]\n[compacted: about "
    );
    talk.shows_in_the_end(&shown, "]\n> ");
    talk.keys("/compact\n");
    talk.shows_in_the_end(&shown, "nothing has been said since.\n> ");
    talk.keys("Where are you?\n");
    talk.shows_in_the_end(&shown, "Where are you?\nHere.\n> ");
    talk.keys("/quit\n");
    talk.ends(0);
    let requests = server.finish();
    let asked = requests[1].conversation().remove(0).1;
    assert!(asked.ends_with("Additional focus: the greeting"), "{asked}");
    assert_eq!(requests[2].conversation().len(), 3);
}

#[test]
fn another_model_and_level_answer_when_the_user_says_so() {
    // V1, V6, R12
    let server = ModelServer::start([reply::text("One."), reply::text("Two.")]);
    let home = TempHome::with_model(&server);
    home.models(json!({"mock": {
        "baseUrl": server.url(), "api": "openai-completions", "apiKey": "test-key",
        "models": [{"id": "mock-model"}, {"id": "deep", "reasoning": true}],
    }}));
    let mut talk = Talk::start(&home, &["First."]);
    let shown = format!("{GREETING}> First.\nOne.\n> ");
    talk.shows(&shown);
    talk.keys("/model deep:low\n");
    let levels = "(of off, minimal, low, medium, high)";
    let shown = format!("{shown}/model deep:low\n[mock/deep, thinking low {levels}]\n> ");
    talk.shows(&shown);
    talk.keys("/thinking max\n");
    let shown = format!("{shown}/thinking max\n[mock/deep, thinking high {levels}]\n> ");
    talk.shows(&shown);
    talk.keys("/model nothing\n");
    talk.shows_in_the_end(&shown, "shows the usable ones.\n> ");
    talk.keys("Second.\n");
    talk.shows_in_the_end(&shown, "Second.\nTwo.\n> ");
    talk.keys("/quit\n");
    talk.ends(0);
    let requests = server.finish();
    let models: Vec<_> = requests.iter().map(|r| r.body["model"].clone()).collect();
    assert_eq!(models, ["mock-model", "deep"]);
    assert_eq!(requests[1].body["reasoning_effort"], "high");
}

/// Shows a message, an entry and calls of a tool.
const SHOWS: &str = r#"
register_message_renderer("card", |message, options| #{ "type": "box", title: "Card", children: [message.content] });
register_entry_renderer("mark", |entry, options| "marked " + entry.data);
register_tool_renderer(|name, next, shown| if shown.part == "call" { "I call " + name } else { "it said " + shown.result.text });
register_command("card", #{ run: |args, ctx| {
    send_message(#{ customType: "card", content: args, display: true }, #{ triggerTurn: false });
    send_message(#{ customType: "plain", content: "as it is", display: true }, #{ triggerTurn: false });
    append_entry("mark", "here");
} });
register_tool(#{ name: "tell", description: "Tells.", execute: || "a story" });
"#;

#[test]
fn extensions_show_messages_entries_and_tools() {
    // extensions §4.10
    let server = ModelServer::start([reply::tool_call("tell", json!({})), reply::text("Done.")]);
    let home = TempHome::with_model(&server);
    home.write_agent("extensions/shows.rhai", SHOWS);
    let mut talk = Talk::start(&home, &[]);
    talk.shows(&format!("{GREETING}> "));
    talk.keys("/card hello\n");
    let cards = "/card hello\nCard\n  hello\n[plain] as it is\nmarked here\n> ";
    talk.shows(&format!("{GREETING}> {cards}"));
    talk.keys("go\n");
    let calls = "go\nI call tell\nit said a story\nDone.\n> ";
    talk.shows(&format!("{GREETING}> {cards}{calls}"));
    talk.keys("/quit\n");
}
