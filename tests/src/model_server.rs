//! A scripted model on loopback, behind chat-completions and anthropic-messages: threads and sockets,
//! nothing else.
//!
//! Every request is recorded and checked against [`crate::wires`] and [`crate::request_rules`].
//! What was wrong makes [`ModelServer::finish`], or else the drop of the server, panic: no test can
//! forget to look.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

use crate::gate::Gate;
use crate::reply::{self, Ending, Kind, Reply};
use crate::request_rules::{self as rules, Conversations};
use crate::wires::openai_completions::{self, Service};
use crate::wires::{Dialect, anthropic_messages};

/// The one model that the server lists.
pub const MODEL: &str = "mock-model";

/// The server. Dropping it ends every connection.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Request {
    /// `GET`, `POST`, …
    pub method: String,
    /// Path with its query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// JSON, or null.
    pub body: Value,
    /// The messages in the form of chat-completions, whatever the wire.
    chat: Vec<Value>,
}

impl Request {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The messages of a chat request; of anthropic-messages as chat-completions would have them.
    pub fn messages(&self) -> &[Value] {
        &self.chat
    }

    /// Role and text of every message but the system messages.
    pub fn conversation(&self) -> Vec<(&str, String)> {
        let spoken = self.messages().iter().filter(|m| !rules::is_system(m));
        spoken.map(|m| (rules::role(m), rules::text(m))).collect()
    }

    /// The system messages' text.
    pub fn system_prompt(&self) -> String {
        let system = self.messages().iter().filter(|m| rules::is_system(m));
        system.map(rules::text).collect::<Vec<_>>().join("\n\n")
    }

    /// The text that a tool answered to a call; see [`reply::call_id`].
    pub fn tool_result(&self, call_id: &str) -> Option<String> {
        let found = self
            .messages()
            .iter()
            .find(|m| m["tool_call_id"] == *call_id);
        found.map(rules::text)
    }

    /// Names of the tools that the request declares.
    pub fn tools(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().map_or(&[][..], Vec::as_slice);
        tools
            .iter()
            .filter_map(|tool| tool["function"]["name"].as_str().or(tool["name"].as_str()))
            .collect()
    }

    /// The protocol it speaks, if it asks for an answer.
    pub fn dialect(&self) -> Option<Dialect> {
        Dialect::at(&self.path).filter(|_| self.method == "POST")
    }

    fn is_chat(&self) -> bool {
        self.dialect().is_some()
    }
}

impl ModelServer {
    /// Answers the first chat request with the first reply, and so on. Every reply must be asked for.
    pub fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::listen(0, Script::InOrder(replies.into_iter().collect())).expect("a free port exists")
    }

    /// Answers each chat request with what `answer` makes of it.
    pub fn answering(answer: impl FnMut(&Request) -> Reply + Send + 'static) -> Self {
        Self::listen(0, Script::Answering(Box::new(answer))).expect("a free port exists")
    }

    /// As [`ModelServer::start`] without replies, on a given port: for clients that look for one.
    ///
    /// # Errors
    /// When the port is taken.
    pub fn start_at(port: u16) -> io::Result<Self> {
        Self::listen(port, Script::InOrder(VecDeque::new()))
    }

    fn listen(port: u16, script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(script));
        let acceptor = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || accept(&listener, &shared))
        };
        Ok(Self {
            address,
            shared,
            acceptor: Some(acceptor),
        })
    }

    /// Base URL for a provider that speaks chat-completions: `http://127.0.0.1:PORT/v1`.
    pub fn url(&self) -> String {
        format!("{}/v1", self.messages_url())
    }

    /// Base URL for a provider that speaks anthropic-messages, whose paths bring the version.
    pub fn messages_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The chat requests so far.
    pub fn requests(&self) -> Vec<Request> {
        let all = self.all_requests();
        all.into_iter().filter(Request::is_chat).collect()
    }

    /// Every request so far, whatever it asked for.
    pub fn all_requests(&self) -> Vec<Request> {
        self.shared.state().requests.clone()
    }

    /// Waits until that many chat requests have arrived.
    pub fn wait_for(&self, requests: usize) {
        const LIMIT: Duration = Duration::from_secs(20);
        let arrived = |state: &mut State| {
            state.requests.iter().filter(|r| r.is_chat()).count() < requests && !state.closed
        };
        let state = self.shared.state();
        let waited = self
            .shared
            .changed
            .wait_timeout_while(state, LIMIT, arrived);
        let timed_out = waited.expect("no holder of the lock panics").1.timed_out();
        assert!(
            !timed_out,
            "{requests} requests did not arrive within {LIMIT:?}"
        );
    }

    /// Lets later requests leave out or change messages of earlier ones: after a compaction, a
    /// branch, an edit of the context. All other rules stay.
    pub fn allow_rewritten_history(&self) {
        self.shared.state().history_may_change = true;
    }

    /// Ends the server, checks the rules, and answers the chat requests.
    pub fn finish(mut self) -> Vec<Request> {
        self.close();
        let wrong = self.wrong();
        assert!(
            wrong.is_empty(),
            "the model server saw:\n- {}",
            wrong.join("\n- ")
        );
        self.shared.state().checked = true;
        self.requests()
    }

    fn wrong(&self) -> Vec<String> {
        let state = self.shared.state();
        let mut wrong = state.wrong.clone();
        if let Script::InOrder(replies) = &state.script
            && !replies.is_empty()
        {
            wrong.push(format!("replies that were never asked for: {replies:?}"));
        }
        wrong
    }

    fn close(&mut self) {
        let Some(acceptor) = self.acceptor.take() else {
            return;
        };
        self.shared.close();
        // Wakes the acceptor; it sees that the server is closed.
        let _ = TcpStream::connect(self.address);
        acceptor.join().expect("the acceptor does not panic");
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.close();
        if self.shared.state().checked {
            return;
        }
        let wrong = self.wrong();
        if thread::panicking() {
            wrong
                .iter()
                .for_each(|wrong| eprintln!("the model server saw: {wrong}"));
        } else {
            assert!(
                wrong.is_empty(),
                "the model server saw:\n- {}",
                wrong.join("\n- ")
            );
        }
    }
}

impl fmt::Debug for ModelServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModelServer({})", self.address)
    }
}

enum Script {
    InOrder(VecDeque<Reply>),
    Answering(Box<dyn FnMut(&Request) -> Reply + Send>),
}

impl Script {
    fn next(&mut self, request: &Request) -> Option<Reply> {
        match self {
            Self::InOrder(replies) => replies.pop_front(),
            // A failed assertion in the closure is reported like any other broken rule.
            Self::Answering(answer) => {
                panic::catch_unwind(AssertUnwindSafe(|| answer(request))).ok()
            }
        }
    }
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    script: Script,
    requests: Vec<Request>,
    /// By wire: a model that takes over is told what others said in its own way.
    conversations: [Conversations; 2],
    calls_made: usize,
    wrong: Vec<String>,
    history_may_change: bool,
    open: Vec<TcpStream>,
    gates: Vec<Gate>,
    closed: bool,
    checked: bool,
}

/// What a connection has to send for one chat request.
struct Turn {
    dialect: Dialect,
    reply: Reply,
    model: String,
    first_call: usize,
    conversation: usize,
}

impl Shared {
    fn new(script: Script) -> Self {
        Self {
            state: Mutex::new(State {
                script,
                requests: Vec::new(),
                conversations: Default::default(),
                calls_made: 0,
                wrong: Vec::new(),
                history_may_change: false,
                open: Vec::new(),
                gates: Vec::new(),
                closed: false,
                checked: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }

    /// Whether the connection may be served.
    fn admit(&self, connection: &TcpStream) -> bool {
        let mut state = self.state();
        state.open.extend(connection.try_clone());
        !state.closed
    }

    fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        for connection in state.open.drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
        state.gates.drain(..).for_each(|gate| gate.abandon());
        self.changed.notify_all();
    }

    /// A reply is about to stand at a gate; whether it may.
    fn keep(&self, gate: &Gate) -> bool {
        let mut state = self.state();
        state.gates.push(gate.clone());
        !state.closed
    }

    /// Waits; answers whether the server was closed meanwhile.
    fn closed_within(&self, pause: Duration) -> bool {
        let waited = self
            .changed
            .wait_timeout_while(self.state(), pause, |state| !state.closed);
        waited.expect("no holder of the lock panics").0.closed
    }

    /// Records and checks a chat request, and takes the reply to it.
    fn turn(&self, dialect: Dialect, request: Request) -> Turn {
        let mut guard = self.state();
        let state = &mut *guard;
        let number = state.requests.iter().filter(|r| r.is_chat()).count();
        let mut wrong = match dialect {
            Dialect::Completions => openai_completions::check(&request.body, Service::ANY),
            Dialect::Messages => {
                let mut wrong = anthropic_messages::check(&request.body);
                wrong.extend(anthropic_messages::alternation(&request.body));
                wrong
            }
        };
        wrong.extend(rules::lead(request.messages()));
        if request.body["stream"] != true {
            wrong.push("it asks for no stream".to_owned());
        }
        let (conversation, lost) = state.conversations[dialect as usize].place(request.messages());
        wrong.extend(lost.filter(|_| !state.history_may_change));
        let reply = state.script.next(&request).unwrap_or_else(|| {
            wrong.push("the script has no reply for it".to_owned());
            // A status that no client tries again.
            reply::error(
                400,
                "the script of the model server has no reply for this request",
            )
        });
        let wrong = wrong
            .into_iter()
            .map(|wrong| format!("request {number}: {wrong}"));
        state.wrong.extend(wrong);
        let first_call = state.calls_made + 1;
        state.calls_made += reply.calls();
        let model = request.body["model"].as_str().unwrap_or(MODEL).to_owned();
        state.requests.push(request);
        self.changed.notify_all();
        Turn {
            dialect,
            reply,
            model,
            first_call,
            conversation,
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut connections = Vec::new();
    for connection in listener.incoming().flatten() {
        if !shared.admit(&connection) {
            break;
        }
        let shared = Arc::clone(shared);
        // An error is a client that went away, or the end of the server.
        connections.push(thread::spawn(move || drop(serve(connection, &shared))));
    }
    for connection in connections {
        connection.join().expect("a connection does not panic");
    }
}

fn serve(connection: TcpStream, shared: &Shared) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut to_client = connection.try_clone()?;
    let mut from_client = BufReader::new(connection);
    while let Some(request) = read_request(&mut from_client, &mut to_client)? {
        if let Some(dialect) = request.dialect() {
            send(&shared.turn(dialect, request), &mut to_client, shared)?;
        } else {
            let lists_models = request.path.ends_with("/models");
            shared.state().requests.push(request);
            if lists_models {
                let models = json!({"object": "list", "data": [{"id": MODEL, "object": "model"}]});
                send_json(&mut to_client, 200, &models)?;
            } else {
                send_json(
                    &mut to_client,
                    404,
                    &json!({"error": {"message": "no such path"}}),
                )?;
            }
        }
    }
    Ok(())
}

/// Sends one reply. An error ends the connection, which is what some replies want.
fn send(turn: &Turn, client: &mut TcpStream, shared: &Shared) -> io::Result<()> {
    let reply = &turn.reply;
    wait_at(reply, 0, shared)?;
    match &reply.kind {
        Kind::Silence => return fall_silent(shared),
        Kind::HangUp => return client.shutdown(Shutdown::Both),
        Kind::Response {
            status,
            content_type,
            body,
        } => {
            return send_whole(client, *status, content_type, &reply.headers, body);
        }
        Kind::Parts(_) | Kind::Raw(_) => {}
    }
    let head = head_of(200, "text/event-stream", &reply.headers);
    client.write_all((head + "transfer-encoding: chunked\r\n\r\n").as_bytes())?;
    let events = reply.stream(turn.dialect, &turn.model, turn.first_call);
    for (at, event) in events.iter().enumerate() {
        if at > 0 {
            wait_at(reply, at, shared)?;
        }
        match reply.ending {
            Ending::CutAfter(limit) if at == limit => return client.shutdown(Shutdown::Both),
            Ending::CutWithin(limit, bytes) if at == limit => {
                write!(
                    client,
                    "{:x}\r\n{}",
                    event.len(),
                    &event[..bytes.min(event.len())]
                )?;
                return client.shutdown(Shutdown::Both);
            }
            Ending::HoldAfter(limit) if at == limit => return fall_silent(shared),
            _ => {}
        }
        if !reply.pause.is_zero() && shared.closed_within(reply.pause) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        if at + 1 == events.len() {
            // Before the client can know the end, and ask again.
            let said = reply.said(turn.first_call);
            let mut state = shared.state();
            state.conversations[turn.dialect as usize].said(turn.conversation, said);
        }
        write!(client, "{:x}\r\n{event}\r\n", event.len())?;
    }
    client.write_all(b"0\r\n\r\n")
}

fn fall_silent(shared: &Shared) -> io::Result<()> {
    const LONGER_THAN_ANY_TEST: Duration = Duration::from_secs(3600);
    shared.closed_within(LONGER_THAN_ANY_TEST);
    Err(io::ErrorKind::ConnectionAborted.into())
}

/// Stands at the gates before that event; an error when the server ends meanwhile.
fn wait_at(reply: &Reply, event: usize, shared: &Shared) -> io::Result<()> {
    for (_, gate) in reply.gates.iter().filter(|(at, _)| *at == event) {
        if !shared.keep(gate) || !gate.pass() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
    }
    Ok(())
}

fn send_json(client: &mut TcpStream, status: u16, body: &Value) -> io::Result<()> {
    send_whole(client, status, "application/json", &[], &body.to_string())
}

fn send_whole(
    client: &mut TcpStream,
    status: u16,
    content_type: &str,
    headers: &[(String, String)],
    body: &str,
) -> io::Result<()> {
    let head = head_of(status, content_type, headers);
    let length = body.len();
    client.write_all(format!("{head}content-length: {length}\r\n\r\n{body}").as_bytes())
}

/// The head of a response, up to what says how long it is.
fn head_of(status: u16, content_type: &str, headers: &[(String, String)]) -> String {
    let mut head = format!("HTTP/1.1 {status} Scripted\r\ncontent-type: {content_type}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head
}

/// Reads one request; nothing when the client has closed the connection between two.
fn read_request(
    client: &mut BufReader<TcpStream>,
    answers: &mut TcpStream,
) -> io::Result<Option<Request>> {
    let first = read_line(client)?;
    if first.is_empty() {
        return Ok(None);
    }
    let mut words = first.split(' ').map(ToOwned::to_owned);
    let method = words.next().unwrap_or_default();
    let path = words.next().unwrap_or_default();
    let mut headers = Vec::new();
    loop {
        let line = read_line(client)?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Request {
        method,
        path,
        headers,
        body: Value::Null,
        chat: Vec::new(),
    };
    if request.header("expect").is_some() {
        answers.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let length = request
        .header("content-length")
        .and_then(|length| length.parse().ok());
    let body = match length {
        Some(length) => read_bytes(client, length)?,
        None if request.header("transfer-encoding") == Some("chunked") => read_chunks(client)?,
        None => Vec::new(),
    };
    request.body = serde_json::from_slice(&body).unwrap_or_default();
    request.chat = match (request.dialect(), &request.body["messages"]) {
        (Some(Dialect::Messages), _) => anthropic_messages::as_chat(&request.body),
        (_, Value::Array(messages)) => messages.clone(),
        _ => Vec::new(),
    };
    Ok(Some(request))
}

/// A line without its end; empty at the end of the connection.
fn read_line(client: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    client.read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

fn read_bytes(client: &mut BufReader<TcpStream>, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    client.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_chunks(client: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = usize::from_str_radix(&read_line(client)?, 16).map_err(io::Error::other)?;
        body.extend(read_bytes(client, size)?);
        read_line(client)?;
        if size == 0 {
            return Ok(body);
        }
    }
}
