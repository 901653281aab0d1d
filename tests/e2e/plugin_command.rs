//! `pliant plugin …` and `pliant dev`: from an empty folder to a plugin that works, is edited, broken and
//! mended in one conversation (issue "Rust plugins that reload", plugin-abi §11). What is started builds
//! at once, offline, against the SDK of this workspace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pliant_tests::{ModelServer, Pliant, TempHome, fixture_plugin, reply};
use serde_json::{Value, json};

/// Where the plugins of these tests are built: beside everything else, so that what they depend on is
/// built once.
fn target() -> PathBuf {
    let test = std::env::current_exe().expect("it runs");
    let target = test.ancestors().nth(3).expect("in a target folder");
    target.join("started-plugins")
}

fn plugin(home: &TempHome, words: &[&str]) -> Pliant {
    let run = home.pliant().args(["plugin"]).args(words);
    with_cargo(run)
}

/// The temporary home has no cargo of its own.
fn with_cargo(run: Pliant) -> Pliant {
    let mut run = run
        .env("CARGO_TARGET_DIR", target())
        .env("CARGO_NET_OFFLINE", "true");
    let home = std::env::var("HOME").unwrap_or_default();
    for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        let default = Path::new(&home).join(folder);
        run = run.env(name, std::env::var(name).map_or(default, PathBuf::from));
    }
    run
}

fn cargo(folder: &Path, words: &[&str]) {
    let status = Command::new("cargo")
        .args(words)
        .args(["--offline", "--quiet"])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target())
        .status();
    assert!(
        status.expect("cargo").success(),
        "cargo {words:?} in {}",
        folder.display()
    );
}

fn built(name: &str) -> String {
    let file = format!(
        "{}{name}{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    );
    target().join("debug").join(file).display().to_string()
}

#[test]
fn what_is_started_builds_passes_its_tests_and_can_be_loaded_at_once() {
    let home = TempHome::new();
    for (kind, library, contributes) in [
        ("--tool", "plain_tool", "count_words"),
        ("--hook", "plain_hook", "tool_call"),
        ("--provider", "plain_provider", "plain-provider"),
    ] {
        let name = library.replace('_', "-");
        plugin(&home, &["new", &name, kind]).run().success();
        let folder = home.project_dir().join(&name);
        cargo(&folder, &["test"]);
        cargo(&folder, &["build"]);
        let checked = plugin(&home, &["check", "--json", &built(library)])
            .run()
            .success();
        let checked: Value = serde_json::from_str(&checked.stdout).expect("JSON");
        assert_eq!(checked["contributions"][0]["name"], contributes);
        assert_eq!(checked["problems"], json!([]));
    }
    let again = plugin(&home, &["new", "plain-tool"]).run();
    again.failure(&["is there already and not empty"]);
    plugin(&home, &["new", "No Name"])
        .run()
        .failure(&["cannot be the name of a plugin"]);
    plugin(&home, &["new", "self"])
        .run()
        .failure(&["is a word of the Rust language"]);
}

#[test]
fn a_library_that_would_not_load_is_said_to_be_so_with_status_1() {
    let home = TempHome::new();
    let text = home.write("libx.so", "no library").display().to_string();
    plugin(&home, &["check", &text])
        .run()
        .failure(&["not a complete library"]);
    plugin(&home, &["check", "nowhere.so"])
        .run()
        .failure(&["cannot be read"]);
    home.settings(json!({"pluginSettings": {"crashes": {"start": "segfault"}}}));
    let crashes = fixture_plugin("crashes").display().to_string();
    plugin(&home, &["check", &crashes])
        .run()
        .failure(&["SIGSEGV"]);
    let nonsense = fixture_plugin("nonsense").display().to_string();
    let told = plugin(&home, &["check", "--json", &nonsense]).run();
    let told: Value = serde_json::from_str(&told.stdout).expect("JSON");
    assert!(told["problems"].to_string().contains("left out"), "{told}");
}

#[test]
fn a_plugin_is_installed_switched_listed_and_removed() {
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let hello = fixture_plugin("hello").display().to_string();
    plugin(&home, &["install", &hello]).run().success();
    let lock = fs::read_to_string(home.agent_dir().join("plugins.lock.json")).expect("written");
    let lock: Value = serde_json::from_str(&lock).expect("JSON");
    assert_eq!(lock["hello"]["source"], hello);
    assert_eq!(lock["hello"]["sha256"].as_str().map(str::len), Some(64));
    let listed = || {
        let output = plugin(&home, &["list", "--json"]).run().success();
        let listed: Value = serde_json::from_str(&output.stdout).expect("JSON");
        let items = listed["items"].as_array().expect("items").clone();
        items.into_iter().find(|item| item["name"] == "hello")
    };
    assert_eq!(listed().expect("listed")["enabled"], true);
    let tools = |home: &TempHome| {
        let mut rpc = home.rpc();
        let answer = rpc.ok(json!({"type": "reload"}));
        rpc.end();
        answer.to_string().contains("\"hello\"")
    };
    assert!(tools(&home));
    // A list of plugins in the settings stays what it is.
    home.settings(json!({"plugins": ["some/path"]}));
    plugin(&home, &["disable", "hello"]).run().success();
    let settings = fs::read_to_string(home.agent_dir().join("settings.json")).expect("there");
    assert!(settings.contains("some/path"), "{settings}");
    assert_eq!(listed().expect("listed")["enabled"], false);
    plugin(&home, &["disable", "nobody"])
        .run()
        .failure(&["no plugin \"nobody\"", "hello"]);
    plugin(&home, &["enable", "hello"]).run().success();
    assert_eq!(listed().expect("listed")["enabled"], true);
    plugin(&home, &["remove", "hello"]).run().success();
    assert_eq!(listed(), None);
    plugin(&home, &["remove", "hello"])
        .run()
        .failure(&["No plugin \"hello\" is installed"]);
    drop(server);
}

#[test]
fn the_list_of_plugins_names_no_file_outside_their_folder_and_none_that_is_anothers() {
    let home = TempHome::new();
    let precious = home.write_agent("precious.txt", "mine");
    let entry = |file: &str| json!({"version": "1", "source": "x", "sha256": "", "abi": 1, "file": file, "installedAt": 0});
    let lock = json!({"evil": entry("../precious.txt"), "other": entry("libpliant_hello.so")});
    let list = home.write_agent("plugins.lock.json", lock.to_string());
    plugin(&home, &["remove", "evil"])
        .run()
        .failure(&["\"evil\" that is not in", "Nothing is removed"]);
    assert!(precious.exists());
    assert_eq!(fs::read_to_string(list).expect("kept"), lock.to_string());
    home.write_agent("plugins/libpliant_hello.so", "another plugin");
    let hello = fixture_plugin("hello").display().to_string();
    plugin(&home, &["install", &hello])
        .run()
        .failure(&["over the plugin other", "pliant plugin remove other"]);
}

#[test]
fn a_repository_is_cloned_built_and_installed_and_its_commit_is_noted() {
    let home = TempHome::new();
    plugin(&home, &["new", "from-git"]).run().success();
    let script = "cd from-git && git init -q && git add -A && \
        git -c user.name=a -c user.email=a@b commit -qm one && git rev-parse HEAD";
    let revision = home.shell(script).run().success().stdout;
    let url = format!("file://{}", home.project_dir().join("from-git").display());
    let run = plugin(&home, &["install", &url]).limit(std::time::Duration::from_secs(300));
    run.run().success();
    let lock = fs::read_to_string(home.agent_dir().join("plugins.lock.json")).expect("written");
    let lock: Value = serde_json::from_str(&lock).expect("JSON");
    assert_eq!(lock["from-git"]["revision"], revision.trim());
    // What begins with a dash is never an option of git.
    plugin(&home, &["install", "--", "--upload-pack=x"])
        .run()
        .failure(&["cannot be read"]);
}

#[test]
fn a_tool_is_edited_broken_and_mended_in_one_conversation() {
    // issue: "Show"; plugin-abi §5, §11
    let call = || reply::tool_call("count_words", json!({"text": "a b c"}));
    let server = ModelServer::start([
        call(),
        reply::text("1"),
        call(),
        reply::text("2"),
        call(),
        reply::text("3"),
    ]);
    let home = TempHome::with_model(&server);
    plugin(&home, &["new", "edited-tool"]).run().success();
    let folder = home.project_dir().join("edited-tool");
    // What it depends on takes its time where it was never built.
    cargo(&folder, &["build"]);
    let source = folder.join("src/lib.rs");
    let first = fs::read_to_string(&source).expect("there");
    let run = with_cargo(home.pliant_with_model()).args(["--mode", "rpc", "--dev", "edited-tool"]);
    let mut rpc = run.limit(std::time::Duration::from_secs(300)).rpc();
    rpc.state();
    rpc.turn("go");
    fs::write(&source, first.replace("{words} words", "there are {words}")).expect("written");
    rpc.next("the reload", |record| {
        record["type"] == "resources_changed" && record.to_string().contains("\"reloaded\"")
    });
    rpc.turn("again");
    fs::write(&source, first.replace("let words =", "let words")).expect("written");
    let said = rpc.next("the error", |record| {
        record["type"] == "notice" && record.to_string().contains("does not build")
    });
    let said = said["message"].as_str().expect("a text");
    assert!(said.contains("src/lib.rs:2"), "{said}");
    rpc.turn("and again");
    rpc.end();
    let requests = server.finish();
    let result = |request: usize| {
        let last = requests[request]
            .messages()
            .last()
            .expect("a message")
            .clone();
        last["content"].to_string()
    };
    assert!(result(1).contains("3 words"), "{}", result(1));
    assert!(result(3).contains("there are 3"), "{}", result(3));
    assert!(
        result(5).contains("there are 3"),
        "the old one serves: {}",
        result(5)
    );
}

#[test]
fn builds_without_a_session_are_lines_for_programs() {
    // issue: "headless"
    let home = TempHome::new();
    plugin(&home, &["new", "headless-tool"]).run().success();
    let folder = home.project_dir().join("headless-tool");
    cargo(&folder, &["build"]);
    let source = folder.join("src/lib.rs");
    let first = fs::read_to_string(&source).expect("there");
    let words = ["dev", "--headless", "--json", "headless-tool"];
    let run = with_cargo(home.pliant()).args(words);
    let mut dev = run.limit(std::time::Duration::from_secs(300)).rpc();
    dev.next("the watch", |line| line["type"] == "watching");
    fs::write(&source, format!("{first}\nfn broken( {{}}\n")).expect("written");
    let failed = dev.next("the error", |line| line["type"] == "failed");
    let error = &failed["errors"][0];
    assert_eq!(error["file"], "src/lib.rs");
    assert!(error["line"].as_u64() > Some(40), "{failed}");
    fs::write(&source, format!("{first}\n// mended\n")).expect("written");
    dev.next("the library", |line| line["type"] == "built");
    let checked = dev.next("the check", |line| line["type"] == "checked");
    assert_eq!(checked["contributes"], json!(["count_words"]));
    dev.signal(15);
    dev.wait();
    plugin(&home, &["check", "nowhere.so"])
        .run()
        .failure(&["cannot be read"]);
    let nothing = home.pliant().args(["dev", "--headless", "nowhere"]).run();
    nothing.failure(&["There is no Cargo.toml", "pliant plugin new"]);
}
