//! Packages: installed, listed, updated and removed, from folders and from repositories that these tests
//! make (`resources.md` §9).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pliant_tests::{ModelServer, TempHome, reply};
use serde_json::{Value, json};

fn git(folder: &Path, args: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-C"])
        .arg(folder)
        .args(args)
        .output()
        .expect("git is there");
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A repository with a package.
struct Repository(PathBuf);

impl Repository {
    fn in_home(home: &TempHome, name: &str) -> Self {
        let folder = home.tmp_dir().join(name);
        fs::create_dir_all(&folder).expect("the folder is made");
        git(&folder, &["init", "--quiet", "--initial-branch", "main"]);
        Self(folder)
    }

    fn commit(&self, files: &[(&str, &str)]) -> &Self {
        for (path, text) in files {
            let file = self.0.join(path);
            fs::create_dir_all(file.parent().expect("it is in a folder")).expect("it is made");
            fs::write(file, text).expect("it is written");
        }
        git(&self.0, &["add", "-A"]);
        git(&self.0, &["commit", "--quiet", "-m", "x"]);
        self
    }

    fn url(&self) -> String {
        format!("file://{}", self.0.display())
    }
}

const SCRIPT: &str =
    r#"register_command("packed", #{ run: |args, ctx| append_entry("packed", "one") });"#;

fn packages(home: &TempHome) -> Value {
    let text = fs::read_to_string(home.agent_dir().join("settings.json")).expect("settings");
    serde_json::from_str::<Value>(&text).expect("JSON")["packages"].clone()
}

#[test]
fn a_repository_is_installed_updated_listed_and_removed() {
    let server = ModelServer::start([reply::text("Greetings.")]);
    let home = TempHome::with_model(&server);
    let repository = Repository::in_home(&home, "repo");
    repository.commit(&[
        (
            "pliant.toml",
            "[package]\nname = \"greeting\"\nversion = \"1.0.0\"\n",
        ),
        ("extensions/packed.rhai", SCRIPT),
        ("prompts/greet.md", "Greet $1."),
    ]);
    let url = repository.url();
    let run = |args: &[&str]| home.pliant().args(args).run();
    let said = run(&["install", &url]).success();
    assert!(
        said.stdout.starts_with("greeting 1.0.0 is installed at "),
        "{}",
        said.stdout
    );
    assert_eq!(packages(&home), json!([url]));
    let lock = fs::read_to_string(home.agent_dir().join("packages.lock")).expect("a lock");
    assert!(lock.contains("\"commit\""), "{lock}");

    let mut rpc = home.rpc();
    rpc.state();
    rpc.turn("/greet you");
    rpc.ok(json!({"type": "prompt", "message": "/packed"}));
    rpc.end();
    assert_eq!(server.requests()[0].conversation()[0].1, "Greet you.");
    assert!(
        home.session()
            .iter()
            .any(|entry| entry["customType"] == "packed")
    );

    repository.commit(&[(
        "pliant.toml",
        "[package]\nname = \"greeting\"\nversion = \"1.1.0\"\n",
    )]);
    let said = run(&["list"]).success();
    assert!(said.stdout.contains("[user] 1.0.0 ("), "{}", said.stdout);
    let said = run(&["update"]).success();
    assert!(said.stdout.contains(" is now "), "{}", said.stdout);
    let said = run(&["list", "--json"]).success();
    let listed: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!(
        (&listed[0]["name"], &listed[0]["version"]),
        (&json!("greeting"), &json!("1.1.0"))
    );
    let said = run(&["update", &url]).success();
    assert!(said.stdout.contains("is up to date"), "{}", said.stdout);

    run(&["remove", &url]).success();
    assert_eq!(packages(&home), json!([]));
    let clones = home.agent_dir().join("packages/git/local");
    let left: Vec<PathBuf> = walk(&clones);
    assert!(left.iter().all(|path| path.is_dir()), "{left:?}");
    assert!(
        run(&["remove", &url])
            .failure(&[])
            .stderr
            .contains("names no package")
    );
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                walk(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

#[test]
fn a_tag_stays_where_it_is_and_a_branch_moves() {
    let home = TempHome::new();
    let repository = Repository::in_home(&home, "repo");
    repository.commit(&[("prompts/p.md", "one")]);
    git(&repository.0, &["tag", "v1"]);
    let url = repository.url();
    let run = |args: &[&str]| home.pliant().args(args).run();
    run(&["install", &format!("{url}@v1")]).success();
    repository.commit(&[("prompts/p.md", "two")]);
    let said = run(&["update"]).success();
    assert!(said.stdout.contains("stays at v1"), "{}", said.stdout);
    let text = || {
        let files = walk(&home.agent_dir().join("packages/git"));
        let file = files
            .into_iter()
            .find(|file| file.ends_with("prompts/p.md"));
        fs::read_to_string(file.expect("the prompt is there")).expect("it is read")
    };
    assert_eq!(text(), "one");
    // Another version takes the place of the first.
    run(&["install", &format!("{url}@main")]).success();
    assert_eq!(
        (text().as_str(), packages(&home)),
        ("two", json!([format!("{url}@main")]))
    );
    repository.commit(&[("prompts/p.md", "three")]);
    run(&["update"]).success();
    assert_eq!(text(), "three");
    let missing = run(&["install", &format!("{url}@nothing")]).failure(&[]);
    assert!(
        missing.stderr.contains("It may have no nothing"),
        "{}",
        missing.stderr
    );
    assert_eq!(text(), "three");
}

#[test]
fn a_folder_is_used_in_place_and_live() {
    let server = ModelServer::start([reply::text("a"), reply::text("b")]);
    let home = TempHome::with_model(&server);
    home.write("pack/prompts/say.md", "Say one.");
    let run = |args: &[&str]| home.pliant().args(args).run();
    run(&["install", "-l", "./pack"]).success();
    let text = fs::read_to_string(home.project_dir().join(".pliant/settings.json"));
    let settings: Value = serde_json::from_str(&text.expect("settings")).expect("JSON");
    assert_eq!(settings["packages"], json!(["../pack"]));
    let mut rpc = home.rpc_with(&["--approve"]);
    rpc.state();
    rpc.turn("/say");
    home.write("pack/prompts/say.md", "Say two.");
    rpc.event("resources_changed");
    rpc.turn("/say");
    rpc.end();
    let said: Vec<String> = server
        .requests()
        .iter()
        .map(|request| request.conversation().pop().expect("a prompt").1)
        .collect();
    assert_eq!(said, ["Say one.", "Say two."]);
    // What is the user's own stays.
    run(&["remove", "-l", "./pack"]).success();
    assert!(home.project_dir().join("pack/prompts/say.md").exists());
}

#[test]
fn hostile_sources_run_nothing_and_are_not_kept() {
    let home = TempHome::new();
    let refused = |args: &[&str], part: &str| {
        let said = home.pliant().args(args).run().failure(&[]);
        assert!(said.stderr.contains(part), "{args:?}: {}", said.stderr);
        assert!(!home.agent_dir().join("settings.json").exists(), "{args:?}");
    };
    refused(
        &["install", "--", "--upload-pack=touch hacked"],
        "no path and no URL",
    );
    refused(
        &["install", "git:ext::sh -c 'touch hacked'"],
        "take for something else",
    );
    refused(
        &["install", "https://me:secret@example.com/r"],
        "plain text",
    );
    refused(&["install", "npm:thing"], "another runtime");
    refused(&["install", "./nothing"], "no folder");
    refused(&["install", "file:///nowhere/at/all"], "cannot be cloned");
    assert!(!home.project_dir().join("hacked").exists());

    let repository = Repository::in_home(&home, "repo");
    repository.commit(&[
        (
            "pliant.toml",
            "build = \"touch built\"\nprompts = [\"p.md\"]\n",
        ),
        ("p.md", "p"),
    ]);
    refused(&["install", &repository.url()], "install it with --yes");
    let built = || {
        walk(&home.agent_dir().join("packages"))
            .iter()
            .any(|file| file.ends_with("built"))
    };
    assert!(!built());
    home.pliant()
        .args(["install", "--yes", &repository.url()])
        .run()
        .success();
    assert!(built());
}

#[test]
fn what_a_broken_package_would_bring_is_told_and_the_others_work() {
    let server = ModelServer::start([reply::text("a")]);
    let home = TempHome::with_model(&server);
    home.write("good/prompts/say.md", "Say it.");
    home.write("bad/pliant.toml", "= nonsense");
    let project = home.project_dir();
    let list = json!([
        project.join("bad"),
        project.join("gone"),
        "git:example.invalid/x",
        project.join("good")
    ]);
    home.settings(json!({ "packages": list }));
    let said = home.prompt("/say").run().success();
    assert_eq!(server.requests()[0].conversation()[0].1, "Say it.");
    for part in [
        "pliant.toml: ",
        "which the settings list as a package",
        "pliant install git:example.invalid/x",
    ] {
        assert!(said.stderr.contains(part), "{part} in {}", said.stderr);
    }
}

#[test]
fn a_folder_is_an_extension_for_one_run() {
    // resources §2: everything in a package that is named on the command line
    let server = ModelServer::start([reply::text("a"), reply::text("b")]);
    let home = TempHome::with_model(&server);
    let tool = |name: &str| {
        format!("register_tool(#{{ name: \"{name}\", description: \"d\", execute: || 1 }});")
    };
    home.write("pack/extensions/a.rhai", tool("of_a"));
    home.write("pack/extensions/b/index.rhai", tool("of_b"));
    home.write("pack/prompts/say.md", "Say it.");
    home.write("one/index.rhai", tool("of_one"));
    home.write("one/other.rhai", tool("not_meant"));
    home.write("empty/x.txt", "");
    home.prompt("/say")
        .args(["-e", "pack", "-e", "one"])
        .run()
        .success();
    let request = &server.requests()[0];
    assert_eq!(request.conversation()[0].1, "Say it.");
    for tool in ["of_a", "of_b", "of_one"] {
        assert!(request.tools().contains(&tool), "{tool}");
    }
    assert!(!request.tools().contains(&"not_meant"));
    home.prompt("x")
        .args(["-e", "empty"])
        .run()
        .failure(&["holds no extension"]);
    home.prompt("/say").run().success();
    assert_eq!(server.requests()[1].conversation()[0].1, "/say");
}
