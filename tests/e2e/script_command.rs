//! `pliant script`: what it says of scripts before they are used.

use std::fs;
use std::path::Path;

use pliant_tests::{TempHome, workspace};
use serde_json::{Value, json};

const GOOD: &str = "register_tool(#{ name: \"greet\", description: \"Greets.\\nTwice.\", parameters: #{ \"type\": \"object\", properties: #{} }, execute: |args, ctx| \"hi\" });\non(\"tool_call\", |event, ctx| ());\n";

fn check(home: &TempHome, args: &[&str]) -> pliant_tests::Output {
    let words = ["script", "check"].iter().chain(args);
    home.pliant().args(words).run()
}

#[test]
fn check_says_what_a_script_registers_or_where_it_is_wrong() {
    let home = TempHome::new();
    home.write("good.rhai", GOOD);
    let said = check(&home, &["good.rhai"]).success().stdout;
    assert_eq!(
        said,
        "good.rhai can be loaded.\ntool greet Greets.\nhook tool_call\n"
    );
    home.write("bad.rhai", "let x = 1;\nregister_tool(#{ name: \"a\" });\n");
    check(&home, &["bad.rhai"]).failure(&["bad.rhai:2:", "`execute` is missing"]);
    home.write("worse.rhai", "let x = ;\n");
    let told = check(&home, &["--json", "good.rhai", "worse.rhai"]);
    assert_eq!(told.status.code(), Some(1), "{told:?}");
    let told: Vec<Value> = told
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(told[0]["contributions"][0]["name"], "greet");
    assert_eq!(told[1]["loads"], json!(false));
    assert!(
        told[1]["problem"]
            .as_str()
            .expect("a text")
            .contains("worse.rhai:1:9"),
        "{}",
        told[1]
    );
}

#[test]
fn nothing_that_a_file_holds_or_is_stops_check_from_answering() {
    let home = TempHome::new();
    let endless = "loop { }";
    let cases: [(&str, Vec<u8>, &str); 9] = [
        ("crlf.rhai", GOOD.replace('\n', "\r\n").into_bytes(), ""),
        ("bom.rhai", [b"\xef\xbb\xbf", GOOD.as_bytes()].concat(), ""),
        ("empty.rhai", Vec::new(), ""),
        ("latin.rhai", b"let x = \"\xff\";".to_vec(), "latin.rhai"),
        (
            "endless.rhai",
            endless.into(),
            "did not end within 10000 ms",
        ),
        (
            "deep.rhai",
            "fn f(n) { f(n + 1) } f(0);".into(),
            "deep.rhai",
        ),
        (
            "large.rhai",
            "let s = \"x\"; loop { s += s; }".into(),
            "large.rhai",
        ),
        (
            "nested.rhai",
            "(".repeat(100_000).into_bytes(),
            "nested.rhai",
        ),
        ("asks.rhai", "exec(\"touch\", [\"ran\"]);".into(), ""),
    ];
    for (name, text, problem) in cases {
        home.write(name, text);
        let told = check(&home, &[name]);
        match problem {
            "" => drop(told.success()),
            problem => drop(told.failure(&[problem])),
        }
    }
    assert!(
        !home.project_dir().join("ran").exists(),
        "no program is started"
    );
    fs::create_dir(home.project_dir().join("folder.rhai")).expect("made");
    check(&home, &["folder.rhai"]).failure(&["folder.rhai cannot be read"]);
    check(&home, &["missing.rhai"]).failure(&["missing.rhai cannot be read"]);
    home.shell("mkfifo pipe.rhai").run().success();
    check(&home, &["pipe.rhai"]).failure(&["pipe.rhai cannot be read"]);
}

#[test]
fn every_script_of_the_workspace_can_be_loaded() {
    let home = TempHome::new();
    let mut files = Vec::new();
    for folder in ["scripts/extensions", "scripts/examples"] {
        for entry in fs::read_dir(workspace().join(folder)).expect("a folder") {
            files.push(entry.expect("an entry").path());
        }
    }
    let files: Vec<&str> = files
        .iter()
        .filter_map(|file: &std::path::PathBuf| Path::to_str(file))
        .collect();
    assert!(files.len() > 10, "{files:?}");
    check(&home, &files).success();
}

#[test]
fn docs_show_what_can_be_called() {
    let home = TempHome::new();
    let said = home
        .pliant()
        .args(["script", "docs"])
        .run()
        .success()
        .stdout;
    assert!(said.contains("- `register_tool(#{ name"), "{said}");
    let said = home
        .pliant()
        .args(["script", "docs", "every("])
        .run()
        .success()
        .stdout;
    assert_eq!(said.matches("- `").count(), 1, "{said}");
    home.pliant()
        .args(["script", "docs", "zzz"])
        .run()
        .failure(&["Nothing that scripts can call"]);
}

#[test]
fn a_program_that_cargo_runs_has_the_extensions_that_ship_as_any_other_has_them() {
    // What asks, blocks or is a model of its own is off, wherever the files lie.
    let home = TempHome::new();
    let package = workspace().join("tui");
    let listed = home
        .pliant()
        .args(["--list-models"])
        .env("CARGO_PKG_NAME", "pliant")
        .env("CARGO_MANIFEST_DIR", package)
        .run()
        .success();
    assert!(listed.stdout.contains("guide"), "{listed:?}");
    assert!(!listed.stdout.contains("router"), "{listed:?}");
}

#[test]
fn docs_are_also_data_and_definitions_for_editors() {
    let home = TempHome::new();
    let docs = |args: &[&str]| home.pliant().args(["script", "docs"]).args(args).run();
    let all: Value = serde_json::from_str(&docs(&["--json"]).success().stdout).expect("JSON");
    let tool = all
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| one["name"] == "register_tool");
    assert_eq!(tool.expect("it is there")["parameters"], json!(["options"]));
    let some: Value =
        serde_json::from_str(&docs(&["navigate_tree", "--json"]).success().stdout).expect("JSON");
    assert_eq!(
        (some.as_array().expect("a list").len(), &some[0]["of"]),
        (1, &json!("ctx"))
    );
    docs(&["no such thing", "--json"]).failure(&["no such thing"]);
    let definitions = docs(&["--definitions"]).success().stdout;
    assert!(
        definitions.contains("\nfn register_tool(options: ?) -> ?;\n"),
        "{definitions}"
    );
}

fn repl(home: &TempHome, typed: &str) -> pliant_tests::Output {
    home.pliant().args(["script", "repl"]).stdin(typed).run()
}

#[test]
fn the_repl_keeps_what_was_typed_and_runs_what_was_registered() {
    let home = TempHome::new();
    home.write("more.rhai", "fn twice(x) { x * 2 }\nconst TEN = 10;\n");
    let typed = "let a = 20;\nfn add(x) {\n  x + 1\n}\nadd(a)\n:load more.rhai\ntwice(a) + TEN\n\
        ctx.session.id().len() > 0\nlet seen = [];\n\
        register_command(\"note\", #{ run: |args, ctx| seen.push(args) });\n/note one two\nseen\n:list\n\
        on(\"session_info_changed\", |event| seen.push(event.name));\nset_session_name(\"x\");\nseen\n#{ b: [1, ()] }\n\"text\"\n";
    let said = repl(&home, typed).success();
    let expected =
        "21\n50\ntrue\n[\"one two\"]\ncommand note\n[\"one two\",\"x\"]\n{\"b\":[1,null]}\ntext\n";
    assert_eq!(said.stdout, expected, "{}", said.stderr);
    // Nothing of it is kept.
    assert!(home.session_files().is_empty());
}

#[test]
fn the_repl_says_where_a_line_is_wrong_and_goes_on() {
    let home = TempHome::new();
    let said = repl(
        &home,
        "let x = ;\nnothing\n[1].length\n:what\n/nobody\n1 + 1\nfn open() {\n",
    );
    assert_eq!(said.status.code(), Some(1));
    assert_eq!(said.stdout, "2\n");
    for part in ["repl:1:9: ", "it is called `len` here", "There is no :what"] {
        assert!(said.stderr.contains(part), "{part} in {}", said.stderr);
    }
}
