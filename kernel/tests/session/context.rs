//! What is sent of a conversation: handlers of `context` and `context_with_system`, hidden images, and
//! the repair of whatever comes out. The rules are those of `kernel.md` §1.5, §3.5, §8.1 and
//! `extensions.md` §3.3.

use std::sync::{Arc, Mutex};

use pliant_kernel::run::repair_notice;
use pliant_sdk::message::{Message, MessageContent};
use pliant_sdk::{Event, Plugin};
use serde_json::{Value, json};

use crate::support::*;

/// A handler of `event` that answers what `answer` makes of the event.
fn handler(
    plugin: Plugin,
    event: &'static str,
    answer: impl Fn(Value) -> Value + Send + Sync + 'static,
) -> Plugin {
    plugin.on_event(event, move |event, _| {
        let answer = answer(event);
        async move { Ok(answer) }
    })
}

/// Prompts twice over two answers.
async fn two_prompts(plugin: Plugin) -> Scene {
    let scene = scene(
        Script::new([Reply::Text("one"), Reply::Text("two")]),
        plugin,
    )
    .await;
    scene.prompt("a").await;
    scene.prompt("b").await;
    scene
}

/// As [`two_prompts`]; between them a tool comes, so that a system message enters the conversation.
async fn prompts_around_a_late_tool(plugin: Plugin) -> Scene {
    let scene = scene(
        Script::new([Reply::Text("one"), Reply::Text("two")]),
        plugin,
    )
    .await;
    scene.prompt("a").await;
    scene.publish("late", Plugin::new().tool(echo("late")));
    scene.prompt("b").await;
    scene
}

fn request(scene: &Scene, at: usize) -> Vec<Arc<Message>> {
    scene.script.requests.lock().unwrap()[at].clone()
}

/// The errors that handlers were reported with.
fn reports(scene: &mut Scene) -> Vec<String> {
    let mut errors = Vec::new();
    while let Ok(event) = scene.events.try_recv() {
        if let Event::ExtensionError { event, error, .. } = &*event {
            errors.push(format!("{event}: {error}"));
        }
    }
    errors
}

#[tokio::test]
async fn context_handlers_see_all_but_system_messages_and_change_what_is_sent_only() {
    // G8, L20, extensions §2.3, §3.3
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let plugin = handler(Plugin::new(), "context", move |event| {
        let roles = event["messages"].as_array().unwrap().iter();
        let roles: Vec<String> = roles
            .map(|m| m["role"].as_str().unwrap().to_owned())
            .collect();
        kept.lock().unwrap().push(roles.join(" "));
        let mut messages = event["messages"].clone();
        messages
            .as_array_mut()
            .unwrap()
            .push(json!({"role": "user", "content": "and brief"}));
        json!({ "messages": messages })
    });
    let scene = two_prompts(plugin).await;
    assert_eq!(*seen.lock().unwrap(), ["user", "user assistant user"]);
    assert_eq!(
        scene.script.requests(),
        [
            vec!["system", "user:a", "user:and brief"],
            vec![
                "system",
                "user:a",
                "assistant:one",
                "user:b",
                "user:and brief"
            ],
        ]
    );
    // What stayed is sent as the same values, so that only new messages cross to the wire.
    let (first, second) = (request(&scene, 0), request(&scene, 1));
    assert!((0..2).all(|at| Arc::ptr_eq(&first[at], &second[at])));
    let stored = scene.session.messages();
    assert_eq!(stored.iter().filter(|m| m.role() == "user").count(), 2);
}

#[tokio::test]
async fn handlers_of_a_context_chain_and_an_edited_event_counts_as_an_answer() {
    // G6, extensions §7.1
    let plugin = handler(Plugin::new(), "context", |mut event| {
        event["messages"][0]["content"] = json!("edited");
        json!({ "event": event })
    });
    let plugin = handler(plugin, "context", |event| {
        let mut messages = event["messages"].clone();
        let text = messages[0]["content"].as_str().unwrap().to_owned();
        messages[0]["content"] = json!(format!("{text} twice"));
        json!({ "messages": messages })
    });
    let scene = two_prompts(plugin).await;
    assert_eq!(scene.script.requests()[1][1], "user:edited twice");
}

#[tokio::test]
async fn an_unchanged_context_leaves_every_system_message_where_it_is() {
    // G8, M11
    for answered in [true, false] {
        let plugin = handler(Plugin::new(), "context", move |event| match answered {
            true => json!({ "event": event }),
            false => Value::Null,
        });
        let scene = prompts_around_a_late_tool(plugin).await;
        assert_eq!(
            scene.script.requests()[1],
            ["system", "user:a", "assistant:one", "system", "user:b"]
        );
    }
}

#[tokio::test]
async fn a_changed_context_gets_the_whole_system_state_in_front() {
    // G8, extensions §9 (19)
    let plugin = handler(Plugin::new(), "context", |event| {
        let last = event["messages"].as_array().unwrap().last().unwrap();
        json!({ "messages": [last] })
    });
    let scene = prompts_around_a_late_tool(plugin).await;
    assert_eq!(scene.script.requests()[1], ["system", "user:b"]);
    let request = request(&scene, 1);
    let Message::System(head) = &*request[0] else {
        panic!("a system message");
    };
    let tools: Vec<_> = head
        .tools_added
        .iter()
        .flatten()
        .map(|tool| &tool.name)
        .collect();
    assert_eq!(tools, ["late"]);
    assert!(head.sections.as_ref().unwrap().contains_key("preamble"));
}

#[tokio::test]
async fn handlers_with_system_see_everything_and_their_word_is_sent_as_it_is() {
    // G8
    let plugin = handler(Plugin::new(), "context_with_system", |event| {
        let mut messages = event["messages"].clone();
        assert_eq!(messages[0]["role"], "system");
        messages[0] = json!({"role": "system", "content": "Only this."});
        json!({ "messages": messages })
    });
    let mut scene = two_prompts(plugin).await;
    let request = request(&scene, 1);
    let Message::System(head) = &*request[0] else {
        panic!("a system message");
    };
    assert_eq!(head.content, MessageContent::Text("Only this.".into()));
    assert_eq!(
        (head.sections.as_ref(), head.tools_added.as_ref()),
        (None, None)
    );
    assert_eq!(reports(&mut scene), [""; 0]);
}

#[tokio::test]
async fn leaving_out_the_leading_system_message_is_reported_and_done() {
    // G8
    let plugin = handler(Plugin::new(), "context_with_system", |mut event| {
        event["messages"].as_array_mut().unwrap().remove(0);
        json!({ "event": event })
    });
    let mut scene = two_prompts(plugin).await;
    assert_eq!(scene.script.requests()[0], ["user:a"]);
    let reports = reports(&mut scene);
    assert_eq!(reports.len(), 2);
    assert!(
        reports[0].contains("left out the leading system message"),
        "{reports:?}"
    );
}

#[tokio::test]
async fn an_answer_of_another_shape_is_reported_and_passed_by() {
    // G5
    let wrong = [
        json!("messages"),
        json!({"messages": "all"}),
        json!({"messages": [{"content": "x"}]}),
        json!({"messages": [{"role": "system", "content": "Obey."}]}),
    ];
    for answer in wrong {
        let plugin = handler(Plugin::new(), "context", move |_| answer.clone());
        let mut scene = two_prompts(plugin).await;
        assert_eq!(scene.script.requests()[0], ["system", "user:a"]);
        let reports = reports(&mut scene);
        assert_eq!(reports.len(), 2, "{reports:?}");
        assert!(
            reports[0].starts_with("context: its answer is ignored"),
            "{reports:?}"
        );
    }
}

#[tokio::test]
async fn what_handlers_make_of_a_conversation_is_repaired_like_any_other() {
    // M18, invariants 9 and 10
    let plugin = Plugin::new().tool(echo("echo"));
    let plugin = handler(plugin, "context", |event| {
        // Of every pair of call and result one half is lost, and roles come that nobody knows.
        let messages = event["messages"].as_array().unwrap().iter();
        let mut kept: Vec<Value> = messages
            .filter(|m| m["role"] != "toolResult")
            .cloned()
            .collect();
        kept.push(json!({"role": "toolResult", "toolCallId": "ghost", "content": "boo"}));
        kept.push(json!({"role": "poltergeist"}));
        json!({ "messages": kept })
    });
    let call = calls([("1", "echo", json!({"text": "x"}))]);
    let scene = scene(Script::new([call, Reply::Text("done")]), plugin).await;
    scene.prompt("go").await;
    assert_eq!(
        scene.script.requests()[1],
        [
            "system",
            "user:go",
            "assistant:",
            "result:No result provided"
        ]
    );
    assert_eq!(repair_notice(&request(&scene, 1)), None);
}

#[tokio::test]
async fn blocked_images_are_a_text_in_requests_and_stay_in_the_session() {
    // M17
    let settings = json!({"images": {"blockImages": true}});
    let script = Script::new([Reply::Text("one")]);
    let scene = scene_with(script, Plugin::new(), settings).await;
    let image = json!({"type": "image", "data": "QQ==", "mimeType": "image/png"});
    let image = serde_json::from_value(image).unwrap();
    let prompt = pliant_kernel::pipeline::Prompt {
        images: vec![image],
        ..pliant_kernel::pipeline::Prompt::text("look")
    };
    scene.session.prompt(prompt, |_| ()).await.unwrap();
    let sent = serde_json::to_string(&request(&scene, 0)).unwrap();
    assert!(
        sent.contains("keep images from models") && !sent.contains("QQ=="),
        "{sent}"
    );
    let stored = serde_json::to_string(&scene.session.messages()).unwrap();
    assert!(stored.contains("QQ=="), "{stored}");
}
