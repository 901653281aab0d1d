//! The exchange with a provider as handlers see it (`extensions.md` §2.3, §3.3): headers, body,
//! response and frames, over a wire that asks the kernel for HTTP and knows nothing of handlers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use pliant_kernel::models::ModelWish;
use pliant_kernel::pipeline::Prompt;
use pliant_kernel::registry::{InProcess, Rank, Source};
use pliant_kernel::{Kernel, KernelOptions, OpenOptions, SessionChoice};
use pliant_sdk::hook::{BeforeProviderHeaders, HeadersAnswer};
use pliant_sdk::host::{HttpCredential, HttpRequest};
use pliant_sdk::message::AssistantMessage;
use pliant_sdk::provider::{Provider, ProviderSpec, StreamOut, StreamRequest, Wire};
use pliant_sdk::sse::Decoder;
use pliant_sdk::stream::MessageWriter;
use pliant_sdk::{Error, Model, Plugin};
use serde_json::{Value, json};

use crate::support::*;

/// The key of the provider; no handler may see it.
const KEY: &str = "key-of-the-user";

/// Answers `n` requests, one connection each, and hands out what they were.
fn serve(answers: Vec<String>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    thread::spawn(move || {
        for answer in answers {
            let (mut socket, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(socket.try_clone().unwrap());
            let (mut request, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(given) = line.strip_prefix("content-length: ") {
                    length = given.trim().parse().unwrap();
                }
                request.push_str(&line);
                if line == "\r\n" {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            request.push_str(&String::from_utf8(body).unwrap());
            sender.send(request).unwrap();
            socket.write_all(answer.as_bytes()).unwrap();
        }
    });
    (url, requests)
}

fn response(status: u16, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} Scripted\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
}

/// Frames of one word each.
fn words(words: &[&str]) -> String {
    let frame = |word: &&str| format!("data: {{\"word\": \"{word}\"}}\n\n");
    let frames: String = words.iter().map(frame).collect();
    response(
        200,
        "x-limit: 1\r\nx-limit: 2\r\n",
        &(frames + "data: [DONE]\n\n"),
    )
}

/// Speaks a protocol of words, over the host's HTTP.
struct WordWire(String);

impl Wire for WordWire {
    fn api(&self) -> &'static str {
        "words"
    }

    async fn stream(
        &self,
        request: StreamRequest,
        out: StreamOut,
    ) -> Result<AssistantMessage, Error> {
        let set = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        let http = HttpRequest {
            method: "POST".into(),
            url: self.0.clone(),
            headers: vec![
                set("X-Wire", "weak"),
                set("x-gone", "1"),
                set("x-wire", "1"),
            ],
            credential: Some(HttpCredential {
                provider: "service".into(),
                header: "authorization".into(),
                prefix: "Bearer ".into(),
            }),
            max_retries: request.options.max_retries,
            ..HttpRequest::default()
        };
        let mut response = out.host().http(http, br#"{"n": 1}"#).await?;
        if response.status != 200 {
            return Err(Error::failed(format!(
                "the service said {}",
                response.status
            )));
        }
        let mut writer = MessageWriter::new(request.answer(), &out);
        let (mut decoder, mut events) = (Decoder::new(), Vec::new());
        while let Some(chunk) = response.body.next().await {
            decoder.push(&chunk?, &mut events).unwrap();
        }
        for event in events {
            let frame: Value = serde_json::from_str(&event.data).unwrap_or_default();
            writer.text(frame["word"].as_str().unwrap_or_default());
        }
        Ok(writer.finish(None))
    }
}

struct WordProvider;

impl Provider for WordProvider {
    fn spec(&self) -> ProviderSpec {
        ProviderSpec {
            name: "service".into(),
            ..ProviderSpec::default()
        }
    }

    fn models(&self) -> Vec<Model> {
        vec![Model {
            id: "w".into(),
            provider: "service".into(),
            api: "words".into(),
            ..Model::default()
        }]
    }
}

/// A session whose model is behind `url`; of several plugins the handlers run in their order.
async fn open(url: &str, settings: Value, plugins: Vec<Plugin>) -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let agent = dir.path().join("agent");
    std::fs::create_dir(&agent).unwrap();
    std::fs::write(agent.join("settings.json"), settings.to_string()).unwrap();
    let keys = json!({"service": {"type": "api_key", "key": KEY}});
    std::fs::write(agent.join("auth.json"), keys.to_string()).unwrap();
    let kernel = Kernel::boot(KernelOptions::new(dir.path().to_path_buf(), agent)).unwrap();
    let service = Plugin::new()
        .wire(WordWire(url.to_owned()))
        .provider(WordProvider);
    for (at, plugin) in std::iter::once(service).chain(plugins).enumerate() {
        let source = Source::inline(format!("plugin{at}"), Rank::User);
        let generation = InProcess::new(source, plugin).unwrap();
        kernel.registry().publish(Arc::new(generation));
    }
    let options = OpenOptions {
        session: SessionChoice::New,
        model: ModelWish {
            provider: Some("service".into()),
            model: Some("w".into()),
        },
        ..OpenOptions::default()
    };
    let session = kernel.open_session(options).await.unwrap();
    Scene {
        events: session.subscribe(),
        session,
        script: Script::default(),
        registry: Arc::clone(kernel.registry()),
        kernel,
        dir,
    }
}

const QUIET: fn() -> Value = || json!({"retry": {"enabled": false}});

/// What handlers were shown, in order.
type Seen = Arc<Mutex<Vec<Value>>>;

/// A plugin that writes down every provider event.
fn witness(seen: &Seen) -> Plugin {
    let events = [
        "before_provider_headers",
        "before_provider_request",
        "after_provider_response",
        "provider_stream_event",
    ];
    events.into_iter().fold(Plugin::new(), |plugin, name| {
        let seen = Arc::clone(seen);
        plugin.on_event(name, move |event, _| {
            seen.lock().unwrap().push(event);
            async { Ok(Value::Null) }
        })
    })
}

fn seen_types(seen: &Seen) -> Vec<String> {
    let seen = seen.lock().unwrap();
    seen.iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect()
}

fn said(scene: &Scene) -> Value {
    serde_json::to_value(scene.session.messages().last().unwrap()).unwrap()
}

#[tokio::test]
async fn the_exchange_is_told_in_its_order_and_without_the_secret() {
    // extensions §2.3, §3.3, L20, G13
    let (url, requests) = serve(vec![words(&["Hello ", "you."])]);
    let seen = Seen::default();
    let scene = open(&url, QUIET(), vec![witness(&seen)]).await;
    scene.prompt("hi").await;
    assert_eq!(said(&scene)["content"][0]["text"], "Hello you.");
    let request = requests.recv().unwrap();
    assert!(
        request.contains(&format!("authorization: Bearer {KEY}\r\n")),
        "{request}"
    );
    assert_eq!(
        seen_types(&seen),
        [
            "before_provider_headers",
            "before_provider_request",
            "after_provider_response",
            "provider_stream_event",
            "provider_stream_event",
            "provider_stream_event",
        ]
    );
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0]["headers"], json!({"x-gone": "1", "x-wire": "1"}));
    assert_eq!(seen[1]["payload"], json!({"n": 1}));
    assert_eq!(
        (&seen[2]["status"], &seen[2]["headers"]["x-limit"]),
        (&json!(200), &json!("1, 2"))
    );
    let frame = json!({"type": "provider_stream_event", "provider": "service", "api": "words",
        "model": "w", "data": {"word": "Hello "}});
    assert_eq!((&seen[3], &seen[5]["data"]), (&frame, &json!("[DONE]")));
    assert!(!json!(*seen).to_string().contains(KEY));
}

#[tokio::test]
async fn handlers_edit_headers_one_after_the_other_and_null_removes_one() {
    // G6, extensions §3.3
    let (url, requests) = serve(vec![words(&["ok"])]);
    let first = Plugin::new().on_event("before_provider_headers", |mut event, _| async move {
        event["headers"]["x-gone"] = Value::Null;
        event["headers"]["user-agent"] = Value::Null;
        event["headers"]["X-Tenant"] = json!("a");
        Ok(json!({ "event": event }))
    });
    let second = Plugin::new().on_event("before_provider_headers", |mut event, _| async move {
        let tenant = event["headers"]["X-Tenant"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        event["headers"]["X-Tenant"] = json!(tenant + "b");
        Ok(json!({ "event": event }))
    });
    let scene = open(&url, QUIET(), vec![first, second]).await;
    scene.prompt("hi").await;
    let request = requests.recv().unwrap();
    assert!(
        request.contains("x-tenant: ab\r\n") && request.contains("x-wire: 1\r\n"),
        "{request}"
    );
    assert!(
        !request.contains("x-gone") && !request.contains("user-agent"),
        "{request}"
    );
    assert!(request.contains(KEY), "{request}");
}

#[tokio::test]
async fn a_header_that_is_given_stands_over_the_one_with_the_secret() {
    // G13
    let (url, requests) = serve(vec![words(&["ok"])]);
    let plugin = Plugin::new().on(|mut event: BeforeProviderHeaders, _| async move {
        let given = json!("Bearer of-the-gateway");
        event.headers.insert("Authorization".to_owned(), given);
        Ok(HeadersAnswer::send(event.headers))
    });
    let scene = open(&url, QUIET(), vec![plugin]).await;
    scene.prompt("hi").await;
    let request = requests.recv().unwrap();
    assert!(
        request.contains("authorization: Bearer of-the-gateway\r\n") && !request.contains(KEY),
        "{request}"
    );
}

#[tokio::test]
async fn bodies_chain_and_answers_of_another_shape_are_passed_by() {
    // G5, G6, extensions §3.3
    let (url, requests) = serve(vec![words(&["ok"])]);
    let grow = || {
        Plugin::new().on_event("before_provider_request", |mut event, _| async move {
            let n = event["payload"]["n"].as_i64().unwrap_or_default();
            event["payload"]["n"] = json!(n + 1);
            Ok(event["payload"].take())
        })
    };
    let wrong = Plugin::new()
        .on_event("before_provider_request", |_, _| async {
            Ok(json!("more"))
        })
        .on_event("before_provider_headers", |_, _| async {
            Ok(json!({"event": {"headers": {"x-bad": "1\r\nx-worse: 2"}}}))
        });
    let mut scene = open(&url, QUIET(), vec![grow(), wrong, grow()]).await;
    scene.prompt("hi").await;
    let request = requests.recv().unwrap();
    assert!(request.ends_with("\r\n\r\n{\"n\":3}"), "{request}");
    assert!(
        !request.contains("x-worse") && request.contains("x-gone: 1"),
        "{request}"
    );
    let reports: Vec<_> = scene
        .events()
        .into_iter()
        .filter(|e| e.contains("error"))
        .collect();
    assert_eq!(
        reports,
        [
            "extension_error before_provider_headers",
            "extension_error before_provider_request"
        ]
    );
}

#[tokio::test]
async fn attempts_of_the_host_reuse_what_handlers_said_and_refusals_have_no_frames() {
    // extensions §2.3
    let busy = || response(503, "retry-after-ms: 1\r\n", "data: busy\n\n");
    let (url, requests) = serve(vec![busy(), busy(), busy(), words(&["ok"])]);
    let seen = Seen::default();
    let settings = json!({"retry": {"baseDelayMs": 1, "provider": {"maxRetries": 2}}});
    let scene = open(&url, settings, vec![witness(&seen)]).await;
    scene.prompt("hi").await;
    // Two attempts by the host within the first request; then the turn is tried again.
    assert_eq!(requests.iter().take(4).count(), 4);
    let told = [
        "before_provider_headers",
        "before_provider_request",
        "after_provider_response",
    ];
    let frames = ["provider_stream_event"; 2];
    assert_eq!(seen_types(&seen), [&told[..], &told, &frames].concat());
    let statuses: Vec<i64> = seen
        .lock()
        .unwrap()
        .iter()
        .filter_map(|event| event["status"].as_i64())
        .collect();
    assert_eq!(statuses, [503, 200]);
    assert_eq!(said(&scene)["content"][0]["text"], "ok");
}

#[tokio::test]
async fn failing_handlers_of_an_exchange_are_reported_and_the_answer_comes() {
    // G5, invariant 39, E09
    let (url, _requests) = serve(vec![words(&["ok"])]);
    let events = [
        "before_provider_headers",
        "before_provider_request",
        "after_provider_response",
        "provider_stream_event",
    ];
    let plugin = events.into_iter().fold(Plugin::new(), |plugin, event| {
        plugin.on_event(event, move |_, _| async move {
            panic!("the handler of {event} broke")
        })
    });
    let mut scene = open(&url, QUIET(), vec![plugin]).await;
    scene.prompt("hi").await;
    assert_eq!(said(&scene)["content"][0]["text"], "ok");
    let reports = scene
        .events()
        .into_iter()
        .filter(|event| event.starts_with("extension_error"));
    // With the third panic the plugin is out, which is told once (plugin-abi §6, E09).
    assert_eq!(reports.count(), 3 + 1);
}

#[tokio::test]
async fn a_plugin_that_panics_at_the_second_of_a_thousand_events_is_left_out_and_can_be_replaced() {
    // E09
    let many = vec!["w"; 1000];
    let (url, _requests) = serve(vec![words(&many), words(&["ok"])]);
    let heard = Arc::new(Mutex::new(0));
    let hears = |breaks_at: Option<u32>| {
        let heard = Arc::clone(&heard);
        Plugin::new().on_event("provider_stream_event", move |_, _| {
            let heard = Arc::clone(&heard);
            async move {
                let count = {
                    let mut heard = heard.lock().unwrap();
                    *heard += 1;
                    *heard
                };
                assert!(Some(count) != breaks_at, "the second event is too much");
                Ok(Value::Null)
            }
        })
    };
    let mut scene = open(&url, QUIET(), vec![hears(Some(2))]).await;
    let session = scene.session.clone();
    let run = tokio::spawn(async move { session.prompt(Prompt::text("hi"), |_| ()).await });
    let mut reports = 0;
    // So many events have to be read while they come.
    while let Some(event) = scene.events.recv().await {
        match word(&event).unwrap_or_default().as_str() {
            "extension_error provider_stream_event" => reports += 1,
            "agent_settled" => break,
            _ => {}
        }
    }
    run.await.unwrap().unwrap();
    assert_eq!(said(&scene)["content"][0]["text"], "w".repeat(1000));
    assert_eq!(*heard.lock().unwrap(), 2);
    // The panic, and that it hears no more.
    assert_eq!(reports, 2);
    scene.publish("plugin1", hears(None));
    scene.prompt("hi").await;
    assert_eq!(*heard.lock().unwrap(), 4);
}

#[tokio::test]
async fn frames_are_told_before_the_wire_gets_them_and_slow_handlers_slow_the_stream() {
    // extensions §3.3: awaited in stream order
    let (url, _requests) = serve(vec![words(&["a", "b", "c"])]);
    let seen = Seen::default();
    let kept = Arc::clone(&seen);
    let slow = Plugin::new().on_event("provider_stream_event", move |event, ctx| {
        let kept = Arc::clone(&kept);
        async move {
            ctx.host().sleep_ms(2).await?;
            kept.lock().unwrap().push(event["data"]["word"].clone());
            Ok(Value::Null)
        }
    });
    let scene = open(&url, QUIET(), vec![slow]).await;
    scene.prompt("hi").await;
    assert_eq!(said(&scene)["content"][0]["text"], "abc");
    assert_eq!(
        *seen.lock().unwrap(),
        [json!("a"), json!("b"), json!("c"), Value::Null]
    );
}

#[tokio::test]
async fn summaries_pass_the_hooks_of_the_exchange_but_not_those_of_the_context() {
    // R32, L20
    let (url, requests) = serve(vec![words(&["a long answer"]), words(&["SUMMARY"])]);
    let seen = Seen::default();
    let contexts = Seen::default();
    let counted = Arc::clone(&contexts);
    let plugin = witness(&seen).on_event("context", move |event, _| {
        counted.lock().unwrap().push(event);
        async { Ok(Value::Null) }
    });
    let settings = json!({"retry": {"enabled": false}, "compaction": {"keepRecentTokens": 1}});
    let scene = open(&url, settings, vec![plugin]).await;
    scene.prompt("hi").await;
    scene.session.compact(None).await.unwrap();
    assert_eq!(requests.iter().take(2).count(), 2);
    assert_eq!(contexts.lock().unwrap().len(), 1);
    let asked = seen_types(&seen)
        .into_iter()
        .filter(|kind| kind == "before_provider_headers");
    assert_eq!(asked.count(), 2);
}
