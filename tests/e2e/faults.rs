//! Native plugins that hang, panic again and again, declare nonsense or call the host with garbage: each
//! is told in a sentence and takes nothing with it (`plugin-abi.md` §6).

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use pliant_tests::{ModelServer, Reply, Rpc, TempHome, abi_fixture, fixture_plugin, reply};
use serde_json::{Value, json};

use super::signals::until;

fn with_plugins(home: &TempHome, plugins: &[&str]) -> Rpc {
    let paths = plugins.iter().map(|name| fixture_plugin(name));
    let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
    let flags = paths.iter().flat_map(|path| ["--plugin", path]);
    home.rpc_with(&flags.collect::<Vec<_>>())
}

/// A call of the tool that hangs; it ends when the file `open` is there.
fn hang(how: &str) -> Reply {
    let call = json!({"how": how, "begun": "begun", "until": "open"});
    reply::tool_call("hang", call)
}

/// Lets the model call a tool that hangs, and stops the run when it does.
fn hang_and_abort(home: &TempHome, rpc: &mut Rpc) {
    let begun = home.project_dir().join("begun");
    let asked = rpc.send(json!({"type": "prompt", "message": "Hang."}));
    rpc.answer(&asked);
    until("the tool", || begun.exists().then_some(()));
    rpc.ok(json!({"type": "abort"}));
    rpc.event("agent_settled");
}

/// The last result of a tool in a request.
fn result(request: &pliant_tests::Request) -> String {
    let messages = request.messages();
    messages.last().expect("a result")["content"].to_string()
}

/// How often the user was told something with these words.
fn reports(records: &[Value], words: &str) -> usize {
    let reports = records
        .iter()
        .filter(|record| record["type"] == "extension_error");
    reports
        .filter(|record| record["error"].to_string().contains(words))
        .count()
}

#[test]
fn a_plugin_that_hangs_takes_no_calls_until_it_returns_and_others_go_on() {
    // plugin-abi §6
    for how in ["spin", "block", "cleanup"] {
        let greet = reply::tool_call("greet", json!({"name": "you"}));
        let server = ModelServer::start([
            hang(how),
            // What was given up may be about to return: that is looked at after a moment.
            hang("not").slow(Duration::from_millis(100)),
            greet,
            reply::text("Well."),
            hang("not"),
            reply::text("Well again."),
        ]);
        let home = TempHome::with_model(&server);
        let mut rpc = with_plugins(&home, &["hangs", "hello"]);
        hang_and_abort(&home, &mut rpc);
        rpc.turn("Again.");
        assert_eq!(reports(rpc.records(), "hangs: for"), 1, "{how}");
        let open = home.project_dir().join("open");
        fs::write(&open, "").expect("written");
        let taken = home.project_dir().join("begun");
        fs::remove_file(&taken).expect("it was there");
        rpc.turn("Once more.");
        let ended = rpc.end();
        assert!(ended.status.success(), "{ended:?}");
        let requests = server.finish();
        for words in ["hangs: for", "/reload", "plugins.isolation", "process"] {
            assert!(result(&requests[2]).contains(words), "{how}: {words}");
        }
        assert!(result(&requests[3]).contains("Hello, you!"), "{how}");
    }
}

#[test]
fn a_gate_that_hangs_is_shut_and_is_not_asked_again() {
    // plugin-abi §6, G5
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    home.settings(json!({
        "extensions": {"handlerTimeoutMs": 300},
        "pluginSettings": {"hangs": {"gate": "/nowhere"}},
    }));
    let mut rpc = with_plugins(&home, &["hangs"]);
    let mut refused = || rpc.error(json!({"type": "bash", "command": "echo it ran"}));
    let [first, second, third] = [refused(), refused(), refused()];
    assert!(first.contains("within 300 ms"), "{first}");
    assert!(second.contains("hangs: for"), "{second}");
    assert!(third.contains("hangs: for"), "{third}");
    let ended = rpc.end();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(reports(&ended.records, "hangs: for"), 1, "{ended:?}");
    server.finish();
}

#[test]
fn the_program_ends_though_a_plugin_never_returns() {
    // plugin-abi §6
    let server = ModelServer::start([hang("spin")]);
    let home = TempHome::with_model(&server);
    let mut rpc = with_plugins(&home, &["hangs"]);
    hang_and_abort(&home, &mut rpc);
    let ended = rpc.end();
    assert!(ended.status.success(), "{ended:?}");
    server.finish();
}

#[test]
fn a_prompt_that_is_interrupted_ends_though_a_plugin_never_returns() {
    // plugin-abi §6, R51
    let server = ModelServer::start([hang("spin")]);
    let home = TempHome::with_model(&server);
    let library = fixture_plugin("hangs").display().to_string();
    let running = home.prompt("Hang.").args(["--plugin", &library]).spawn();
    let begun = home.project_dir().join("begun");
    until("the tool", || begun.exists().then_some(()));
    running.signal(libc::SIGINT);
    assert_eq!(running.wait().status.code(), Some(130));
    server.finish();
}

#[test]
fn the_program_ends_though_a_plugin_does_not() {
    // plugin-abi §6: each drop that runs user code
    let home = TempHome::new();
    home.settings(json!({"pluginSettings": {"hangs": {"end": "/nowhere"}}}));
    let library = fixture_plugin("hangs").display().to_string();
    home.pliant()
        .args(["--list-models", "--plugin", &library])
        .limit(Duration::from_secs(15))
        .run()
        .success();
}

#[test]
fn a_plugin_that_panics_three_times_in_a_row_is_out_until_it_is_reloaded() {
    // plugin-abi §6, E09
    let explode = |place: &str| reply::tool_call("explode", json!({"place": place}));
    let panics = || explode("hook");
    let server = ModelServer::start([
        panics(),
        panics(),
        panics(),
        explode("nowhere"),
        reply::text("Out."),
        explode("nowhere"),
        reply::text("In."),
    ]);
    let home = TempHome::with_model(&server);
    let mut rpc = with_plugins(&home, &["panics"]);
    rpc.turn("Explode.");
    rpc.ok(json!({"type": "reload"}));
    rpc.turn("Try.");
    let ended = rpc.end();
    assert_eq!(reports(&ended.records, "three times"), 1, "{ended:?}");
    assert_eq!(reports(&ended.records, ""), 3 + 1, "{ended:?}");
    let requests = server.finish();
    let results = requests.iter().skip(1).map(result);
    let results: Vec<String> = results.collect();
    for panicked in &results[..3] {
        assert!(panicked.contains("a hook exploded"), "{panicked}");
    }
    // Its own gate is shut: what it would have said of the call is not known.
    assert!(results[3].contains("blocked") && results[3].contains("three times"));
    assert!(results[5].contains("nothing exploded"), "{results:?}");
}

#[test]
fn declarations_that_are_nonsense_are_left_out_and_told_and_the_rest_serves() {
    // E08, G9
    let server = ModelServer::start([
        reply::tool_calls([("twice", json!({})), ("shapeless", json!({}))]),
        reply::text("Well."),
    ]);
    let home = TempHome::with_model(&server);
    let library = fixture_plugin("nonsense").display().to_string();
    let output = home.prompt("x").args(["--plugin", &library]).run();
    let told = output.success().stderr;
    for words in ["no name!", "no_such_event", "nonsense"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let requests = server.finish();
    let results: Vec<String> = requests[1].messages()[2..]
        .iter()
        .map(Value::to_string)
        .collect();
    assert!(
        results.iter().any(|said| said.contains("second")),
        "{results:?}"
    );
}

#[test]
fn services_called_with_garbage_answer_in_words_and_go_on() {
    // plugin-abi §3, §6
    let but = [
        "session.abort",
        "session.compact",
        "session.reload",
        "ui.shutdown",
    ];
    let server = ModelServer::start([
        reply::tool_call("garbage", json!({ "but": but })),
        reply::tool_call("bash", json!({"command": "echo still here"})),
        reply::text("Well."),
    ]);
    let home = TempHome::with_model(&server);
    let mut rpc = with_plugins(&home, &["garbage"]);
    rpc.turn("Go.");
    let ended = rpc.end();
    assert!(ended.status.success(), "{ended:?}");
    let requests = server.finish();
    let said = result(&requests[1]);
    let lines: Vec<&str> = said.split("\\n").collect();
    assert!(lines.len() > 500, "{}", lines.len());
    for line in &lines {
        let bad = ["panic", "without words"]
            .iter()
            .any(|word| line.contains(word));
        assert!(!bad, "{line}");
    }
    let unknown = lines.iter().filter(|line| line.contains("no.such"));
    for line in unknown {
        let refused = ["unsupported", "invalid"]
            .iter()
            .any(|code| line.ends_with(code));
        assert!(refused, "{line}");
    }
    let waits = lines.iter().filter(|line| line.ends_with("waits"));
    let waits: Vec<&&str> = waits.collect();
    assert!(
        waits
            .iter()
            .all(|line| line.contains("time.sleep") || line.contains("wait_idle")),
        "{waits:?}"
    );
    assert!(result(&requests[2]).contains("still here"));
}

/// A library in which something is called by another name.
fn replaced(library: &[u8], name: &[u8], by: &[u8]) -> Vec<u8> {
    let mut changed = library.to_vec();
    let mut from = 0;
    while let Some(at) = changed[from..]
        .windows(name.len())
        .position(|bytes| bytes == name)
    {
        from += at;
        changed[from..from + name.len()].copy_from_slice(by);
        from += name.len();
    }
    assert!(from > 0, "it has no such name");
    changed
}

/// A library in the user's folder of plugins that is none.
fn install(home: &TempHome, name: &str, content: &[u8]) -> PathBuf {
    home.write_agent(&format!("plugins/libpliant_{name}.so"), content)
}

#[test]
fn files_that_are_no_plugins_are_each_told_with_a_reason_and_the_rest_is_loaded() {
    // E08
    let home = TempHome::new();
    let whole = fs::read(fixture_plugin("hello")).expect("it was built");
    let mut foreign = whole.clone();
    // The machine of an ELF header: that of another processor than this one.
    foreign[18] = if cfg!(target_arch = "aarch64") {
        62
    } else {
        183
    };
    let nameless = replaced(&whole, b"PLIANT_MANIFEST", b"PLIANT_MAN1FEST");
    let aborting = replaced(&whole, b"\"panic\":\"unwind\"", b"\"panic\":\"abort\" ");
    let other = fs::read(abi_fixture("other")).expect("it was built");
    let cases: [(&str, &[u8], &str); 7] = [
        ("cut", &whole[..whole.len() / 2], "not a complete library"),
        ("empty", b"", "not a complete library"),
        ("text", b"#!/bin/sh\necho hello\n", "not a complete library"),
        ("foreign", &foreign, "it is for"),
        ("nameless", &nameless, "not a pliant plugin"),
        ("aborting", &aborting, "panic = \"unwind\""),
        (
            "other",
            &other,
            "built for plugin ABI 1, but this pliant has ABI 0",
        ),
    ];
    for (name, content, _) in &cases {
        install(&home, name, content);
    }
    install(&home, "whole", &whole);
    let run = home.pliant().args(["--list-models"]).run().success();
    for (name, _, words) in &cases {
        let told = run
            .stderr
            .lines()
            .any(|line| line.contains(*words) && line.contains(name));
        assert!(told, "{name}: {}", run.stderr);
    }
    assert!(!run.stderr.contains("pliant_whole"), "{}", run.stderr);
}

#[test]
fn a_library_without_the_symbol_that_starts_it_is_told() {
    // E08
    let home = TempHome::new();
    let whole = fs::read(fixture_plugin("hello")).expect("it was built");
    let loader = b"_1as_0lib_1header_0root_bmodule_bloader";
    let headless = replaced(
        &whole,
        loader,
        &[&loader[..loader.len() - 1], b"X"].concat(),
    );
    install(&home, "headless", &headless);
    let run = home.pliant().args(["--list-models"]).run().success();
    for words in ["\"hello\"", "headless", "_1as_0lib_1header"] {
        assert!(run.stderr.contains(words), "{}", run.stderr);
    }
}

#[test]
fn a_library_on_a_file_system_in_memory_is_loaded() {
    // plugin-abi §5: a private copy is loaded, whatever the file lies on
    let folder = PathBuf::from(format!("/dev/shm/pliant-{}", std::process::id()));
    if fs::create_dir(&folder).is_err() {
        return;
    }
    let file = folder.join("hello.so");
    fs::copy(fixture_plugin("hello"), &file).expect("it can be copied");
    let greet = reply::tool_call("greet", json!({"name": "you"}));
    let server = ModelServer::start([greet, reply::text("Well.")]);
    let home = TempHome::with_model(&server);
    let library = file.display().to_string();
    home.prompt("Go.")
        .args(["--plugin", &library])
        .run()
        .success();
    fs::remove_dir_all(&folder).expect("it is ours");
    assert!(result(&server.finish()[1]).contains("Hello, you!"));
}
