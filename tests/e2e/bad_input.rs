//! What is wrong outside of the program: each is one clear sentence that names the thing, the
//! status is 1, and nothing that was stored before is lost.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::slice;

use pliant_tests::{
    Damage, ModelServer, Output, PROVIDER, TempHome, abi_fixture, fixture_plugin, reply,
};
use serde_json::json;

/// Runs with one more flag that cannot work; no request may be made.
#[track_caller]
fn refused(flags: &[&str], words: &[&str]) -> Output {
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let output = home.prompt("x").args(flags).run().failure(words);
    assert_eq!(output.stdout, "");
    assert!(home.session_files().is_empty(), "no session begins");
    assert!(server.finish().is_empty());
    output
}

#[test]
fn a_plugin_that_is_missing_or_no_file() {
    refused(&["--plugin", "/nowhere/libx.so"], &["/nowhere/libx.so"]);
    let folder = TempHome::new();
    let folder = folder.agent_dir().display().to_string();
    refused(&["--plugin", &folder], &[&folder]);
}

#[test]
fn a_plugin_of_another_abi() {
    let library = abi_fixture("other").display().to_string();
    // Its name, what it was built for, what is needed.
    refused(&["--plugin", &library], &["other", "ABI", "1", "0"]);
}

#[test]
fn a_library_that_is_damaged() {
    use Damage::{Empty, FlippedHeader, FlippedManifest, Text, Truncated};
    let home = TempHome::new();
    for damage in [Truncated, Empty, Text, FlippedHeader, FlippedManifest] {
        let library = home
            .broken_library(&abi_fixture("first"), damage)
            .display()
            .to_string();
        refused(&["--plugin", &library], &[&library]);
    }
}

#[test]
fn a_plugin_that_is_not_what_its_manifest_says() {
    let library = fixture_plugin("misfit").display().to_string();
    refused(&["--plugin", &library], &["misfit", "promised"]);
}

#[test]
fn a_plugin_whose_constructor_panics() {
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    home.settings(json!({"pluginSettings": {"panics": {"create": true}}}));
    let library = fixture_plugin("panics").display().to_string();
    let output = home.prompt("x").args(["--plugin", &library]).run();
    output.failure(&["panics", "create exploded"]);
    server.finish();
}

#[test]
fn a_script_with_a_syntax_error() {
    let home = TempHome::new();
    let script = home
        .write("bad.rhai", "let good = 1;\nlet bad = ;\n")
        .display()
        .to_string();
    let output = refused(&["-e", &script], &["bad.rhai"]);
    let place = ["line 2, column 11", "line 2, position 11", ":2:11"];
    assert!(
        place.iter().any(|place| output.stderr.contains(place)),
        "{output:#?}"
    );
}

#[test]
fn a_script_that_fails_or_is_missing() {
    let home = TempHome::new();
    let script = home
        .write("bad.rhai", "throw \"not today\";\n")
        .display()
        .to_string();
    refused(&["-e", &script], &["bad.rhai", "not today"]);
    refused(&["-e", "/nowhere/x.rhai"], &["/nowhere/x.rhai"]);
}

#[test]
fn a_models_json_that_is_malformed() {
    const MALFORMED: &str = "{\"providers\": {\n  \"mock\": [\n";
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let file = home.write_agent("models.json", MALFORMED);
    home.prompt("x").run().failure(&["models.json"]);
    assert_eq!(fs::read_to_string(file).expect("it stays"), MALFORMED);
    server.finish();
}

#[test]
fn a_model_or_provider_that_does_not_exist() {
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let with = |provider: &str, model: &str| {
        home.pliant()
            .args(["--provider", provider, "--model", model, "-p", "x"])
            .run()
    };
    with(PROVIDER, "no-such-model").failure(&["no-such-model"]);
    with("nobody", "mock-model").failure(&["nobody"]);
    server.finish();
}

#[test]
fn a_session_that_does_not_exist() {
    refused(&["--session", "0badcafe"], &["0badcafe"]);
}

/// A home with a stored session, which later runs must leave as it is.
struct Stored {
    home: TempHome,
    file: PathBuf,
    bytes: Vec<u8>,
}

impl Stored {
    fn new(server: &ModelServer) -> Self {
        let home = TempHome::with_model(server);
        home.prompt("first").run().success();
        let file = home.session_files().remove(0);
        let bytes = fs::read(&file).expect("the session is there");
        Self { home, file, bytes }
    }

    fn continue_with(&self, text: &str) -> Output {
        self.home.prompt(text).args(["--continue"]).run()
    }

    #[track_caller]
    fn is_kept(&self) {
        assert_eq!(self.home.session_files(), slice::from_ref(&self.file));
        let now = fs::read(&self.file).expect("the session is there");
        assert!(now.starts_with(&self.bytes), "stored bytes changed");
    }
}

#[test]
fn a_server_that_refuses_the_connection() {
    let server = ModelServer::start([reply::text("one")]);
    let stored = Stored::new(&server);
    server.finish();
    // The port that a connection goes out from: nobody listens there, and nobody else gets it.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port exists");
    let listening = listener.local_addr().expect("it has an address");
    let taken = TcpStream::connect(listening).expect("it is listening");
    let address = taken.local_addr().expect("it has an address").to_string();
    stored.home.models(json!({PROVIDER: {
        "baseUrl": format!("http://{address}/v1"), "api": "openai-completions",
        "apiKey": "test-key", "models": [{"id": pliant_tests::MODEL}],
    }}));
    stored
        .continue_with("second")
        .failure(&[PROVIDER, &address]);
    stored.is_kept();
}

#[test]
fn a_server_that_answers_with_an_error() {
    let server = ModelServer::start([reply::text("one"), reply::error(403, "the key is wrong")]);
    let stored = Stored::new(&server);
    stored
        .continue_with("second")
        .failure(&["403", "the key is wrong"]);
    stored.is_kept();
    server.finish();
}

#[test]
fn a_server_that_closes_in_the_middle_of_an_answer() {
    let server = ModelServer::start([
        reply::text("one"),
        reply::text("half of a long answer").cut_after(3),
        reply::text("three"),
    ]);
    let stored = Stored::new(&server);
    let output = stored.continue_with("second").failure(&[]);
    assert!(
        !output.stdout.contains("half"),
        "half an answer is no answer"
    );
    stored.is_kept();
    // The half answer is in the file and in no later request.
    stored.continue_with("third").success();
    let requests = server.finish();
    let wanted = [
        ("user", "first"),
        ("assistant", "one"),
        ("user", "second"),
        ("user", "third"),
    ];
    let wanted: Vec<_> = wanted
        .iter()
        .map(|(role, text)| (*role, (*text).to_owned()))
        .collect();
    assert_eq!(requests[2].conversation(), wanted);
}

/// A file system of a few pages, for as long as it lives.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path, kibibytes: u32) -> Result<Self, String> {
        fs::create_dir_all(at).expect("the folder can be made");
        let size = format!("size={kibibytes}k");
        run(Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(at))?;
        Ok(Self(at.to_owned()))
    }

    fn grow(&self, kibibytes: u32) {
        let options = format!("remount,size={kibibytes}k");
        run(Command::new("mount").args(["-o", &options]).arg(&self.0)).expect("it was mounted");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = run(Command::new("umount").arg(&self.0));
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

#[test]
fn a_disk_that_is_full_while_a_session_grows() {
    // Whether the model is still asked is not the point here.
    let server = ModelServer::answering(|_| reply::text("answered"));
    server.allow_rewritten_history();
    let home = TempHome::with_model(&server);
    let disk = match SmallDisk::mount(&home.agent_dir().join("sessions"), 32) {
        Ok(disk) => disk,
        Err(reason) => return println!("skipped: a small disk cannot be mounted: {reason}"),
    };
    home.prompt("first").run().success();
    let file = home.session_files().remove(0);
    let bytes = fs::read(&file).expect("the session is there");
    let stored = Stored { home, file, bytes };

    let long = "long ".repeat(16 * 1024);
    let name = stored
        .file
        .file_name()
        .expect("a file has a name")
        .to_string_lossy()
        .into_owned();
    stored
        .continue_with(&long)
        .failure(&[&name, "space left on device"]);
    stored.is_kept();

    disk.grow(1024);
    stored.continue_with("third").success();
    stored.is_kept();
    let requests = server.finish();
    let last = requests.last().expect("the last run asked").conversation();
    assert_eq!(
        last[..2],
        [
            ("user", "first".to_owned()),
            ("assistant", "answered".to_owned())
        ]
    );
    assert_eq!(last.last(), Some(&("user", "third".to_owned())));
    // The home cannot be removed below a mount.
    drop(disk);
}

#[test]
fn pipes_and_devices_in_place_of_files_are_refused_instead_of_read() {
    let home = TempHome::new();
    let pipe = home.write("pipe", "").display().to_string();
    std::fs::remove_file(&pipe).expect("the file was just written");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo is there");
    for option in ["--plugin", "-e", "--session", "--system-prompt"] {
        refused(&[option, &pipe], &[&pipe]);
    }
    refused(&["--session", "/dev/full"], &["/dev/full"]);
    home.write_agent("models.json", "");
    let models = home.agent_dir().join("models.json");
    std::fs::remove_file(&models).expect("the file was just written");
    std::os::unix::fs::symlink("/dev/zero", &models).expect("a link can be made");
    home.pliant()
        .args(["-p", "x"])
        .run()
        .failure(&["models.json"]);
}

#[test]
fn a_key_without_a_model_goes_nowhere() {
    let home = TempHome::new();
    let output = home
        .pliant()
        .args(["-p", "x", "--api-key", "sk-secret"])
        .run()
        .failure(&["--api-key", "--model"]);
    assert!(!output.stderr.contains("sk-secret"));
}

#[test]
fn an_extension_of_the_user_that_cannot_be_loaded_stops_a_run_nobody_watches() {
    // interfaces §1.5: it may be the one that keeps watch
    let home = TempHome::new();
    home.write_agent(
        "extensions/guard.rhai",
        "on(\"tool_call\", |event, ctx| {\n",
    );
    home.pliant()
        .args(["-p", "x"])
        .run()
        .failure(&["guard.rhai"]);
}
