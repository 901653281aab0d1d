//! Loading native plugins (`plugin-abi.md` §5, §6): when, for whom, how long at most, and what of a
//! library that changes between being found and being used. The libraries are the real ones.
#![allow(clippy::unwrap_used, reason = "test code")]

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pliant_kernel::dylib::{
    ChildLimits, LoadError, PluginHost, PluginRuntime, Stage, found_at, open,
};
use pliant_kernel::registry::{Generation, Rank};
use pliant_kernel::{Kernel, KernelOptions};
use pliant_sdk::Model;
use pliant_sdk::host::{Host, NoServices};
use pliant_sdk::plugin::{CallCtx, Invocation};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;

/// A wire and providers with key variables: loaded at first use.
const LAZY: &str = "pliant_openai_completions";
/// A tool and a hook: loaded when opened.
const EAGER: &str = "hello";

/// A library of the workspace. `cargo test` does not build them; all are built, so that cargo chooses
/// the same features as for everything else.
fn library(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let folder = test.ancestors().nth(2).unwrap().to_owned();
        let profile = match folder.file_name().unwrap().to_str().unwrap() {
            "debug" => "dev",
            profile => profile,
        };
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // What cargo tells a test about its package would look like a change to some build scripts.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
                cargo.env_remove(&*name);
            }
        }
        let built = cargo
            .args(["build", "--quiet", "--locked", "--workspace"])
            .args(["--profile", profile, "--target-dir"])
            .arg(folder.parent().unwrap())
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap())
            .status();
        assert!(built.unwrap().success(), "the workspace does not build");
        folder
    });
    folder.join(format!("{DLL_PREFIX}{name}{DLL_SUFFIX}"))
}

/// A plugin host whose loads are counted, and wait in their middle while the gate is shut.
struct Lab {
    folder: TempDir,
    host: Arc<PluginHost>,
    loads: Arc<AtomicUsize>,
    gate: watch::Sender<bool>,
}

impl Lab {
    fn new() -> Self {
        Self::with_limit(Duration::from_secs(10))
    }

    fn with_limit(limit: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let loads = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&loads);
        let (gate, open) = watch::channel(true);
        let start = folder.path().join("open");
        let host = PluginHost {
            runtime: PluginRuntime::with_start_limit(limit),
            stage: Stage::new(folder.path().join("cache"), folder.path().to_owned()),
            services: Arc::new(move |_| {
                counted.fetch_add(1, Ordering::SeqCst);
                Arc::new(NoServices)
            }),
            offers: vec!["tools.call", "log.write"],
            init: Box::new(move |_| {
                while !*open.borrow() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                json!({"settings": {"start": start}})
            }),
            program: None,
            isolates: Box::new(|_| false),
            limits: Box::new(|_| ChildLimits::default()),
        };
        Self {
            folder,
            host: Arc::new(host),
            loads,
            gate,
        }
    }

    /// A copy that a test may spoil.
    fn copy(&self, name: &str) -> PathBuf {
        let copy = self.folder.path().join("copy.so");
        fs::copy(library(name), &copy).unwrap();
        copy
    }

    fn open(&self, library: &Path) -> Result<Arc<dyn Generation>, LoadError> {
        open(found_at(library, Rank::User)?, &self.host)
    }

    fn loads(&self) -> usize {
        self.loads.load(Ordering::SeqCst)
    }
}

/// Asks a provider of the lazy library for its models.
async fn models(plugin: &dyn Generation) -> Result<usize, String> {
    let all = plugin.contributions();
    let provider = all.iter().find(|item| item.name == "deepseek").unwrap();
    let call = Invocation {
        op: "models".to_owned(),
        payload: b"null".to_vec(),
        ctx: CallCtx::answer_only(Host::from_services(NoServices)),
    };
    let answer = plugin.invoke(provider.id, call).await;
    let answer = answer.map_err(|error| error.to_string())?;
    let models: Vec<Model> = serde_json::from_slice(&answer).unwrap();
    Ok(models.len())
}

#[track_caller]
fn assert_says(said: &str, words: &[&str]) {
    for word in words {
        assert!(said.contains(word), "{word:?} is not in {said:?}");
    }
}

/// A copy of the fixture that says what it needs, with other words of the same length in its manifest.
fn needing(lab: &Lab, words: &str, others: &str) -> PathBuf {
    assert_eq!(words.len(), others.len());
    let copy = lab.copy("calls");
    let mut bytes = fs::read(&copy).unwrap();
    let places = memchr::memmem::find_iter(&bytes, words).collect::<Vec<_>>();
    for place in places {
        bytes[place..place + others.len()].copy_from_slice(others.as_bytes());
    }
    fs::write(&copy, bytes).unwrap();
    copy
}

/// `plugin-abi.md` §3: what a plugin needs is known before any of its code runs.
#[test]
fn a_plugin_that_needs_more_than_there_is_is_refused_before_its_code_runs() {
    let lab = Lab::new();
    assert!(
        lab.open(&lab.copy("calls")).is_ok(),
        "it is offered what it needs"
    );

    let loads = lab.loads();
    let missing = needing(&lab, "\"tools.call\"", "\"tools.dial\"");
    let said = lab.open(&missing).err().unwrap().to_string();
    assert_says(
        &said,
        &[
            "calls",
            "the host service \"tools.dial\"",
            "does not offer that",
        ],
    );

    let newer = needing(&lab, "\"kernel\":\"0.1\"", "\"kernel\":\"7.1\"");
    let said = lab.open(&newer).err().unwrap().to_string();
    assert_says(
        &said,
        &["calls", "needs pliant 7.1 or newer", "this is pliant 0.1"],
    );
    assert_eq!(lab.loads(), loads, "no code of it ran");
}

/// `plugin-abi.md` §5: a file that a build has not finished is not mapped; that passes.
#[tokio::test]
async fn a_library_cut_short_after_it_was_found_is_refused_until_it_is_whole() {
    let lab = Lab::new();
    let copy = lab.copy(LAZY);
    let plugin = lab.open(&copy).unwrap();
    assert_eq!(lab.loads(), 0, "opening loads nothing");

    let whole = fs::read(&copy).unwrap();
    fs::write(&copy, &whole[..whole.len() / 2]).unwrap();
    let said = models(&*plugin).await.unwrap_err();
    assert_says(
        &said,
        &[
            "openai-completions",
            "has changed since it was found",
            "Try again",
        ],
    );
    fs::remove_file(&copy).unwrap();
    let said = models(&*plugin).await.unwrap_err();
    assert_says(&said, &["copy.so", "cannot be read"]);
    fs::write(&copy, &whole).unwrap();
    assert!(models(&*plugin).await.unwrap() > 0);
}

/// `plugin-abi.md` §5: what runs is what was checked.
#[tokio::test]
async fn a_library_that_became_another_plugin_after_it_was_found_is_refused() {
    let lab = Lab::new();
    let copy = lab.copy(LAZY);
    let plugin = lab.open(&copy).unwrap();
    fs::copy(library(EAGER), &copy).unwrap();
    let said = models(&*plugin).await.unwrap_err();
    assert_says(
        &said,
        &[
            "has changed since it was found",
            "its manifest is another one",
        ],
    );
}

/// A library that the system's loader refuses stays refused: the file is looked at once.
#[tokio::test]
async fn a_failure_that_cannot_pass_is_kept() {
    let lab = Lab::new();
    let copy = lab.copy(LAZY);
    let whole = fs::read(&copy).unwrap();
    let mut spoiled = whole.clone();
    // The file's type: a core dump.
    spoiled[16] = 4;
    fs::write(&copy, spoiled).unwrap();
    let plugin = lab.open(&copy).unwrap();
    let said = models(&*plugin).await.unwrap_err();
    assert_says(&said, &["openai-completions", "cannot be loaded"]);
    fs::write(&copy, whole).unwrap();
    assert_eq!(models(&*plugin).await.unwrap_err(), said);
    assert_eq!(lab.loads(), 1);
}

#[tokio::test]
async fn first_callers_share_one_load_and_a_caller_that_leaves_does_not_end_it() {
    let lab = Lab::new();
    let plugin = lab.open(&library(LAZY)).unwrap();
    lab.gate.send_replace(false);
    let left = tokio::time::timeout(Duration::from_millis(20), models(&*plugin)).await;
    assert!(left.is_err(), "the load waits at the gate");
    let (one, two, ()) = tokio::join!(models(&*plugin), models(&*plugin), async {
        // Reached although both wait: no load holds the caller's thread.
        lab.gate.send_replace(true);
    });
    assert_eq!((one.is_ok(), two.is_ok()), (true, true), "{one:?}");
    assert_eq!(lab.loads(), 1);
}

/// `plugin-abi.md` §5.6: the instance is created under a time limit.
#[tokio::test]
async fn a_first_call_waits_for_a_slow_start_no_longer_than_the_limit() {
    let lab = Lab::with_limit(Duration::from_millis(50));
    let plugin = lab.open(&library(LAZY)).unwrap();
    lab.gate.send_replace(false);
    let said = models(&*plugin).await.unwrap_err();
    assert_says(
        &said,
        &["openai-completions", "did not start within 0.05 s"],
    );
    // It may come late; it is not started a second time.
    lab.gate.send_replace(true);
    for _ in 0..1000 {
        if models(&*plugin).await.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(models(&*plugin).await.is_ok());
    assert_eq!(lab.loads(), 1);
}

/// `plugin-abi.md` §5.6, for what is loaded when it is opened.
#[test]
fn opening_waits_for_a_slow_start_no_longer_than_the_limit() {
    let lab = Lab::with_limit(Duration::from_millis(50));
    lab.gate.send_replace(false);
    let Err(error) = lab.open(&library(EAGER)) else {
        panic!("it waits at the gate");
    };
    assert_says(
        &error.to_string(),
        &["hello", "did not start within 0.05 s"],
    );
    lab.gate.send_replace(true);
}

/// E08: an `init` that blocks.
#[test]
fn a_constructor_that_blocks_is_told_in_time_and_others_load() {
    let lab = Lab::with_limit(Duration::from_millis(500));
    let Err(error) = lab.open(&library("hangs")) else {
        panic!("it waits for a file");
    };
    assert_says(&error.to_string(), &["hangs", "did not start within 0.5 s"]);
    assert!(lab.open(&library(EAGER)).is_ok());
    fs::write(lab.folder.path().join("open"), "").unwrap();
}

/// `plugin-abi.md` §6: each drop that runs user code. Nothing keeps what a kernel has loaded.
#[test]
fn a_kernel_ends_although_a_plugin_panics_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let settings: Value = json!({"pluginSettings": {"panics": {"drop": true}}});
    fs::write(folder.path().join("settings.json"), settings.to_string()).unwrap();
    let mut options = KernelOptions::new(folder.path().to_owned(), folder.path().to_owned());
    options.plugins = vec![library("panics")];
    let kernel = Kernel::boot(options).unwrap();
    let registry = Arc::downgrade(kernel.registry());
    assert!(kernel.registry().snapshot().sources().len() == 1);
    drop(kernel);
    assert!(registry.upgrade().is_none(), "something keeps the registry");
}

/// E04, extensions §6.1: what a plugin was created with serves no more once it is replaced, also while a
/// call of it goes on; the call's own services do.
#[tokio::test]
async fn what_a_plugin_was_created_with_is_stale_once_it_is_replaced() {
    let lab = Lab::new();
    let plugin = lab.open(&library("bench")).unwrap();
    let all = plugin.contributions();
    let mut handlers = all.iter();
    let asks = handlers.find(|item| item.name == "message_end").unwrap().id;
    let ask = async || {
        let call = Invocation {
            op: "message_end".to_owned(),
            payload: b"null".to_vec(),
            ctx: CallCtx::answer_only(Host::from_services(NoServices)),
        };
        let answer = plugin.invoke(asks, call).await.unwrap();
        serde_json::from_slice::<String>(&answer).unwrap()
    };
    assert_eq!(ask().await, "unsupported", "it is asked");
    plugin.retire();
    assert_eq!(ask().await, "stale");
}
