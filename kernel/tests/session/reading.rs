//! What handlers, tools and commands read of the session's tree, what they name, and where they may
//! send the session (`extensions.md` §5.1–§5.3).

use std::sync::{Arc, Mutex};

use pliant_sdk::command::{Command, CommandCtx, CommandSpec};
use pliant_sdk::error::code;
use pliant_sdk::session::NavigateOptions;
use pliant_sdk::{Error, Message, Plugin};
use serde_json::{Value, json};

use crate::compaction::entries;
use crate::heard::Heard;
use crate::support::*;

type Shown = Arc<Mutex<Vec<Value>>>;

/// `/go ID` goes there with a summary and shows what came of it.
struct Go(Shown);

impl Command for Go {
    fn spec(&self) -> CommandSpec {
        CommandSpec::new("go", "Goes to an entry.")
    }

    async fn run(&self, args: String, ctx: CommandCtx) -> Result<(), Error> {
        let options = NavigateOptions {
            summarize: true,
            label: Some("here".into()),
            ..NavigateOptions::default()
        };
        let gone = ctx.host().session().navigate(&args, &options).await;
        let shown = match gone {
            Ok(navigated) => serde_json::to_value(navigated)?,
            Err(error) => json!({"code": error.code, "message": error.to_string()}),
        };
        self.0.lock().unwrap().push(shown);
        Ok(())
    }
}

#[tokio::test]
async fn a_handler_reads_the_tree_as_it_is_stored() {
    // extensions §5.2
    let shown = Shown::default();
    let show = Arc::clone(&shown);
    let plugin = Plugin::new().on_event("agent_settled", move |_, ctx| {
        let show = Arc::clone(&show);
        async move {
            let session = ctx.host().session();
            let branch = session.branch().await?;
            let said: Vec<Message> = branch.iter().filter_map(|entry| entry.message()).collect();
            let first = branch.iter().find(|entry| entry.kind == "message").unwrap();
            session.set_label(&first.id, Some("first")).await?;
            session.set_name(Some(" two\nlines ")).await?;
            let (tree, projection) = (session.tree().await?, session.projection().await?);
            let node = tree
                .nodes
                .iter()
                .find(|node| node.entry.id == first.id)
                .unwrap();
            let roles: Vec<&str> = said.iter().map(Message::role).collect();
            let leaf = session.leaf_entry().await?.unwrap();
            let missing = session.set_label("nowhere", Some("x")).await.unwrap_err();
            let read = json!({
                "roles": roles,
                "header": session.header().await?["type"],
                "label": session.label(&first.id).await?,
                "node": node.label,
                "roots": tree.roots,
                "children": node.children.len(),
                "entry": session.entry(&first.id).await? == Some(first.clone()),
                "nowhere": session.entry("nowhere").await?,
                "path": session.branch_to(&first.id).await?.len(),
                "all": session.entries().await?.len() - branch.len(),
                "leaf": [leaf.kind, (session.leaf_id().await? == Some(leaf.id)).to_string()],
                "context": session.context_entries().await?.len() == projection.sources.len(),
                "messages": projection.messages.len(),
                "model": projection.model,
                "info": session.info().await?,
                "missing": missing.code,
            });
            show.lock().unwrap().push(read);
            Ok(Value::Null)
        }
    });
    let scene = scene(Script::new([Reply::Text("hello")]), plugin).await;
    scene.prompt("hi").await;
    let shown = shown.lock().unwrap().clone();
    let [shown] = &shown[..] else {
        panic!("the handler has read all: {shown:?}")
    };
    let file = scene.session.file().unwrap();
    assert_eq!(
        *shown,
        json!({
            "roles": ["system", "user", "assistant"],
            "header": "session",
            "label": "first",
            "node": "first",
            "roots": [0],
            "children": 1,
            "entry": true,
            "nowhere": null,
            "path": 3,
            "all": 2,
            "leaf": ["session_info", "true"],
            "context": true,
            "messages": 3,
            "model": {"provider": "fake", "modelId": "m"},
            "info": {
                "cwd": scene.dir.path(),
                "sessionDir": file.parent(),
                "sessionId": scene.session.header().id.as_str(),
                "sessionFile": file,
                "sessionName": "two lines",
            },
            "missing": code::NOT_FOUND,
        })
    );
}

#[tokio::test]
async fn a_name_is_told_to_handlers_and_subscribers_once() {
    // extensions §2.8, §3.1 session_info_changed
    let heard = Heard::default();
    let plugin = Plugin::new().on_event("session_info_changed", |event, ctx| async move {
        // A handler may answer with another name and is not asked for ever.
        let name = event["name"].as_str().map(str::to_uppercase);
        ctx.host().session().set_name(name.as_deref()).await?;
        Ok(Value::Null)
    });
    let plugin = heard.hearing(plugin, &["session_info_changed"]);
    let scene = scene(Script::new([Reply::Text("hello")]), plugin).await;
    scene.prompt("hi").await;
    heard.listen(&scene.session);
    scene.session.set_name("a\r\nb").await.unwrap();
    assert_eq!(scene.session.name().as_deref(), Some("A B"));
    let told = heard.told(&["session_info"]);
    let (handler, event) = ("<session_info_changed idle>", "session_info_changed");
    assert_eq!(told, [handler, event, handler, event]);
    let names: Vec<Value> = heard
        .payloads()
        .iter()
        .map(|event| event["name"].clone())
        .collect();
    assert_eq!(names, ["A B", "a b"]);
    scene.session.set_name("  ").await.unwrap();
    assert_eq!(scene.session.name(), None);
    let cleared = json!({"type": "session_info_changed"});
    assert_eq!(heard.payloads(), [cleared]);
    assert_eq!(entries(&scene, "session_info").len(), 3);
}

#[tokio::test]
async fn a_command_sends_the_session_elsewhere_and_a_handler_may_not() {
    // extensions §5.1, §5.3, §9.16, P7: a command is no prompt that prepares a run
    let (shown, refused) = (Shown::default(), Shown::default());
    let refusals = Arc::clone(&refused);
    let plugin =
        Plugin::new()
            .command(Go(Arc::clone(&shown)))
            .on_event("turn_end", move |_, ctx| {
                let refusals = Arc::clone(&refusals);
                async move {
                    let session = ctx.host().session();
                    let error = session.navigate("x", &NavigateOptions::default()).await;
                    let error = error.unwrap_err().to_string();
                    refusals.lock().unwrap().push(json!(error));
                    Ok(Value::Null)
                }
            });
    let replies = [Reply::Text("hello"), Reply::Text("WHAT HAPPENED")];
    let scene = scene(Script::new(replies), plugin).await;
    scene.prompt("hi").await;
    let refused = refused.lock().unwrap()[0].to_string();
    assert!(refused.contains("in a command only"), "{refused}");

    let entry = entries(&scene, "message")[1]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    scene.prompt(&format!("/go {entry}")).await;
    scene.prompt("/go nowhere").await;
    let shown = shown.lock().unwrap();
    let summary = &entries(&scene, "branch_summary")[0]["id"];
    assert_eq!(
        shown[0],
        json!({"cancelled": false, "editorText": "hi", "summaryEntryId": summary})
    );
    assert_eq!(shown[1]["code"], code::NOT_FOUND);
    assert_eq!(entries(&scene, "label")[0]["targetId"], *summary);
}

#[tokio::test]
async fn a_handler_lets_the_conversation_be_compacted_without_waiting() {
    // R25, extensions §5.2 compact
    let plugin = Plugin::new().on_event("turn_end", |_, ctx| async move {
        // The run that waits for this is stopped by it.
        ctx.host().session().compact(Some("the tests")).await?;
        Ok(Value::Null)
    });
    let plugin = plugin.command(Shorten);
    let settings = json!({"compaction": {"keepRecentTokens": 10}});
    let replies = [
        Reply::Text("An answer of some length, so that there is something to summarise."),
        Reply::Text("SUMMARY"),
    ];
    let mut scene = scene_with(Script::new(replies), plugin, settings).await;
    scene.prompt("hi").await;
    loop {
        let event = scene.events.recv().await.unwrap();
        if word(&event).as_deref() == Some("compaction_end Manual done") {
            break;
        }
    }
    let asked = scene.script.requests().pop().unwrap();
    assert!(asked[1].ends_with("Additional focus: the tests"));
    // One that cannot be begun is an error of whoever asked.
    scene.prompt("/shorten").await;
    let event = scene.events.recv().await.unwrap();
    assert_eq!(
        word(&event).as_deref(),
        Some("extension_error session.compact")
    );
}

/// `/shorten` asks for a compaction.
struct Shorten;

impl Command for Shorten {
    fn spec(&self) -> CommandSpec {
        CommandSpec::new("shorten", "Shortens the conversation.")
    }

    async fn run(&self, _: String, ctx: CommandCtx) -> Result<(), Error> {
        ctx.host().session().compact(None).await
    }
}
