//! A model that replays prepared bytes and notes two times per request: when it had arrived in full
//! and when its answer was sent. Unlike the model server of the tests it parses and checks
//! nothing, so that next to no time of these is its own.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The server. It lives in a thread until the bench ends.
#[derive(Debug)]
pub struct Replay {
    address: SocketAddr,
    tape: Arc<Tape>,
}

/// The answers, and what has happened so far.
#[derive(Debug, Default)]
struct Tape {
    answers: Mutex<Vec<Vec<u8>>>,
    times: Mutex<Vec<Times>>,
}

/// Of one request.
#[derive(Debug, Clone, Copy)]
struct Times {
    arrived: Instant,
    answered: Instant,
}

impl Replay {
    /// Starts a server with nothing to say.
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port exists");
        let address = listener.local_addr().expect("a listener has an address");
        let tape = Arc::new(Tape::default());
        let of_server = Arc::clone(&tape);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let tape = Arc::clone(&of_server);
                // An error is a client that went away.
                thread::spawn(move || drop(serve(connection, &tape)));
            }
        });
        Self { address, tape }
    }

    /// Base URL for a provider.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Answers the next requests with these, one after the other, and forgets earlier times.
    pub fn load(&self, answers: impl IntoIterator<Item = Answer>) {
        let mut bytes: Vec<Vec<u8>> = answers.into_iter().map(Answer::into_bytes).collect();
        bytes.reverse();
        *locked(&self.tape.answers) = bytes;
        locked(&self.tape.times).clear();
    }

    /// Since the last load: the time from each answer's end to the next request's full arrival,
    /// which is the client's own. The last answer has none.
    pub fn turns(&self) -> Vec<Duration> {
        let times = locked(&self.tape.times);
        let pairs = times.windows(2);
        pairs
            .map(|pair| pair[1].arrived.saturating_duration_since(pair[0].answered))
            .collect()
    }
}

/// One streamed answer, as a list of deltas.
#[derive(Debug)]
pub struct Answer {
    deltas: Vec<Value>,
    finish_reason: &'static str,
}

impl Answer {
    /// A text in that many deltas of a few letters, as models stream it.
    pub fn text(deltas: usize) -> Self {
        let words = [
            " the", " tree", " keeps", ",", " each", " entry", " 42", ".\n",
        ];
        let words = words.iter().cycle().take(deltas);
        Self {
            deltas: words.map(|word| json!({"content": word})).collect(),
            finish_reason: "stop",
        }
    }

    /// A call of `read`.
    pub fn read(number: usize, path: &str) -> Self {
        let call = |function: Value| json!({"tool_calls": [{"index": 0, "function": function}]});
        let mut first = call(json!({"name": "read", "arguments": ""}));
        first["tool_calls"][0]["id"] = json!(format!("call_{number}"));
        first["tool_calls"][0]["type"] = json!("function");
        let arguments = json!({"path": path}).to_string();
        Self {
            deltas: vec![first, call(json!({"arguments": arguments}))],
            finish_reason: "tool_calls",
        }
    }

    fn into_bytes(self) -> Vec<u8> {
        let choice = |delta: Value, finish: Option<&str>| json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        let start = choice(json!({"role": "assistant", "content": ""}), None);
        let finish = choice(json!({}), Some(self.finish_reason));
        let usage = json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110});
        let mut bytes = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
            transfer-encoding: chunked\r\n\r\n"
            .to_vec();
        push(&mut bytes, &chunk(start));
        for delta in self.deltas {
            push(&mut bytes, &chunk(choice(delta, None)));
        }
        push(&mut bytes, &chunk(finish));
        let mut last = chunk(json!([]));
        last["usage"] = usage;
        push(&mut bytes, &last);
        push_text(&mut bytes, "data: [DONE]\n\n");
        bytes.extend_from_slice(b"0\r\n\r\n");
        bytes
    }
}

fn chunk(choices: Value) -> Value {
    json!({
        "id": "chatcmpl-replayed", "object": "chat.completion.chunk", "created": 1,
        "model": "mock-model", "choices": choices,
    })
}

/// One event is one chunk of the transfer.
fn push(bytes: &mut Vec<u8>, event: &Value) {
    push_text(bytes, &format!("data: {event}\n\n"));
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    let length = text.len();
    bytes.extend_from_slice(format!("{length:x}\r\n{text}\r\n").as_bytes());
}

fn serve(connection: TcpStream, tape: &Tape) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut to_client = connection.try_clone()?;
    let mut from_client = BufReader::with_capacity(1 << 16, connection);
    let mut body = Vec::new();
    while let Some(length) = read_head(&mut from_client)? {
        body.resize(length, 0);
        from_client.read_exact(&mut body)?;
        let arrived = Instant::now();
        let Some(answer) = locked(&tape.answers).pop() else {
            let none = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
            to_client.write_all(none)?;
            continue;
        };
        // Before the write, for after it the client may be at work already: the figures include
        // the sending of an answer, which for a tool call is a few hundred bytes.
        let answered = Instant::now();
        to_client.write_all(&answer)?;
        locked(&tape.times).push(Times { arrived, answered });
    }
    Ok(())
}

/// Reads a request's head and answers the length of its body; nothing at the end of the connection.
fn read_head(client: &mut impl BufRead) -> io::Result<Option<usize>> {
    let (mut length, mut line) = (0, String::new());
    loop {
        line.clear();
        if client.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            return Ok(Some(length));
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder of the lock panics")
}
