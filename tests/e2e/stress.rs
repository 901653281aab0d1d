//! Reloads under load, of every kind of source at once: a library in this process, the same in a child, a
//! script (issue "Rust plugins that reload", Build 10). Every fifth build is broken. While the files
//! change, a model streams and calls all of their tools in parallel, turn after turn.
//!
//! `PLIANT_STRESS=1000` asks for the long version.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pliant_tests::{ModelServer, TempHome, fixture_plugin, reply};
use serde_json::json;

/// A source: its tool, its file, and the versions that were written.
struct Source {
    name: &'static str,
    tool: &'static str,
    path: PathBuf,
    good: u32,
    writes: u32,
}

/// What its tool and its handler say.
fn answer(version: u32) -> String {
    format!("tool {version:08} handler {version:08}")
}

impl Source {
    /// A version of it, as the bytes of its file.
    fn version(&self, library: &[u8], version: u32) -> Vec<u8> {
        if self.tool == "sv" {
            return format!(
                "let version = \"{version:08}\";\n\
                 register_tool(#{{name: \"sv\", description: \"Says its version.\",\n\
                 parameters: #{{type: \"object\", properties: #{{}}}},\n\
                 execute: |args, ctx| `tool ${{version}} handler ${{args.seen}}`}});\n\
                 on(\"tool_call\", |event, ctx| {{\n\
                 if event.toolName == \"sv\" {{ event.input.seen = version; }} }});\n"
            )
            .into_bytes();
        }
        let mut bytes = library.to_vec();
        let text = format!("pliant-version: {version:08} {}", self.tool);
        replace(&mut bytes, b"pliant-version: 00000000 ls", text.as_bytes());
        // The same library stands for two plugins; names of the same length keep everything in place.
        let name = format!("\"name\":\"{}\"", self.name);
        replace(&mut bytes, b"\"name\":\"versioned\"", name.as_bytes());
        let tool = format!("\"name\":\"{}\"", self.tool);
        replace(&mut bytes, b"\"name\":\"ls\"", tool.as_bytes());
        bytes
    }

    /// Something that cannot be loaded.
    fn broken(&self, good: &[u8], kind: u32) -> Vec<u8> {
        match (self.tool, kind % 3) {
            ("sv", 0) => b"register_tool(#{".to_vec(),
            ("sv", _) => b"throw \"as asked\";".to_vec(),
            (_, 0) => good[..good.len() / 2].to_vec(),
            (_, 1) => b"no library".to_vec(),
            _ => {
                let mut bytes = good.to_vec();
                replace(&mut bytes, b"\"abi\":0", b"\"abi\":7");
                bytes
            }
        }
    }

    /// Saves it in one of the ways that editors and builds have.
    fn save(&mut self, bytes: &[u8]) {
        self.writes += 1;
        let folder = self.path.parent().expect("a folder");
        let beside = folder.join(format!(".new-{}", self.writes));
        match self.writes % 3 {
            0 => fs::write(&self.path, bytes).expect("written"),
            1 => {
                fs::write(&beside, bytes).expect("written");
                fs::rename(&beside, &self.path).expect("renamed");
            }
            _ => {
                fs::write(&beside, bytes).expect("written");
                fs::remove_file(&self.path).expect("removed");
                fs::hard_link(&beside, &self.path).expect("linked");
                fs::remove_file(&beside).expect("removed");
            }
        }
    }
}

fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) {
    assert_eq!(old.len(), new.len());
    let mut from = 0;
    while let Some(at) = find(&bytes[from..], old) {
        bytes[from + at..from + at + old.len()].copy_from_slice(new);
        from += at + old.len();
    }
    assert!(
        from > 0,
        "{} is not in the file",
        String::from_utf8_lossy(old)
    );
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(next) = bytes[at..].iter().position(|byte| *byte == what[0]) {
        at += next;
        if bytes[at..].starts_with(what) {
            return Some(at);
        }
        at += 1;
    }
    None
}

fn resident_kb(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("a line");
    let digits: String = line.chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

/// What the model has seen that must not be.
type Faults = Arc<Mutex<Vec<String>>>;

/// Calls all tools in each turn until it is told to end, and looks at what comes back.
fn model(
    ends: &Arc<AtomicBool>,
    faults: &Faults,
    turns: &Arc<Mutex<BTreeMap<String, u32>>>,
) -> ModelServer {
    let (ends, faults, seen) = (Arc::clone(ends), Arc::clone(faults), Arc::clone(turns));
    ModelServer::answering(move |request| {
        let fault = |what: String| faults.lock().expect("no panic").push(what);
        let tools = request.tools();
        for tool in ["ls", "lz", "sv"] {
            let count = tools.iter().filter(|name| **name == tool).count();
            if count != 1 {
                fault(format!("{count} tools {tool} in {tools:?}"));
            }
        }
        let results = request.messages().iter().rev();
        for result in results
            .take_while(|message| message["role"] == "tool")
            .take(3)
        {
            let text = result["content"].as_str().unwrap_or_default();
            let words: Vec<&str> = text.split(' ').collect();
            match words.as_slice() {
                ["tool", tool, "handler", handler] if tool == handler => {
                    *seen
                        .lock()
                        .expect("no panic")
                        .entry(text.to_owned())
                        .or_default() += 1;
                }
                _ => fault(format!("a call was answered {text:?}")),
            }
        }
        if ends.load(Ordering::SeqCst) {
            return reply::text("Done.");
        }
        let calls = ["ls", "lz", "sv"].map(|tool| (tool, json!({})));
        reply::tool_calls(calls).and_text("Some words, which come in pieces as they do.")
    })
}

#[test]
fn hundreds_of_reloads_under_load_lose_double_and_mix_nothing() {
    let wanted: u32 =
        std::env::var("PLIANT_STRESS").map_or(200, |text| text.parse().expect("a number"));
    let (ends, faults) = (Arc::new(AtomicBool::new(false)), Faults::default());
    let turns = Arc::default();
    let server = model(&ends, &faults, &turns);
    let home = TempHome::with_model(&server);
    home.settings(
        json!({"hotReload": {"maxReloads": 1_000_000}, "compaction": {"enabled": false},
        "plugins": {"isolation": {"versionec": "process"}}}),
    );
    let library = fs::read(fixture_plugin("versioned")).expect("built");
    let folder = home.agent_dir();
    let file = |name: &str| folder.join("plugins").join(format!("libpliant_{name}.so"));
    let source = |name, tool, path: &Path| Source {
        name,
        tool,
        path: path.to_owned(),
        good: 0,
        writes: 0,
    };
    let mut sources = [
        source("versioned", "ls", &file("versioned")),
        source("versionec", "lz", &file("versionec")),
        source("script.rhai", "sv", &folder.join("extensions/script.rhai")),
    ];
    for source in &sources {
        fs::create_dir_all(source.path.parent().expect("a folder")).expect("made");
        fs::write(&source.path, source.version(&library, 0)).expect("written");
    }
    let mut rpc = home.rpc();
    rpc.state();
    rpc.ok(json!({"type": "prompt", "message": "go"}));
    let before = resident_kb(rpc.id());
    let (mut reloads, mut refused, mut round) = (0, 0, 0);
    while reloads + refused < wanted {
        round += 1;
        let mut expected: Vec<(&str, &str)> = Vec::new();
        for (at, source) in (0_u32..).zip(&mut sources) {
            // One in five is broken, and which of them that is changes.
            let is_broken = (round * 3 + at) % 5 == 4;
            let good = source.version(&library, round);
            if is_broken {
                source.save(&source.broken(&good, round));
                expected.push((source.name, "failed"));
            } else {
                source.save(&good);
                source.good = round;
                expected.push((source.name, "reloaded"));
            }
        }
        while !expected.is_empty() {
            let event = rpc.event("resources_changed");
            for change in event["changes"].as_array().expect("changes") {
                let (name, outcome) = (change["source"].as_str(), change["outcome"].as_str());
                let (name, outcome) = (name.expect("a name"), outcome.expect("an outcome"));
                let path = change["path"].as_str().unwrap_or_default();
                let is_meant = |expected: &&(&str, &str)| {
                    let (source, _) = **expected;
                    name.ends_with(source) || path.ends_with(&format!("libpliant_{source}.so"))
                };
                let found = expected.iter().position(|it| is_meant(&it));
                let found =
                    found.unwrap_or_else(|| panic!("round {round}: not expected: {change}"));
                let (_, wanted) = expected.swap_remove(found);
                assert_eq!(outcome, wanted, "round {round}: {change}");
                match wanted {
                    "failed" => refused += 1,
                    _ => reloads += 1,
                }
            }
        }
    }
    let after = resident_kb(rpc.id());
    // A broken build is mended at last, and what serves at the end is what was written last.
    ends.store(true, Ordering::SeqCst);
    rpc.event("agent_settled");
    ends.store(false, Ordering::SeqCst);
    turns.lock().expect("no panic").clear();
    rpc.ok(json!({"type": "prompt", "message": "once more"}));
    rpc.event("turn_end");
    ends.store(true, Ordering::SeqCst);
    rpc.event("agent_settled");
    let standing = rpc.ok(json!({"type": "get_plugins"}));
    rpc.end();
    assert_eq!(*faults.lock().expect("no panic"), [""; 0]);
    let served = turns.lock().expect("no panic").clone();
    for source in &sources {
        let expected = answer(source.good);
        assert!(
            served.contains_key(&expected),
            "{expected} of {} is not in {served:?}",
            source.name
        );
    }
    let plugins = standing["plugins"].as_array().expect("plugins");
    let retired = plugins.iter().find(|plugin| plugin["name"] == "versioned");
    let retired = retired.expect("it serves")["retired"]
        .as_u64()
        .expect("a number");
    let each = after.saturating_sub(before) / retired.max(1);
    println!(
        "{reloads} reloads, {refused} refused builds in {round} rounds; {retired} old versions, {each} KB each (process {before} KB, then {after} KB)"
    );
    assert!(each <= 4096, "{each} KB for each old version");
    drop(server);
}
