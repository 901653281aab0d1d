//! What the kernel lends to plugins and scripts: HTTP, processes, files, time, configuration, log.
//! Every effect of a plugin passes here, which is where tracing, cancellation and policy apply.
//!
//! Services are addressed by name with JSON payloads (`plugin-abi.md` §3); a name nobody knows is
//! the error `unsupported`, never a panic.

pub mod actions;
pub mod clock;
mod files;
mod home;
mod http;
mod process;
pub mod snapshots;
mod store;
pub mod ui;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::{
    BoxFuture, ByteStream, ExecRequest, HttpRequest, PollBytes, Services, unframed,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::environment::Environment;
use crate::registry::Source;
use crate::settings::LiveSettings;
use actions::{Actions, Ask, Asker};

pub(crate) use http::frames_the_body;
pub use http::{HttpClient, HttpSettings, ProxyRules};
pub(crate) use http::{MAX_RETRY_DELAY_MS, asked_delay};
pub use process::{ProcessEnv, default_shell};
pub use snapshots::Snapshots;

/// Who asks for whose key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRequest {
    /// Name of the source whose request it is.
    pub source: String,
    /// The provider.
    pub provider: String,
}

/// Answers the key of a provider; the kernel's models know it, and who may use it.
pub type KeyLookup =
    Box<dyn Fn(KeyRequest) -> BoxFuture<'static, Result<Option<String>, Error>> + Send + Sync>;

/// Answers what a source learns of a flag, by the names of both.
pub type FlagLookup = Box<dyn Fn(&str, &str) -> Value + Send + Sync>;

/// The services of a kernel, shared by everything it runs.
pub struct HostServices {
    http: HttpClient,
    home: home::Home,
    locks: files::FileLocks,
    settings: Arc<LiveSettings>,
    environment: Environment,
    cwd: PathBuf,
    shell: PathBuf,
    removed_variables: Vec<String>,
    key: KeyLookup,
    flag: FlagLookup,
    running: Arc<Running>,
    store: Option<store::Store>,
    snapshots: Option<Arc<Snapshots>>,
}

/// Counts the processes that somebody still listens to.
#[derive(Debug, Default)]
struct Running {
    count: AtomicUsize,
    ended: Notify,
}

/// The stream of a process, counted until the process has been told to end.
struct CountedStream {
    /// Before the count: dropping the stream kills the process.
    stream: ByteStream,
    _counted: Counted,
}

struct Counted(Arc<Running>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::SeqCst);
        self.0.ended.notify_waiters();
    }
}

impl PollBytes for CountedStream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
        self.stream.poll_next(cx)
    }
}

impl std::fmt::Debug for HostServices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostServices")
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

impl HostServices {
    /// `removed_variables` are taken from the environment of child processes: the keys of providers.
    #[must_use]
    pub fn new(
        settings: Arc<LiveSettings>,
        environment: Environment,
        cwd: PathBuf,
        removed_variables: Vec<String>,
        key: KeyLookup,
        flag: FlagLookup,
    ) -> Self {
        let at_start = settings.now();
        let http = HttpSettings {
            idle_timeout_ms: at_start.http_idle_timeout_ms().unwrap_or(0),
            proxies: ProxyRules::from_lookup(|name| environment.get(name).map(str::to_owned))
                .or_setting(at_start.used().http_proxy.as_deref()),
        };
        let user_agent = concat!("pliant/", env!("CARGO_PKG_VERSION"));
        let shell = match &at_start.used().shell_path {
            Some(shell) => environment.at_home(Path::new(shell)),
            None => default_shell(environment.raw("PATH").unwrap_or_default()),
        };
        Self {
            http: HttpClient::new(user_agent, http),
            home: home::Home::default(),
            locks: files::FileLocks::default(),
            settings,
            environment,
            cwd,
            shell,
            removed_variables,
            key,
            flag,
            running: Arc::default(),
            store: None,
            snapshots: None,
        }
    }

    /// Keeps snapshots of the folders that sessions work in.
    #[must_use]
    pub fn keeping_snapshots(self, snapshots: Snapshots) -> Self {
        Self {
            snapshots: Some(Arc::new(snapshots)),
            ..self
        }
    }

    /// Lets sources keep things in this folder, which is made when one does.
    #[must_use]
    pub fn keeping_state_in(self, folder: PathBuf) -> Self {
        Self {
            store: Some(store::Store::new(folder)),
            ..self
        }
    }

    /// The variables that count.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Connections live on the runtime of the caller from now on.
    pub fn settle_here(&self) {
        self.home.settle();
    }

    /// Returns when no process of a tool runs any more, or after `limit`. A plugin drops what was
    /// aborted on threads of its own, and the program must not end before that.
    pub async fn processes_ended(&self, limit: Duration) {
        let ended = async {
            loop {
                let ended = self.running.ended.notified();
                if self.running.count.load(Ordering::SeqCst) == 0 {
                    return;
                }
                ended.await;
            }
        };
        // The limit is for a plugin that holds a process and never lets go.
        let _ = tokio::time::timeout(limit, ended).await;
    }

    async fn exec(&self, request: ExecRequest, env: &ProcessEnv) -> Result<ByteStream, Error> {
        self.running.count.fetch_add(1, Ordering::SeqCst);
        let counted = Counted(Arc::clone(&self.running));
        let stream = process::stream(request, env).await?;
        Ok(ByteStream::new(CountedStream {
            stream,
            _counted: counted,
        }))
    }

    /// The services of one source, bound to a session if there is one.
    #[must_use]
    pub fn for_source(
        self: &Arc<Self>,
        source: &Source,
        asker: Option<Asker>,
    ) -> Arc<dyn Services> {
        Arc::new(Bound {
            host: Arc::clone(self),
            source: source.name.clone(),
            asker,
        })
    }
}

/// The services as one source in one session sees them.
struct Bound {
    host: Arc<HostServices>,
    source: String,
    asker: Option<Asker>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PathPayload {
    path: String,
    #[serde(default)]
    offset: u64,
    #[serde(default)]
    create_dirs: bool,
}

/// The names answered by `host.services`.
const SERVICES: [&str; 17] = [
    "log.write",
    "config.get",
    "flag.get",
    "state.get",
    "state.put",
    "http.request",
    "http.stream",
    "exec.run",
    "exec.stream",
    "fs.stat",
    "fs.read",
    "fs.write",
    "fs.list",
    "fs.lock",
    "time.sleep",
    "task.spawn",
    "host.services",
];

/// Names of the services that need no session.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let all = SERVICES.into_iter().chain(snapshots::SERVICES);
    all.chain(ui::SERVICES)
}

impl Bound {
    fn cwd(&self) -> &Path {
        self.asker
            .as_ref()
            .map_or(&self.host.cwd, |asker| asker.session.cwd())
    }

    /// Relative paths start in the session's directory.
    fn path(&self, payload: &[u8]) -> Result<(PathBuf, PathPayload), Error> {
        let payload: PathPayload = serde_json::from_slice(payload)?;
        Ok((self.cwd().join(&payload.path), payload))
    }

    fn process_env(&self) -> ProcessEnv {
        ProcessEnv {
            cwd: self.cwd().to_path_buf(),
            shell: self.host.shell.clone(),
            prefix: self.host.settings.now().used().shell_command_prefix.clone(),
            extra: vec![
                ("AI_AGENT".to_owned(), "pliant".to_owned()),
                ("PLIANT_CODING_AGENT".to_owned(), "true".to_owned()),
            ],
            session: self
                .asker
                .as_ref()
                .map(|asker| asker.session.environment())
                .unwrap_or_default(),
            removed: self.host.removed_variables.clone(),
        }
    }

    async fn http(&self, payload: Vec<u8>) -> Result<ByteStream, Error> {
        let (request, body) = unframed::<HttpRequest>(&payload)?;
        let body_at = payload.len() - body.len();
        let body = bytes::Bytes::from(payload).slice(body_at..);
        let secret = match &request.credential {
            Some(credential) => {
                let (source, provider) = (self.source.clone(), credential.provider.clone());
                (self.host.key)(KeyRequest { source, provider }).await?
            }
            None => None,
        };
        tracing::debug!(target: "pliant::http", source = %self.source, method = %request.method, "request");
        let host = Arc::clone(&self.host);
        let sending = async move { host.http.stream(request, secret, body).await };
        self.host.home.run(sending).await
    }

    fn config(&self, payload: &[u8]) -> Result<Value, Error> {
        let request: Value = serde_json::from_slice(payload)?;
        let settings = self.host.settings.now();
        match request.get("key") {
            None | Some(Value::Null) => Ok(settings.written().clone()),
            Some(Value::String(key)) => Ok(settings.get(key).clone()),
            Some(_) => Err(Error::invalid("the \"key\" of config.get is a text")),
        }
    }

    fn flag(&self, payload: &[u8]) -> Result<Value, Error> {
        let request: Value = serde_json::from_slice(payload)?;
        let name = request.get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| Error::invalid("flag.get needs a \"name\""))?;
        Ok((self.host.flag)(&self.source, name))
    }

    fn store(&self, service: &str) -> Result<&store::Store, Error> {
        self.host.store.as_ref().ok_or_else(|| {
            let message = format!("{service} has no place to keep things in this program.");
            Error::new(code::UNAVAILABLE, message)
        })
    }

    async fn sleep(&self, payload: &[u8]) -> Result<Value, Error> {
        let request: Value = serde_json::from_slice(payload)?;
        let ms = request.get("ms").and_then(Value::as_u64);
        clock::sleep_ms(ms.ok_or_else(|| Error::invalid("time.sleep needs \"ms\""))?).await;
        Ok(Value::Null)
    }

    /// Services of the front end need a session: it knows for whom something is shown.
    async fn ask_user(&self, service: &str, payload: &[u8]) -> Result<Value, Error> {
        let asker = self
            .asker
            .as_ref()
            .ok_or_else(|| ui::unavailable(service))?;
        let leaving = asker.session.leaving();
        tokio::select! {
            biased;
            answer = ui::answer(&asker.session, service, payload) => answer,
            () = leaving.cancelled() => Ok(Value::Null),
        }
    }

    async fn answer(&self, service: &str, payload: Vec<u8>) -> Result<Vec<u8>, Error> {
        let json = match service {
            "config.get" => self.config(&payload)?,
            "flag.get" => self.flag(&payload)?,
            "state.get" => self.store(service)?.get(&self.source, &payload).await?,
            "state.put" => self.store(service)?.put(&self.source, &payload).await?,
            "time.sleep" => self.sleep(&payload).await?,
            "fs.stat" => {
                let (path, _) = self.path(&payload)?;
                serde_json::to_value(files::stat(&path)?)?
            }
            "fs.list" => {
                let (path, _) = self.path(&payload)?;
                serde_json::to_value(files::list(&path).await?)?
            }
            "fs.write" => {
                let (header, body) = unframed::<Value>(&payload)?;
                let (path, options) = self.path(header.to_string().as_bytes())?;
                files::write(&path, options.create_dirs, body.to_vec()).await?;
                Value::Null
            }
            "http.request" => return self.http_request(payload).await,
            "exec.run" => return self.exec_run(&payload).await,
            "host.services" => self.service_names(),
            _ if snapshots::SERVICES.contains(&service) => self.snapshot(service, &payload).await?,
            _ if service.starts_with("ui.") => self.ask_user(service, &payload).await?,
            _ => self.ask_session(service, &payload).await?,
        };
        Ok(serde_json::to_vec(&json)?)
    }

    /// Going back is for commands: in a handler or tool it would take the files from under others.
    async fn snapshot(&self, service: &str, payload: &[u8]) -> Result<Value, Error> {
        let scope = self.asker.as_ref().map(|asker| &asker.scope);
        let is_command = matches!(scope, Some(actions::CallScope::Command { .. }));
        if service == "files.restore" && !is_command {
            let message = "files.restore can be used in a command only: elsewhere it would change files that others work on. Register a command for it.";
            return Err(Error::new(code::UNAVAILABLE, message));
        }
        let Some(snapshots) = self.host.snapshots.clone() else {
            let message = format!("{service} has no place to keep things in this program.");
            return Err(Error::new(code::UNAVAILABLE, message));
        };
        snapshots.answer(service, self.cwd(), payload).await
    }

    fn service_names(&self) -> Value {
        let of_session = self.asker.as_ref().map(|asker| asker.session.services());
        json!(
            names()
                .chain(of_session.into_iter().flatten())
                .collect::<Vec<_>>()
        )
    }

    /// Everything else is a matter of the session, if the call belongs to one.
    async fn ask_session(&self, service: &str, payload: &[u8]) -> Result<Value, Error> {
        let (session, ask) = self.of_session(service, payload)?;
        session.ask(service, ask).await
    }

    fn of_session(&self, service: &str, payload: &[u8]) -> Result<(Arc<dyn Actions>, Ask), Error> {
        let Some(asker) = self.asker.clone() else {
            return Err(Error::unsupported(&format!(
                "the service \"{service}\" outside a session"
            )));
        };
        let (session, scope) = (asker.current(), asker.scope);
        let payload = match payload {
            [] => Value::Null,
            payload => serde_json::from_slice(payload)?,
        };
        let ask = Ask {
            source: self.source.clone(),
            scope,
            payload,
        };
        Ok((session, ask))
    }

    /// The whole response at once: its head as JSON, a line feed, its body.
    async fn http_request(&self, payload: Vec<u8>) -> Result<Vec<u8>, Error> {
        let mut stream = self.http(payload).await?;
        let mut answer = match stream.next().await {
            Some(head) => head?,
            None => {
                return Err(Error::new(
                    code::NETWORK,
                    "Connection error.: the response had no head",
                ));
            }
        };
        answer.push(b'\n');
        answer.extend(stream.read_to_end(WHOLE_LIMIT).await?);
        Ok(answer)
    }

    /// The whole run at once: its exit as JSON, a line feed, its output.
    async fn exec_run(&self, payload: &[u8]) -> Result<Vec<u8>, Error> {
        let request: ExecRequest = serde_json::from_slice(payload)?;
        let mut stream = self.host.exec(request, &self.process_env()).await?;
        let mut output = Vec::new();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk?;
            match chunk.split_first() {
                Some((b'x', exit)) => {
                    let mut answer = exit.to_vec();
                    answer.push(b'\n');
                    answer.extend(output);
                    return Ok(answer);
                }
                Some((_, bytes)) if output.len() < WHOLE_LIMIT => output.extend_from_slice(bytes),
                _ => {}
            }
        }
        Err(Error::failed("the process ended without a status"))
    }

    async fn stream(&self, service: &str, payload: Vec<u8>) -> Result<ByteStream, Error> {
        match service {
            "http.stream" => self.http(payload).await,
            "exec.stream" => {
                let request: ExecRequest = serde_json::from_slice(&payload)?;
                tracing::debug!(target: "pliant::exec", source = %self.source);
                self.host.exec(request, &self.process_env()).await
            }
            "fs.read" => {
                let (path, options) = self.path(&payload)?;
                files::read(&path, options.offset).await
            }
            "fs.lock" => {
                let (path, _) = self.path(&payload)?;
                Ok(self.host.locks.lock(&path).await)
            }
            _ => {
                let (session, ask) = self.of_session(service, &payload)?;
                session.open(service, ask).await
            }
        }
    }
}

/// Services that answer at once hold at most this much.
const WHOLE_LIMIT: usize = 64 << 20;

impl Services for Bound {
    fn call(&self, service: &str, payload: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        let (this, service) = (self.clone(), service.to_owned());
        Box::pin(async move { this.answer(&service, payload).await })
    }

    fn open(
        &self,
        service: &str,
        payload: Vec<u8>,
    ) -> BoxFuture<'static, Result<ByteStream, Error>> {
        let (this, service) = (self.clone(), service.to_owned());
        Box::pin(async move { this.stream(&service, payload).await })
    }

    fn notify(&self, service: &str, payload: &[u8]) {
        if service != "log.write" {
            tracing::debug!(target: "pliant::host", source = %self.source, service, "unknown notification");
            return;
        }
        let line: Value = serde_json::from_slice(payload).unwrap_or_default();
        let text = line
            .get("message")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let source = &self.source;
        match line.get("level").and_then(Value::as_str) {
            Some("error") => tracing::error!(target: "pliant::plugin", %source, "{text}"),
            Some("warn") => tracing::warn!(target: "pliant::plugin", %source, "{text}"),
            Some("debug") => tracing::debug!(target: "pliant::plugin", %source, "{text}"),
            Some("trace") => tracing::trace!(target: "pliant::plugin", %source, "{text}"),
            _ => tracing::info!(target: "pliant::plugin", %source, "{text}"),
        }
    }
}

impl Clone for Bound {
    fn clone(&self) -> Self {
        Self {
            host: Arc::clone(&self.host),
            source: self.source.clone(),
            asker: self.asker.clone(),
        }
    }
}
