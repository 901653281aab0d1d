//! Another session in the place of one: new, earlier, or forked. Rules S28 and S31 of `kernel.md` and
//! `extensions.md` §2.7.

use pliant_kernel::models::ModelWish;
use pliant_kernel::pipeline::{Prompt, PromptError};
use pliant_kernel::session::Session;
use pliant_kernel::tree::{EntryId, Position};
use pliant_kernel::{Kernel, OpenError, OpenOptions, SessionChoice};
use pliant_sdk::Plugin;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::heard::Heard;
use crate::support::*;

const HEARD: [&str; 4] = [
    "session_before_switch",
    "session_before_fork",
    "session_shutdown",
    "session_start",
];

fn with(session: SessionChoice) -> OpenOptions {
    OpenOptions {
        session,
        model: ModelWish {
            provider: Some("fake".into()),
            model: Some("m".into()),
        },
        ..OpenOptions::default()
    }
}

/// A kernel and a session in which "one" and "two" were answered.
async fn talked(plugin: Plugin, heard: &Heard) -> (Kernel, Session, Script, TempDir) {
    let replies = ["Answer one.", "Answer two.", "Answer three."].map(Reply::Text);
    let script = Script::new(replies);
    let (kernel, dir) = kernel_with(&script, plugin, json!({}));
    let session = open_session(&kernel).await;
    for text in ["one", "two"] {
        session.prompt(Prompt::text(text), |_| ()).await.unwrap();
    }
    heard.told(&[]);
    heard.payloads();
    (kernel, session, script, dir)
}

fn message(session: &Session, text: &str) -> EntryId {
    let entries = session.entries();
    let says = |entry: Value| entry["message"]["content"][0]["text"] == text;
    let entry = entries.iter().find(|entry| says(entry.to_json())).unwrap();
    entry.id().clone()
}

fn roles(session: &Session) -> Vec<String> {
    let messages = session.messages();
    messages.iter().map(|m| m.role().to_owned()).collect()
}

#[tokio::test]
async fn a_new_session_and_an_earlier_one_take_the_place_of_the_old() {
    // S31, extensions §2.7, §3.1
    let heard = Heard::default();
    let plugin = heard.hearing(Plugin::new(), &HEARD);
    let (kernel, first, _, _dir) = talked(plugin, &heard).await;
    let new = kernel
        .switch_session(&first, with(SessionChoice::New))
        .await;
    let new = new.unwrap().unwrap();
    let order = [
        "<session_before_switch idle>",
        "<session_shutdown idle>",
        "<session_start idle>",
    ];
    assert_eq!(heard.told(&[]), order);
    let (old_file, new_file) = (first.file().unwrap(), new.file().unwrap());
    assert_eq!(
        heard.payloads(),
        [
            json!({"type": "session_before_switch", "reason": "new"}),
            json!({"type": "session_shutdown", "reason": "new", "targetSessionFile": new_file}),
            json!({"type": "session_start", "reason": "new", "previousSessionFile": old_file}),
        ]
    );
    assert!(roles(&new).is_empty());
    let refused = first.prompt(Prompt::text("still there?"), |_| ()).await;
    assert_eq!(refused.unwrap_err(), PromptError::Closed);

    let name = old_file.display().to_string();
    let back = kernel
        .switch_session(&new, with(SessionChoice::Named(name.clone())))
        .await;
    let back = back.unwrap().unwrap();
    assert_eq!(roles(&back).len(), 5);
    let payloads = heard.payloads();
    assert_eq!(payloads[0]["reason"], "resume");
    assert_eq!(payloads[0]["targetSessionFile"], *name);
    assert_eq!(payloads[1]["targetSessionFile"], *name);
    assert_eq!(
        (&payloads[2]["reason"], &payloads[2]["previousSessionFile"]),
        (&json!("resume"), &json!(new_file))
    );

    heard.told(&[]);
    let here = kernel
        .switch_session(&back, with(SessionChoice::Named(name)))
        .await;
    assert!(matches!(here, Err(OpenError::OpenHere)));
    let gone = with(SessionChoice::Named("nothing-begins-so".into()));
    assert!(kernel.switch_session(&back, gone).await.is_err());
    // Neither was asked for, and the session goes on.
    assert!(heard.told(&[]).is_empty());
    back.prompt(Prompt::text("three"), |_| ()).await.unwrap();
}

#[tokio::test]
async fn a_handler_keeps_the_user_where_he_is() {
    // S31, extensions §3.1: the first cancel decides
    let heard = Heard::default();
    let mut plugin = heard.hearing(Plugin::new(), &HEARD[2..]);
    for event in &HEARD[..2] {
        for answer in [json!({}), json!({"cancel": true}), json!({"cancel": false})] {
            plugin = heard.answering(plugin, event, answer);
        }
    }
    let (kernel, session, _, _dir) = talked(plugin, &heard).await;
    let switched = kernel
        .switch_session(&session, with(SessionChoice::New))
        .await;
    assert!(switched.unwrap().is_none());
    let target = message(&session, "two");
    let forked = kernel.fork_session(
        &session,
        &target,
        Position::Before,
        with(SessionChoice::New),
    );
    assert!(forked.await.unwrap().is_none());
    assert_eq!(
        heard.told(&[]),
        [
            "<session_before_switch idle>",
            "<session_before_switch idle>",
            "<session_before_fork idle>",
            "<session_before_fork idle>"
        ]
    );
    let asked = json!({"type": "session_before_fork", "entryId": target, "position": "before"});
    assert_eq!(heard.payloads()[2], asked);
    session.prompt(Prompt::text("three"), |_| ()).await.unwrap();
}

#[tokio::test]
async fn a_fork_before_a_prompt_gives_its_text_back_and_one_at_an_entry_is_a_clone() {
    // S27, S28, S31
    let heard = Heard::default();
    let plugin = heard.hearing(Plugin::new(), &HEARD);
    let (kernel, session, script, _dir) = talked(plugin, &heard).await;
    let old_file = session.file().unwrap();
    let fork = |session: Session, target: EntryId, position| {
        let kernel = &kernel;
        async move {
            let open = with(SessionChoice::New);
            kernel.fork_session(&session, &target, position, open).await
        }
    };
    let unfit = fork(
        session.clone(),
        message(&session, "Answer one."),
        Position::Before,
    )
    .await;
    assert!(
        unfit
            .unwrap_err()
            .to_string()
            .contains("not a user message")
    );
    let unknown = fork(session.clone(), "nowhere".into(), Position::At).await;
    assert!(unknown.is_err() && session.is_idle());
    heard.payloads();

    let clone = fork(
        session.clone(),
        message(&session, "Answer two."),
        Position::At,
    )
    .await;
    let clone = clone.unwrap().unwrap();
    assert_eq!(clone.editor_text, None);
    assert_eq!(roles(&clone.session), roles(&session));
    assert_eq!(
        clone.session.header().parent_session.as_deref(),
        Some(&*old_file)
    );
    let payloads = heard.payloads();
    assert_eq!(payloads[1]["reason"], "fork");
    assert_eq!(payloads[2]["reason"], "fork");
    assert_eq!(payloads[2]["previousSessionFile"], json!(old_file));

    let first = message(&clone.session, "one");
    let anew = fork(clone.session.clone(), first, Position::Before)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(anew.editor_text.as_deref(), Some("one"));
    // Nothing was said in it, so it is no file yet (S11).
    assert!(!anew.session.file().unwrap().exists());
    anew.session
        .prompt(Prompt::text("three"), |_| ())
        .await
        .unwrap();
    let request = script.requests().pop().unwrap();
    assert_eq!(request[1..], ["user:three"]);
    assert!(anew.session.file().unwrap().exists());
}
