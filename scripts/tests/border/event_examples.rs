//! The scripts in `examples/` that are about events, told those events.

use pliant_kernel::registry::Kind;
use serde_json::{Value, json};

use crate::examples::example;
use crate::kit::{Bench, Fake, load, load_with, request, user};

/// Services that take what is said and shown.
fn listening() -> Fake {
    Fake::default()
        .on("ui.show", |_| Ok(Value::Null))
        .on("ui.notify", |_| Ok(Value::Null))
}

/// Tells an event, and answers what the script says to it.
async fn told(bench: &Bench, event: &str, payload: Value) -> Value {
    bench.hook(event, payload).await.unwrap()
}

fn logged(bench: &Bench) -> Vec<String> {
    let lines = bench.fake.asked("log.write");
    let line = |line: &Value| line["message"].as_str().unwrap().replace("t.rhai: ", "");
    lines.iter().map(line).collect()
}

#[tokio::test]
async fn house_style_is_a_section_of_the_prompt() {
    let bench = load(&example("house-style.rhai")).await;
    let event = json!({"prompt": "hi", "systemPromptOptions": {"sections": {"a": "b"}}});
    let answer = told(&bench, "before_agent_start", event).await;
    let sections = &answer["event"]["systemPromptOptions"]["sections"];
    assert_eq!(sections["a"], "b");
    assert!(sections["house_style"].as_str().unwrap().contains("nouns"));
}

#[tokio::test]
async fn stopwatch_says_what_a_run_took() {
    let bench = load_with(&example("stopwatch.rhai"), listening()).await;
    told(&bench, "agent_start", json!({})).await;
    told(&bench, "turn_start", json!({"turnIndex": 0})).await;
    told(&bench, "turn_start", json!({"turnIndex": 1})).await;
    told(&bench, "agent_end", json!({"messages": [{}, {}]})).await;
    told(&bench, "agent_settled", json!({"aborted": false})).await;
    assert_eq!(logged(&bench), ["2 messages in this part of the run"]);
    let shown = bench.fake.asked("ui.show");
    assert_eq!(shown[0]["message"], "done after 0 s and 2 turns");
}

#[tokio::test]
async fn keep_going_goes_on_while_tasks_are_open() {
    let bench = load(&example("keep-going.rhai")).await;
    let event = |text: &str| {
        let said = json!([{"role": "user"}, {"role": "assistant", "content": [{"type": "text", "text": text}]}]);
        json!({"entries": [{"type": "custom"}], "continue": false, "context": {"llmMessages": said}})
    };
    let answer = told(&bench, "agent_before_settle", event("- [ ] test")).await;
    assert_eq!(answer["continue"], true);
    assert_eq!(answer["entries"].as_array().unwrap().len(), 2);
    assert_eq!(
        told(&bench, "agent_before_settle", event("- [x] test")).await,
        Value::Null
    );
    let nothing = json!({"entries": [], "context": {"llmMessages": []}});
    assert_eq!(
        told(&bench, "agent_before_settle", nothing).await,
        Value::Null
    );
}

#[tokio::test]
async fn turn_notes_are_put_behind_what_others_propose() {
    let bench = load(&example("turn-notes.rhai")).await;
    let event = json!({"turnIndex": 3, "toolResults": [{"toolName": "read"}], "entries": [{"type": "custom", "customType": "theirs"}]});
    let answer = told(&bench, "turn_end", event).await;
    let notes = answer["entries"].as_array().unwrap();
    assert_eq!(notes[0]["customType"], "theirs");
    assert_eq!(notes[1]["data"], json!({"turn": 3, "tools": ["read"]}));
}

#[tokio::test]
async fn forget_images_leaves_the_last_prompt_as_it_is() {
    let bench = load(&example("forget-images.rhai")).await;
    let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    let text = json!({"type": "text", "text": "look"});
    let messages = json!([
        {"role": "user", "content": [text, image]},
        {"role": "assistant", "content": []},
        {"role": "user", "content": [image]},
    ]);
    let answer = told(&bench, "context", json!({"messages": messages})).await;
    let sent = &answer["event"]["messages"];
    assert_eq!(sent[0]["content"][0], text);
    assert_eq!(sent[0]["content"][1]["type"], "text");
    assert_eq!(sent[2]["content"][0], image);
}

#[tokio::test]
async fn last_word_comes_last() {
    let bench = load(&example("last-word.rhai")).await;
    let event = json!({"messages": [{"role": "system"}, {"role": "user"}]});
    let answer = told(&bench, "context_with_system", event).await;
    let sent = answer["messages"].as_array().unwrap();
    assert_eq!((sent.len(), &sent[2]["role"]), (3, &json!("user")));
}

#[tokio::test]
async fn trace_requests_traces_a_request() {
    let bench = load(&example("trace-requests.rhai")).await;
    let answer = told(
        &bench,
        "before_provider_headers",
        json!({"headers": {"a": "b"}}),
    )
    .await;
    let headers = json!({"a": "b", "x-trace": "pliant-example"});
    assert_eq!(answer["event"]["headers"], headers);
    let payload = json!({"model": "m", "messages": [1, 2]});
    let answer = told(
        &bench,
        "before_provider_request",
        json!({ "payload": payload }),
    )
    .await;
    assert_eq!(
        answer,
        json!({"model": "m", "messages": [1, 2], "user": "example"})
    );
    told(
        &bench,
        "after_provider_response",
        json!({"status": 200, "headers": {}}),
    )
    .await;
    for _ in 0..2 {
        told(
            &bench,
            "provider_stream_event",
            json!({"provider": "p", "data": {}}),
        )
        .await;
    }
    assert_eq!(
        logged(&bench),
        [
            "request with 2 messages",
            "answer with status 200",
            "first frame of p"
        ]
    );
}

#[tokio::test]
async fn plain_words_shows_what_goes_on_and_changes_what_is_stored() {
    let bench = load_with(&example("plain-words.rhai"), listening()).await;
    told(
        &bench,
        "message_start",
        json!({"message": {"role": "assistant"}}),
    )
    .await;
    let piece = json!({"message": {}, "assistantMessageEvent": {"type": "text_start"}});
    told(&bench, "message_update", piece).await;
    let content = json!([{"type": "text", "text": "one — two"}, {"type": "thinking"}]);
    let message = json!({"role": "assistant", "content": content});
    let answer = told(&bench, "message_end", json!({ "message": message })).await;
    assert_eq!(answer["message"]["content"][0]["text"], "one, two");
    let user = json!({"message": {"role": "user", "content": "a — b"}});
    assert_eq!(told(&bench, "message_end", user).await, Value::Null);
    let shown = bench.fake.asked("ui.show");
    let states: Vec<&Value> = shown.iter().map(|one| &one["statusText"]).collect();
    assert_eq!(states, [&json!("…"), &json!("writing"), &Value::Null]);
}

#[tokio::test]
async fn tool_times_adds_up() {
    let bench = load_with(&example("tool-times.rhai"), listening()).await;
    let call = |more: Value| {
        let mut event = json!({"toolCallId": "c", "toolName": "read"});
        event
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        event
    };
    for duration in [json!(20), json!(22), Value::Null] {
        told(&bench, "tool_execution_start", call(json!({"args": {}}))).await;
        told(&bench, "tool_execution_update", call(json!({}))).await;
        told(
            &bench,
            "tool_execution_end",
            call(json!({"durationMs": duration})),
        )
        .await;
    }
    let times = bench.invoke(Kind::Command, "times", "run", json!(""));
    times.await.unwrap();
    assert_eq!(bench.fake.asked("ui.show")[0]["message"], "read: 42 ms");
    assert_eq!(logged(&bench).len(), 3);
}

#[tokio::test]
async fn diary_notes_what_happens() {
    let bench = load(&example("diary.rhai")).await;
    for (event, payload) in [
        ("session_info_changed", json!({"name": "work"})),
        (
            "session_tree",
            json!({"newLeafId": "e1", "oldLeafId": "e2"}),
        ),
        (
            "model_select",
            json!({"model": {"id": "m"}, "source": "set"}),
        ),
        (
            "thinking_level_select",
            json!({"level": "high", "previousLevel": "low"}),
        ),
        ("session_shutdown", json!({"reason": "quit"})),
    ] {
        assert_eq!(told(&bench, event, payload).await, Value::Null);
    }
    let lines = [
        "the session is called work",
        "the conversation goes on at e1",
        "m answers from now on",
        "thinking is high, it was low",
        "the end: quit",
    ];
    assert_eq!(logged(&bench), lines);
}

#[tokio::test]
async fn ask_before_leaving_asks_only_without_a_name() {
    for (name, says, stays) in [
        (Value::Null, false, true),
        (Value::Null, true, false),
        (json!("work"), false, false),
    ] {
        let fake = Fake::default()
            .stream("session.read", move |_| {
                Ok(vec![json!({"sessionName": name}).to_string().into_bytes()])
            })
            .stream("ui.ask", move |_| Ok(vec![says.to_string().into_bytes()]));
        let bench = load_with(&example("ask-before-leaving.rhai"), fake).await;
        for event in [
            "session_before_switch",
            "session_before_fork",
            "session_before_tree",
        ] {
            let answer = told(&bench, event, json!({})).await;
            let asked = bench.fake.asked("ui.ask");
            assert_eq!(
                answer["cancel"] == json!(true),
                stays,
                "{event} {answer} {asked:?}"
            );
        }
    }
}

#[tokio::test]
async fn own_summary_keeps_what_the_user_said() {
    let bench = load(&example("own-summary.rhai")).await;
    let messages = json!([
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": []},
        {"role": "user", "content": [{"type": "text", "text": "second"}]},
    ]);
    let preparation =
        json!({"messagesToSummarize": messages, "firstKeptEntryId": "e9", "tokensBefore": 7});
    let answer = told(
        &bench,
        "session_before_compact",
        json!({ "preparation": preparation }),
    )
    .await;
    let compaction = json!({"summary": "The user said:\n- first\n- second", "firstKeptEntryId": "e9", "tokensBefore": 7});
    assert_eq!(answer, json!({ "compaction": compaction }));
    told(&bench, "session_compact", json!({"reason": "manual"})).await;
    told(
        &bench,
        "session_compact_failed",
        json!({"errorMessage": "no"}),
    )
    .await;
    assert_eq!(logged(&bench), ["compacted: manual", "not compacted: no"]);
}

#[tokio::test]
async fn dry_run_answers_pushes_and_nothing_else() {
    let bench = load(&example("dry-run.rhai")).await;
    let said = async |command: &str| told(&bench, "user_bash", json!({"command": command})).await;
    let answer = said("cd x && git push origin").await;
    assert_eq!(
        answer["result"]["output"],
        "would run: cd x && git push origin"
    );
    assert_eq!(answer["result"]["exitCode"], 0);
    assert_eq!(said("git status; echo git push").await, Value::Null);
}

#[tokio::test]
async fn trust_home_trusts_one_folder() {
    let bench = load(&example("trust-home.rhai")).await;
    let said = async |cwd: &str| told(&bench, "project_trust", json!({"cwd": cwd})).await;
    assert_eq!(said("/srv/projects/a").await, json!({"trusted": "yes"}));
    assert_eq!(said("/tmp/a").await, json!({"trusted": "undecided"}));
}

#[tokio::test]
async fn own_wire_speaks_its_protocol() {
    // Against a server: tests/e2e/script_session.rs.
    let fake = Fake::default()
        .on("config.get", |_| {
            Ok(json!({"model": "m", "baseUrl": "http://x/v1"}))
        })
        .stream("http.stream", |_| {
            let piece = json!({"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]});
            let head = json!({"status": 200, "headers": []}).to_string();
            let body = format!("data: {piece}\n\ndata: [DONE]\n\n");
            Ok(vec![head.into_bytes(), body.into_bytes()])
        });
    let bench = load_with(&example("own-wire.rhai"), fake).await;
    let models = bench
        .invoke(Kind::Provider, "own", "models", Value::Null)
        .await;
    assert_eq!(models.unwrap()[0]["id"], "m");
    let asked = request(&[user("hello")]);
    let said = bench
        .invoke(Kind::Provider, "own", "stream", asked)
        .await
        .unwrap();
    assert_eq!(said["content"][0]["text"], "hi");
    let sent = &bench.fake.asked("http.stream")[0];
    assert_eq!(sent["credential"]["provider"], "own");
}
