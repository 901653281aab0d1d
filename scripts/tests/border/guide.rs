//! The guide: a conversation with it, request by request.

use pliant_kernel::registry::Kind;
use pliant_scripts::shipped_extensions;
use pliant_sdk::Error;
use pliant_sdk::error::code;
use serde_json::{Value, json};

use crate::kit::{Bench, Fake, http_answer, load_with, request, user};

const ALL: [&str; 7] = ["read", "bash", "edit", "write", "ls", "find", "grep"];

/// A machine on which no server listens.
fn quiet() -> Fake {
    Fake::default().stream("http.stream", |_| {
        Err(Error::new(code::NETWORK, "connection refused"))
    })
}

async fn guide(fake: Fake) -> Bench {
    let shipped = shipped_extensions();
    let guide = shipped
        .iter()
        .find(|script| script.name == "guide")
        .unwrap();
    load_with(&guide.text, fake).await
}

fn system(tools: &[&str]) -> Value {
    let tools: Vec<Value> = tools.iter().map(|name| json!({"name": name})).collect();
    json!({"role": "system", "content": "be good", "toolsAdded": tools})
}

async fn answer(bench: &Bench, messages: &[Value]) -> Value {
    let answer = bench
        .invoke(Kind::Provider, "guide", "stream", request(messages))
        .await;
    answer.unwrap_or_else(|error| panic!("{error}"))
}

/// What the guide says to a text.
async fn say(bench: &Bench, text: &str) -> String {
    let message = answer(bench, &[system(&ALL), user(text)]).await;
    assert_eq!(message["stopReason"], "stop", "{message}");
    message["content"][0]["text"].as_str().unwrap().to_owned()
}

/// The tool call the guide makes for a text, as `tool {arguments}`.
async fn call(bench: &Bench, tools: &[&str], text: &str) -> String {
    let message = answer(bench, &[system(tools), user(text)]).await;
    assert_eq!(message["stopReason"], "toolUse", "{message}");
    let call = &message["content"][0];
    assert!(!call["id"].as_str().unwrap().is_empty());
    format!("{} {}", call["name"].as_str().unwrap(), call["arguments"])
}

#[tokio::test]
async fn it_is_a_provider_with_one_model_and_needs_nothing() {
    let bench = guide(quiet()).await;
    let spec = &bench.contribution(Kind::Provider, "guide").spec;
    assert_eq!(
        (&spec["keyless"], &spec["streams"]),
        (&json!(true), &json!(true))
    );
    let model = &spec["models"][0];
    assert_eq!(
        (&model["id"], &model["provider"], &model["contextWindow"]),
        (&json!("guide"), &json!("guide"), &json!(128_000))
    );
}

#[tokio::test]
async fn it_says_that_it_is_a_script_whenever_it_speaks_of_itself() {
    let bench = guide(quiet()).await;
    for text in [
        "hello",
        "What is pliant?",
        "help",
        "connect",
        "flurble",
        "who are you",
        "good morning",
    ] {
        assert!(
            say(&bench, text)
                .await
                .contains("a script, not a language model"),
            "{text}"
        );
    }
    for text in ["hi", "Hello!", "Hey, you", "good evening"] {
        assert!(say(&bench, text).await.lines().count() <= 2, "{text}");
    }
}

#[tokio::test]
async fn plain_requests_become_tool_calls() {
    let bench = guide(quiet()).await;
    for (text, expected) in [
        ("read src/main.rs", r#"read {"path":"src/main.rs"}"#),
        ("READ  a b.txt ", r#"read {"path":"a b.txt"}"#),
        ("cat x", r#"read {"path":"x"}"#),
        ("list .", r#"ls {"path":"."}"#),
        ("list", r#"ls {"path":"."}"#),
        ("ls src", r#"ls {"path":"src"}"#),
        ("find *.rs", r#"find {"pattern":"*.rs"}"#),
        (
            "search fn main(",
            r#"grep {"literal":true,"pattern":"fn main("}"#,
        ),
        (
            "run echo 'a b' | wc",
            r#"bash {"command":"echo 'a b' | wc"}"#,
        ),
        (
            "write a.txt: one: two",
            r#"write {"content":"one: two\n","path":"a.txt"}"#,
        ),
    ] {
        assert_eq!(call(&bench, &ALL, text).await, expected, "{text}");
    }
}

#[tokio::test]
async fn without_the_tool_the_shell_does_it_with_quoted_arguments() {
    let bench = guide(quiet()).await;
    for (text, expected) in [
        ("read it's; rm x", r#"cat -- 'it'\''s; rm x'"#),
        ("list .", "ls -la -- ."),
        ("find *.rs", "find . -name '*.rs' -not -path './.git/*'"),
        ("search $(x)", "grep -rnIF --exclude-dir=.git -e '$(x)' ."),
        ("write $a: `b`", "printf %s '`b`\n' > '$a'"),
    ] {
        let expected = format!("bash {}", json!({"command": expected}));
        assert_eq!(call(&bench, &["bash"], text).await, expected, "{text}");
    }
    let message = answer(&bench, &[system(&[]), user("run ls")]).await;
    assert!(
        message["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("has neither"),
        "{message}"
    );
}

#[tokio::test]
async fn a_request_that_lacks_something_is_explained() {
    let bench = guide(quiet()).await;
    assert!(say(&bench, "write notes").await.contains("Put a colon"));
    assert!(say(&bench, "read").await.contains("read FILE"));
}

#[tokio::test]
async fn what_a_tool_answered_is_shown_and_ends_the_turn() {
    let bench = guide(quiet()).await;
    let after = async |text: &str, is_error: bool| {
        let result = json!({"role": "toolResult", "toolCallId": "1", "toolName": "ls",
            "content": [{"type": "text", "text": text}], "isError": is_error});
        let later = system(&["more"]);
        let message = answer(&bench, &[system(&ALL), user("list ."), result, later]).await;
        assert_eq!(message["stopReason"], "stop");
        message["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        after("a\nb", false).await,
        "The tool \"ls\" answered:\n\na\nb"
    );
    assert_eq!(
        after("no such directory", true).await,
        "The tool \"ls\" failed:\n\nno such directory"
    );
    assert_eq!(
        after("", false).await,
        "The tool \"ls\" is done; it answered nothing."
    );
    let long = after(&"x\n".repeat(100), false).await;
    assert!(long.ends_with("x\n... and 60 more lines."), "{long}");
}

#[tokio::test]
async fn connecting_is_explained_with_keys_and_a_local_server() {
    let bench = guide(quiet()).await;
    let text = say(&bench, "How do I connect a provider?").await;
    for part in [
        "No model server answers on this machine",
        "export OPENROUTER_API_KEY=",
        "GROQ_API_KEY",
        "pliant --list-models",
        "--provider openrouter --model MODEL",
        "~/.pliant/agent/models.json",
        r#""baseUrl": "http://127.0.0.1:8080/v1""#,
    ] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}

#[tokio::test]
async fn a_server_on_the_machine_is_offered_with_the_exact_command() {
    let fake = Fake::default().stream("http.stream", |request| match request["url"].as_str() {
        Some("http://127.0.0.1:11434/v1/models") => Ok(http_answer(
            200,
            r#"{"object":"list","data":[{"id":"qwen3:8b"},{"id":"my model"}]}"#,
        )),
        Some("http://127.0.0.1:1234/v1/models") => Ok(http_answer(200, r#"{"data":null}"#)),
        Some("http://127.0.0.1:8080/v1/models") => Ok(http_answer(200, "<html>")),
        Some("http://127.0.0.1:8000/v1/models") => Ok(http_answer(404, "{}")),
        other => panic!("{other:?}"),
    });
    let bench = guide(fake).await;
    let text = say(&bench, "connect").await;
    assert!(
        text.contains("Ollama answers at http://127.0.0.1:11434/v1."),
        "{text}"
    );
    assert!(
        text.contains("pliant --provider ollama --model qwen3:8b"),
        "{text}"
    );
    assert!(text.contains(r#""id": "my model""#), "{text}");
    assert!(
        text.contains("LM Studio answers at http://127.0.0.1:1234/v1, but it has no model yet"),
        "{text}"
    );
    assert!(
        !text.contains("llama.cpp answers") && !text.contains("vLLM answers"),
        "{text}"
    );
    // The snippet is a valid models.json.
    let from = text.find('{').unwrap();
    let mut values = serde_json::Deserializer::from_str(&text[from..]).into_iter::<Value>();
    let snippet = values.next().unwrap().unwrap();
    assert_eq!(
        snippet,
        json!({"providers": {"ollama": {"api": "openai-completions", "apiKey": "none",
            "baseUrl": "http://127.0.0.1:11434/v1", "models": [{"id": "qwen3:8b"}, {"id": "my model"}]}}})
    );
    assert!(
        say(&bench, "flurble")
            .await
            .contains("A model server answers on this machine: Ollama")
    );
}

#[tokio::test]
async fn an_empty_conversation_is_answered_too() {
    let bench = guide(quiet()).await;
    let message = answer(&bench, &[]).await;
    assert!(
        message["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("I understand")
    );
}
