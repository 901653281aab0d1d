//! A host over the local file system, and the running of a tool on it, for this crate's tests.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use pliant_sdk::host::{BoxFuture, ByteStream, PollBytes, Services, unframed};
use pliant_sdk::message::Content;
use pliant_sdk::plugin::{CallCtx, Caller, Flow};
use pliant_sdk::tool::{Tool, ToolCtx, ToolResult, ToolScene};
use pliant_sdk::{Error, Host};
use serde_json::{Value, json};

/// A directory that is gone after the test, and a session in it.
pub(crate) struct Dir {
    pub(crate) path: PathBuf,
    pub(crate) scene: ToolScene,
    /// Bytes in one chunk of a file.
    pub(crate) chunk: usize,
    pub(crate) cancelled: Arc<AtomicBool>,
    /// What the tools asked of the host, in order.
    log: Arc<Mutex<Vec<String>>>,
    /// Cancels the call when this service is called.
    pub(crate) cancel_at: &'static str,
}

impl Dir {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pliant-files-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        let path = path.canonicalize().unwrap();
        let scene = ToolScene {
            cwd: path.to_str().unwrap().to_owned(),
            images: true,
            image_limits: Value::Null,
        };
        Self {
            path,
            scene,
            chunk: 7,
            cancelled: Arc::default(),
            log: Arc::default(),
            cancel_at: "",
        }
    }

    /// A directory with these files.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let dir = Self::new();
        for (name, content) in files {
            dir.put(name, content.as_bytes());
        }
        dir
    }

    pub(crate) fn put(&self, name: &str, content: &[u8]) {
        let path = self.path.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn get(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path.join(name)).unwrap()
    }

    /// Services called so far: `read a.txt`.
    pub(crate) fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.log.lock().unwrap())
    }

    /// The services of this directory.
    pub(crate) fn host(&self) -> Host {
        Host::from_services(Disk {
            root: self.path.clone(),
            chunk: self.chunk,
            log: Arc::clone(&self.log),
            cancelled: Arc::clone(&self.cancelled),
            cancel_at: self.cancel_at,
        })
    }

    /// Runs a tool with arguments as the kernel gives them.
    pub(crate) fn run<T: Tool>(&self, tool: &T, arguments: Value) -> Result<ToolResult, Error> {
        let caller = Arc::new(TestCaller(Arc::clone(&self.cancelled)));
        let call = CallCtx::new(caller, self.host());
        let ctx = ToolCtx::new(call, "call-1".to_owned(), self.scene.clone());
        let input = serde_json::from_value(tool.prepare(arguments))?;
        block_on(tool.execute(input, ctx))
    }

    /// The text of an answer that is one text block.
    pub(crate) fn text<T: Tool>(&self, tool: &T, arguments: Value) -> String {
        let result = self.run(tool, arguments).unwrap();
        match result.content.as_slice() {
            [Content::Text(text)] => text.text.clone(),
            other => panic!("not one text: {other:?}"),
        }
    }

    /// The details of an answer, null when it has none.
    pub(crate) fn details<T: Tool>(&self, tool: &T, arguments: Value) -> Value {
        self.run(tool, arguments)
            .unwrap()
            .details
            .unwrap_or_default()
    }

    /// The sentence of a failure.
    pub(crate) fn error<T: Tool>(&self, tool: &T, arguments: Value) -> String {
        self.run(tool, arguments).unwrap_err().message
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Polls until ready: nothing here ever waits.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            return value;
        }
    }
}

struct TestCaller(Arc<AtomicBool>);

impl Caller for TestCaller {
    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn emit(&self, _: &[u8]) -> Flow {
        Flow::Continue
    }
}

struct Disk {
    root: PathBuf,
    chunk: usize,
    log: Arc<Mutex<Vec<String>>>,
    cancelled: Arc<AtomicBool>,
    cancel_at: &'static str,
}

impl Disk {
    fn note(&self, service: &str, path: &str) {
        let path = Path::new(path);
        let name = path.strip_prefix(&self.root).unwrap_or(path);
        let verb = service.strip_prefix("fs.").unwrap_or(service);
        self.log
            .lock()
            .unwrap()
            .push(format!("{verb} {}", name.display()));
        if self.cancel_at == verb {
            self.cancelled.store(true, Ordering::Relaxed);
        }
    }

    fn answer(&self, service: &str, payload: &[u8]) -> Result<Vec<u8>, Error> {
        let (header, body): (Value, _) = unframed(payload)?;
        let path = header["path"].as_str().unwrap_or_default();
        if service.starts_with("fs.") {
            self.note(service, path);
        }
        let answer = match service {
            "fs.stat" => {
                let meta = std::fs::metadata(path)?;
                json!({"kind": kind(&meta), "size": meta.len(), "realPath": path})
            }
            "fs.list" => {
                let entry = |entry: std::fs::DirEntry| {
                    let kind = std::fs::metadata(entry.path()).ok().map(|meta| kind(&meta));
                    json!({"name": entry.file_name().to_string_lossy(), "kind": kind})
                };
                std::fs::read_dir(path)?
                    .map(|e| Ok(entry(e?)))
                    .collect::<Result<Value, Error>>()?
            }
            "fs.write" => {
                if header["createDirs"] == true {
                    std::fs::create_dir_all(Path::new(path).parent().unwrap())?;
                }
                std::fs::write(path, body)?;
                Value::Null
            }
            _ => return Err(Error::unsupported(service)),
        };
        Ok(serde_json::to_vec(&answer)?)
    }

    fn stream(&self, service: &str, payload: &[u8]) -> Result<ByteStream, Error> {
        let header: Value = serde_json::from_slice(payload)?;
        let path = header["path"].as_str().unwrap_or_default();
        self.note(service, path);
        match service {
            "fs.read" => {
                let bytes = std::fs::read(path)?;
                let chunks = bytes.chunks(self.chunk).map(<[u8]>::to_vec).collect();
                Ok(ByteStream::from_chunks(chunks))
            }
            "fs.lock" => Ok(ByteStream::new(Locked {
                told: false,
                log: Arc::clone(&self.log),
            })),
            _ => Err(Error::unsupported(service)),
        }
    }
}

fn kind(meta: &std::fs::Metadata) -> &'static str {
    match meta {
        meta if meta.is_file() => "file",
        meta if meta.is_dir() => "directory",
        _ => "other",
    }
}

impl Services for Disk {
    fn call(&self, service: &str, payload: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        let answer = self.answer(service, &payload);
        Box::pin(async move { answer })
    }

    fn open(
        &self,
        service: &str,
        payload: Vec<u8>,
    ) -> BoxFuture<'static, Result<ByteStream, Error>> {
        let stream = self.stream(service, &payload);
        Box::pin(async move { stream })
    }

    fn notify(&self, _: &str, _: &[u8]) {}
}

/// Says in the log when the lock is given back.
struct Locked {
    told: bool,
    log: Arc<Mutex<Vec<String>>>,
}

impl PollBytes for Locked {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
        match std::mem::replace(&mut self.told, true) {
            false => Poll::Ready(Some(Ok(Vec::new()))),
            true => Poll::Pending,
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.log.lock().unwrap().push("unlock".to_owned());
    }
}
