//! Host functions over services.

use std::time::{Duration, Instant};

use pliant_sdk::Error;
use pliant_sdk::error::code;
use serde_json::json;

use crate::kit::{Fake, http_answer, load_with};

fn tool(body: &str) -> String {
    format!(
        "register_tool(#{{ name: \"t\", description: \"d\", execute: |args, ctx| {{ {body} }} }});"
    )
}

async fn check(fake: Fake, body: &str, expected: &str) {
    let bench = load_with(&tool(body), fake).await;
    assert_eq!(bench.tool_text("t", json!({})).await, expected, "{body}");
}

#[tokio::test]
async fn exec_collects_what_a_program_says_and_how_it_ends() {
    let run = |code: i64| {
        Fake::default().stream("exec.stream", move |request| {
            let exit = json!({"code": code, "timedOut": false});
            let said = format!("o{}", request["argv"]);
            Ok(vec![
                said.into_bytes(),
                b"o\xff!".to_vec(),
                format!("x{exit}").into_bytes(),
            ])
        })
    };
    check(
        run(3),
        "exec(\"git\", [\"log\", 1], #{ cwd: \"/r\", timeout: 5, env: #{ A: \"1\" } })",
        r#"{"code":3,"killed":false,"stderr":"","stdout":"[\"git\",\"log\",\"1\"]�!","truncated":false}"#,
    )
    .await;
    let bench = load_with(
        &tool("exec(\"a\", [], #{ cwd: \"/r\", timeout: 5, env: #{ A: \"1\" } })"),
        run(0),
    )
    .await;
    bench.tool("t", json!({})).await.unwrap();
    let asked = &bench.fake.asked("exec.stream")[0];
    assert_eq!(
        (&asked["cwd"], &asked["timeoutMs"], &asked["env"]),
        (&json!("/r"), &json!(5), &json!([["A", "1"]]))
    );
}

#[tokio::test]
async fn exec_reports_a_failed_start_and_cut_output_as_outcomes() {
    let missing = Fake::default().stream("exec.stream", |_| {
        Err(Error::new(code::NOT_FOUND, "no such program"))
    });
    check(
        missing,
        "let r = exec(\"nope\", []); `${r.code} ${r.stderr}`",
        "1 no such program",
    )
    .await;
    let endless = Fake::default().stream("exec.stream", |_| {
        let piece = [b"o".as_slice(), &vec![b'x'; 1 << 20]].concat();
        Ok(vec![piece; 40])
    });
    check(
        endless,
        "let r = exec(\"yes\", []); `${r.code} ${r.truncated} ${r.killed} ${r.stdout.len}`",
        "1 true true 16777216",
    )
    .await;
    // extensions §5.3: what is cut or killed never has the code 0.
    let chatty = || {
        Fake::default().stream("exec.stream", |_| {
            let exit = br#"x{"code":0,"timedOut":true}"#.to_vec();
            Ok(vec![b"oabc".to_vec(), b"odef".to_vec(), exit])
        })
    };
    for (most, expected) in [
        (0, "1 true true "),
        (4, "1 true true abcd"),
        (6, "1 false true abcdef"),
        (7, "1 false true abcdef"),
    ] {
        let run = format!("exec(\"say\", [], #{{ max_buffer: {most} }})");
        let shown = "`${r.code} ${r.truncated} ${r.killed} ${r.stdout}`";
        check(chatty(), &format!("let r = {run}; {shown}"), expected).await;
    }
    let negative = "exec(\"say\", [], #{ max_buffer: -1 })";
    let bench = load_with(&tool(negative), chatty()).await;
    let text = bench.tool_text("t", json!({})).await;
    assert!(text.contains("the options of exec: "), "{text}");
}

#[tokio::test]
async fn http_answers_status_headers_and_body() {
    let echo = || Fake::default().stream("http.stream", |_| Ok(http_answer(404, "{\"a\":1}")));
    check(
        echo(),
        "let r = http(#{ url: \"http://x/y\", headers: #{ accept: \"a\" } }); `${r.status} ${r.headers[\"content-type\"]} ${json_parse(r.body).a}`",
        "404 application/json 1",
    )
    .await;
    let bench = load_with(
        &tool("http(#{ url: \"http://x\", body: #{ q: 1 } }).status"),
        echo(),
    )
    .await;
    assert_eq!(bench.tool_text("t", json!({})).await, "404");
    let asked = &bench.fake.asked("http.stream")[0];
    assert_eq!(asked["method"], "POST");
    assert_eq!(
        asked["headers"],
        json!([["content-type", "application/json"]])
    );
    assert_eq!(asked["maxRetries"], 0);
}

#[tokio::test]
async fn an_http_failure_can_be_caught_and_is_the_models_to_read_otherwise() {
    let refused =
        || Fake::default().stream("http.stream", |_| Err(Error::new(code::NETWORK, "refused")));
    check(
        refused(),
        "try { http(#{ url: \"http://x\" }) } catch (e) { return `${e.code}: ${e.message}`; }",
        "network: refused",
    )
    .await;
    check(refused(), "http(#{ url: \"http://x\" })", "refused").await;
    let slow = Fake::default().slow(Duration::from_secs(60));
    check(
        slow,
        "http(#{ url: \"http://x\", timeout_ms: 20 })",
        "http://x did not answer within 20 ms",
    )
    .await;
}

#[tokio::test]
async fn http_all_waits_once_and_keeps_order_and_failures() {
    let fake = Fake::default()
        .stream("http.stream", |request| match request["url"].as_str() {
            Some("http://b") => Err(Error::new(code::NETWORK, "refused")),
            Some(url) => Ok(http_answer(200, url)),
            None => Ok(Vec::new()),
        })
        .slow(Duration::from_millis(100));
    let started = Instant::now();
    check(
        fake,
        "http_all([\"a\", \"b\", \"c\"].map(|n| #{ url: `http://${n}` })).map(|r| r.body ?? r.message)",
        r#"["http://a","refused","http://c"]"#,
    )
    .await;
    assert!(
        started.elapsed() < Duration::from_millis(280),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn files_are_read_and_listed_through_the_host() {
    let fake = Fake::default()
        .stream("fs.read", |request| match request["path"].as_str() {
            Some("a.txt") => Ok(vec![b"one ".to_vec(), b"two".to_vec()]),
            _ => Err(Error::new(code::NOT_FOUND, "no such file")),
        })
        .on("fs.list", |_| {
            Ok(json!([{"name": "b", "kind": "directory"}, {"name": "a", "kind": "file"}]))
        });
    check(
        fake,
        "let names = list_dir(\".\").map(|e| `${e.name}:${e.kind}`);
         [read_file(\"a.txt\"), names]",
        r#"["one two",["a:file","b:directory"]]"#,
    )
    .await;
    let fake = Fake::default().stream("fs.read", |_| {
        Err(Error::new(code::NOT_FOUND, "no such file"))
    });
    check(fake, "read_file(\"x\")", "x: no such file").await;
}

#[tokio::test]
async fn json_goes_both_ways() {
    check(
        Fake::default(),
        "json_stringify(json_parse(\"{\\\"b\\\": [1, 2.5, null], \\\"a\\\": true}\"))",
        r#"{"a":true,"b":[1,2.5,null]}"#,
    )
    .await;
    check(Fake::default(), "json_pretty([1])", "[\n  1\n]").await;
    check(
        Fake::default(),
        "json_parse(\"{\")",
        "json_parse: EOF while parsing an object at line 1 column 1",
    )
    .await;
}

#[tokio::test]
async fn log_print_and_debug_go_to_the_log() {
    let bench = load_with(
        &tool("log(\"a\"); log(\"error\", #{ n: 1 }); print(\"b\"); debug(\"c\"); 1"),
        Fake::default(),
    )
    .await;
    bench.tool("t", json!({})).await.unwrap();
    let lines: Vec<String> = bench
        .fake
        .asked("log.write")
        .iter()
        .map(|line| {
            format!(
                "{} {}",
                line["level"].as_str().unwrap(),
                line["message"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(
        lines[..3],
        [
            "info t.rhai: a",
            "error t.rhai: {\"n\":1}",
            "info t.rhai: b"
        ]
    );
    assert!(lines[3].starts_with("debug t.rhai: "), "{lines:?}");
}

/// An answer in several pieces.
fn pieces(status: u16, pieces: &'static [&'static [u8]]) -> Fake {
    Fake::default().stream("http.stream", move |_| {
        let head = json!({"status": status, "headers": [["content-type", "text/event-stream"]]});
        let head = std::iter::once(head.to_string().into_bytes());
        Ok(head
            .chain(pieces.iter().map(|piece| piece.to_vec()))
            .collect())
    })
}

/// Everything that a loop over the answer sees, as JSON.
fn all(shape: &str) -> String {
    format!(
        "let answer = http_stream(#{{ url: \"http://x\", body: #{{ a: 1 }} }}); let all = []; for piece in answer.{shape} {{ all.push(piece); }} json_stringify(all)"
    )
}

#[tokio::test]
async fn a_stream_is_read_as_events_lines_or_chunks() {
    // extensions §4.7; codemode has no such thing
    let events: &[&[u8]] = &[
        b"\xEF\xBB\xBFevent: a\r\ndata: 1\r\nda",
        b"ta: 2\r\n\r\n: nothing\n\nid: 7\ndata: \xC3",
        b"\xA4\n\ndata: last",
    ];
    check(
        pieces(200, events),
        &all("events()"),
        r#"[{"data":"1\n2","event":"a","id":null},{"data":"ä","event":null,"id":"7"},{"data":"last","event":null,"id":null}]"#,
    )
    .await;
    let lines: &[&[u8]] = &[b"{\"a\":", b"1}\r\n\n{\"b\"", b":2}"];
    let expected = r#"["{\"a\":1}","","{\"b\":2}"]"#;
    check(pieces(200, lines), &all("lines()"), expected).await;
    let chunks: &[&[u8]] = &[b"a\xE2\x82", b"\xAC", b"", b"b\xFF\xC3"];
    check(
        pieces(200, chunks),
        &all("chunks()"),
        r#"["a","€","b�","�"]"#,
    )
    .await;
    let text = "let answer = http_stream(#{ url: \"http://x\" }); `${answer.status} ${answer.headers[\"content-type\"]} ${answer.text()}`";
    check(
        pieces(429, &[b"slow ", b"down"]),
        text,
        "429 text/event-stream slow down",
    )
    .await;
}

#[tokio::test]
async fn a_stream_is_asked_for_as_it_was_written() {
    let body = "let answer = http_stream(#{ url: \"http://x\", headers: #{ A: \"1\" }, body: #{ b: 2 }, credential: \"acme\", timeout_ms: 9 }); answer.status";
    let bench = load_with(&tool(body), pieces(200, &[])).await;
    bench.tool("t", json!({})).await.unwrap();
    let asked = &bench.fake.asked("http.stream")[0];
    let credential = json!({"provider": "acme", "header": "authorization", "prefix": "Bearer "});
    assert_eq!(
        (&asked["method"], &asked["credential"]),
        (&json!("POST"), &credential)
    );
    let headers = json!([["A", "1"], ["content-type", "application/json"]]);
    assert_eq!(
        (&asked["headers"], &asked["timeoutMs"]),
        (&headers, &json!(9))
    );
    for (wrong, part) in [
        ("http_stream(#{})", "`url` is missing"),
        (
            "http_stream(#{ url: \"http://x\", retries: 3 })",
            "has no option `retries`",
        ),
    ] {
        let bench = load_with(&tool(wrong), Fake::default()).await;
        let said = bench.tool_text("t", json!({})).await;
        assert!(said.contains(part), "{said}");
    }
}

#[tokio::test]
async fn a_stream_ends_with_the_call_that_opened_it() {
    let text = "let kept = []; register_tool(#{ name: \"open\", description: \"d\", execute: || { kept.push(http_stream(#{ url: \"http://x\" })); \"opened\" } });
        register_tool(#{ name: \"read\", description: \"d\", execute: || kept[0].text() });
        register_tool(#{ name: \"twice\", description: \"d\", execute: || { let answer = http_stream(#{ url: \"http://x\" }); answer.text(); answer.text() } });";
    let bench = load_with(text, pieces(200, &[b"a"])).await;
    assert_eq!(bench.tool_text("open", json!({})).await, "opened");
    let late = bench.tool_text("read", json!({})).await;
    assert!(late.contains("belongs to a call that has ended"), "{late}");
    let twice = bench.tool_text("twice", json!({})).await;
    assert!(
        twice.contains("was closed, or is read elsewhere"),
        "{twice}"
    );
}
