//! Where the measuring takes place: a home, the program beside its plugins, and the replayed model.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX, EXE_SUFFIX};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime};

use pliant_tests::{MODEL, PROVIDER, TempHome, fixture_plugin};
use serde_json::json;

use crate::measure::{Run, measure};
use pliant_tests::replay::{Answer, Replay};

/// Everything that a case needs.
pub struct Lab {
    home: TempHome,
    program: PathBuf,
    /// Where this bench was built.
    pub target_dir: PathBuf,
    /// The model behind every run.
    pub model: Replay,
}

impl Lab {
    /// Builds the program and its plugins as this bench was built, and copies them: a build that
    /// somebody starts meanwhile must not change what is measured.
    pub fn build() -> Self {
        eprintln!("building the program and its plugins");
        // A fixture is built with everything else, into the same folder.
        let built = fixture_plugin("hello");
        let built = built.parent().expect("a library is in a folder");
        let home = TempHome::new();
        let program = copy_program(built, &home.tmp_dir().join("bin"));
        let model = Replay::start();
        // Large enough that no context is ever full.
        let (window, answer) = (200_000_000, 1_000_000);
        home.models(json!({PROVIDER: {
            "baseUrl": model.url(), "api": "openai-completions", "apiKey": "test-key",
            "models": [{"id": MODEL, "contextWindow": window, "maxTokens": answer}],
        }}));
        home.settings(
            json!({"retry": {"enabled": false}, "compaction": {"enabled": false},
            "hotReload": {"maxReloads": 1_000_000}}),
        );
        home.write("small.txt", "small file\n");
        Self {
            home,
            program,
            target_dir: built.parent().unwrap_or(built).to_owned(),
            model,
        }
    }

    /// The program in its home.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .current_dir(self.home.project_dir())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.home_dir())
            .env("PLIANT_AGENT_DIR", self.home.agent_dir())
            .env("TMPDIR", self.home.tmp_dir())
            .env("LANG", "C.UTF-8");
        command
    }

    /// A prompt to the replayed model, in print mode or with other flags before it.
    pub fn prompt(&self, flags: &[&str]) -> Command {
        let mut command = self.command(&["--provider", PROVIDER, "--model", MODEL]);
        command.args(flags).arg("go");
        command
    }

    /// Runs a prompt several times; each run gets the answers that `script` makes.
    pub fn prompts(
        &self,
        runs: usize,
        flags: &[&str],
        script: impl Fn() -> Vec<Answer>,
    ) -> Vec<Run> {
        let run = |_| {
            self.model.load(script());
            measure(&self.prompt(flags))
        };
        (0..runs).map(run).collect()
    }

    /// The user's directory of the runs.
    pub fn agent_dir(&self) -> PathBuf {
        self.home.agent_dir()
    }

    /// A path in the temporary directory of the runs.
    pub fn scratch(&self, name: &str) -> PathBuf {
        self.home.tmp_dir().join(name)
    }
}

/// Copies the program and what its plugin search finds beside it.
fn copy_program(built: &Path, to: &Path) -> PathBuf {
    fs::create_dir_all(to).expect("the temporary directory is writable");
    let name = format!("pliant{EXE_SUFFIX}");
    let plugin = format!("{DLL_PREFIX}pliant_");
    for entry in fs::read_dir(built).expect("the build has a folder") {
        let path = entry.expect("the build can be listed").path();
        let file = path
            .file_name()
            .and_then(|file| file.to_str())
            .unwrap_or("");
        if file == name || file.starts_with(&plugin) && file.ends_with(DLL_SUFFIX) {
            let copy = to.join(file);
            fs::copy(&path, &copy).expect("the temporary directory has room");
            age(&copy);
        }
    }
    to.join(name)
}

/// Gives a file the age of an installed one. A plugin written moments ago is still being built as far as the loader
/// knows, and is staged afresh at every start instead of once.
fn age(file: &Path) {
    let hour_ago = SystemTime::now() - Duration::from_hours(1);
    File::options()
        .write(true)
        .open(file)
        .and_then(|open| open.set_modified(hour_ago))
        .expect("a file just written can be dated");
}

/// How many cores, and how busy they are.
pub fn machine(when: &str) -> String {
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: Vec<&str> = load.split(' ').take(3).collect();
    format!("{when}: {cores} cores, load average {}", load.join(" "))
}
