//! The scripted model server itself: what it sends, and that no broken rule goes unseen.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::panic;
use std::time::Duration;

use pliant_tests::{ModelServer, Reply, reply};
use serde_json::{Value, json};

/// A client that knows just enough HTTP.
struct Client(BufReader<TcpStream>);

impl Client {
    fn new(server: &ModelServer) -> Self {
        let url = server.url();
        let address = url.trim_start_matches("http://").trim_end_matches("/v1");
        Self(BufReader::new(
            TcpStream::connect(address).expect("the server listens"),
        ))
    }

    fn send(&mut self, method: &str, path: &str, body: &Value) {
        let body = body.to_string();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.0
            .get_mut()
            .write_all((head + &body).as_bytes())
            .expect("the server reads");
    }

    /// Status and body; what came of it, when the connection ended.
    fn receive(&mut self) -> (u16, String) {
        let head = self.head();
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let body = match length {
            Some(length) => self.exactly(length.parse().expect("a length is a number")),
            None => self.chunks(),
        };
        (status.unwrap_or(0), body)
    }

    fn head(&mut self) -> String {
        let mut head = String::new();
        while self.0.read_line(&mut head).unwrap_or(0) > 0 && !head.ends_with("\r\n\r\n") {}
        head
    }

    fn exactly(&mut self, length: usize) -> String {
        let mut bytes = vec![0; length];
        self.0
            .read_exact(&mut bytes)
            .expect("the server sends what it announced");
        String::from_utf8(bytes).expect("the server sends text")
    }

    fn chunks(&mut self) -> String {
        let mut body = String::new();
        loop {
            let mut size = String::new();
            let read = self.0.read_line(&mut size).unwrap_or(0);
            let size = usize::from_str_radix(size.trim_end(), 16).unwrap_or(0);
            if read > 0 {
                body += self.exactly(size + 2).trim_end_matches("\r\n");
                body += if size > 0 { "\n" } else { "" };
            }
            if size == 0 {
                return body;
            }
        }
    }
}

fn request(messages: &Value) -> Value {
    json!({"model": "m", "stream": true, "messages": messages})
}

fn first_request() -> Value {
    request(&json!([{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]))
}

/// Asks once and answers status and body.
fn ask(server: &ModelServer, body: &Value) -> (u16, String) {
    let mut client = Client::new(server);
    client.send("POST", "/v1/chat/completions", body);
    client.receive()
}

/// The deltas of a stream, joined by kind.
fn joined(stream: &str, member: &str) -> String {
    let chunks = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    let chunks = chunks.filter_map(|chunk| serde_json::from_str::<Value>(chunk).ok());
    chunks
        .filter_map(|chunk| {
            let delta = chunk["choices"][0]["delta"].pointer(member)?;
            delta.as_str().map(ToOwned::to_owned)
        })
        .collect()
}

#[test]
fn a_reply_arrives_in_pieces_that_make_the_whole() {
    let answer = reply::thinking("a long thought")
        .and_text("a long answer")
        .and_call("read", json!({"path": "src/lib.rs"}));
    let server = ModelServer::start([answer]);
    let (status, stream) = ask(&server, &first_request());
    assert_eq!(status, 200);
    assert_eq!(joined(&stream, "/reasoning_content"), "a long thought");
    assert_eq!(joined(&stream, "/content"), "a long answer");
    assert_eq!(joined(&stream, "/tool_calls/0/id"), "call_1");
    assert_eq!(joined(&stream, "/tool_calls/0/function/name"), "read");
    let arguments = joined(&stream, "/tool_calls/0/function/arguments");
    assert_eq!(arguments, r#"{"path":"src/lib.rs"}"#);
    assert!(
        stream.contains(r#""finish_reason":"tool_calls""#),
        "{stream}"
    );
    assert!(stream.contains(r#""prompt_tokens":100"#), "{stream}");
    assert!(stream.ends_with("data: [DONE]\n\n\n"), "{stream}");
    let requests = server.finish();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].body, first_request());
    assert_eq!(requests[0].conversation(), [("user", "u".to_owned())]);
    assert_eq!(requests[0].system_prompt(), "s");
}

#[test]
fn one_connection_carries_several_requests() {
    let server = ModelServer::start([reply::text("one"), reply::error(529, "overloaded")]);
    let mut client = Client::new(&server);
    client.send("GET", "/v1/models", &Value::Null);
    assert!(client.receive().1.contains(pliant_tests::MODEL));
    client.send("POST", "/v1/chat/completions", &first_request());
    assert_eq!(joined(&client.receive().1, "/content"), "one");
    client.send("POST", "/v1/chat/completions", &first_request());
    let (status, body) = client.receive();
    assert_eq!((status, body.contains("overloaded")), (529, true));
    client.send("GET", "/api/tags", &Value::Null);
    assert_eq!(client.receive().0, 404);
    assert_eq!(server.all_requests().len(), 4);
    assert_eq!(server.finish().len(), 2);
}

#[test]
fn replies_that_fail_do_so_where_they_were_told() {
    let cut = reply::text("never heard to the end").cut_after(2);
    let slow = reply::text("x").slow(Duration::from_millis(1));
    let server = ModelServer::start([cut, slow, reply::raw("data: 1\n\ndata: 2\n\n")]);
    assert_eq!(
        joined(&ask(&server, &first_request()).1, "/content"),
        "never"
    );
    assert_eq!(joined(&ask(&server, &first_request()).1, "/content"), "x");
    assert_eq!(
        ask(&server, &first_request()).1,
        "data: 1\n\n\ndata: 2\n\n\n"
    );
    server.finish();
}

#[test]
fn a_held_reply_ends_with_the_server() {
    let server = ModelServer::start([reply::hold(), reply::text("long").hold_after(1)]);
    let mut silent = Client::new(&server);
    silent.send("POST", "/v1/chat/completions", &first_request());
    server.wait_for(1);
    let mut begun = Client::new(&server);
    begun.send("POST", "/v1/chat/completions", &first_request());
    assert!(begun.head().contains(" 200 "));
    server.finish();
    assert_eq!(silent.receive(), (0, String::new()));
}

#[test]
fn a_closure_sees_the_request_it_answers() {
    let server = ModelServer::answering(|request| reply::text(&request.conversation()[0].1));
    assert_eq!(joined(&ask(&server, &first_request()).1, "/content"), "u");
    server.finish();
}

/// Runs the requests against the replies and answers what the server complains of at its end.
fn complaint(replies: Vec<Reply>, requests: &[Value]) -> String {
    let server = ModelServer::start(replies);
    for request in requests {
        ask(&server, request);
    }
    let ended = panic::catch_unwind(panic::AssertUnwindSafe(|| drop(server)));
    let payload = ended.expect_err("the server complains");
    *payload
        .downcast::<String>()
        .expect("the complaint is a text")
}

#[test]
fn a_broken_rule_fails_the_test_even_when_nobody_asks() {
    let one = || vec![reply::text("one")];
    assert!(complaint(one(), &[]).contains("never asked for"));
    let twice = complaint(one(), &[first_request(), first_request()]);
    assert!(
        twice.contains("request 1: the script has no reply"),
        "{twice}"
    );
    let no_system = request(&json!([{"role": "user", "content": "u"}]));
    assert!(complaint(one(), &[no_system]).contains("no system message"));

    let forgets = request(&json!([
        {"role": "system", "content": "s"}, {"role": "user", "content": "u"},
        {"role": "assistant", "content": "something else"}, {"role": "user", "content": "v"},
    ]));
    let replies = vec![reply::text("one"), reply::text("two")];
    let lost = complaint(replies, &[first_request(), forgets]);
    assert!(lost.contains("request 1: the model said"), "{lost}");
}

#[test]
fn history_may_change_where_a_test_says_so() {
    let server = ModelServer::start([reply::text("one"), reply::text("two")]);
    ask(&server, &first_request());
    server.allow_rewritten_history();
    let rewritten = json!([{"role": "system", "content": "s"}, {"role": "user", "content": "u"},
        {"role": "assistant", "content": "rewritten"}]);
    ask(&server, &request(&rewritten));
    assert_eq!(server.finish().len(), 2);
}
