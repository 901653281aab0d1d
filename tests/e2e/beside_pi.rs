//! Living beside pi: what pliant finds of it, and what it copies when it is told to
//! (`interfaces.md` §3.1). Nothing of pi's is ever changed but a session whose file is named.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pliant_tests::{ModelServer, TempHome, reply};
use serde_json::{Value, json};

use super::line::Talk;
use super::signals::command;

const ID: &str = "019a0000-1111-7222-8333-444455556666";

fn write_pi(home: &TempHome, path: &str, content: &str) -> PathBuf {
    let path = home.home_dir().join(".pi/agent").join(path);
    fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("the home is writable");
    fs::write(&path, content).expect("the home is writable");
    path
}

/// A session of pi in the directory of the project.
fn pi_session(home: &TempHome) -> PathBuf {
    let cwd = home.project_dir();
    let cwd = cwd.to_str().expect("it is text");
    let folder = format!("--{}--", cwd.trim_start_matches('/').replace('/', "-"));
    let lines = [
        json!({"type": "session", "version": 3, "id": ID, "timestamp": "2026-01-02T03:04:05.678Z", "cwd": cwd}),
        json!({"type": "message", "id": "00000001", "parentId": null, "timestamp": "2026-01-02T03:04:06.000Z",
            "message": {"role": "user", "content": "Said to pi.", "timestamp": 1_767_323_046_000_i64}}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let name = format!("sessions/{folder}/2026-01-02T03-04-05-678Z_{ID}.jsonl");
    write_pi(home, &name, &text)
}

/// Every file below a folder, with its content.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else {
            all.insert(path.clone(), fs::read(&path).expect("the file is there"));
        }
    }
    all
}

#[test]
fn sessions_of_pi_are_listed_and_a_setting_leaves_them_out() {
    // interfaces §3.1
    let server = ModelServer::start([reply::text("x")]);
    let home = TempHome::with_model(&server);
    let file = pi_session(&home);
    home.prompt("Said to pliant.").run().success();
    let list = |arguments: &[&str]| {
        let words = ["session", "list"].iter().chain(arguments);
        home.pliant().args(words).run().success().stdout
    };
    let table = list(&[]);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 3, "{table}");
    assert!(
        lines[1].ends_with("Said to pliant.") && lines[2].ends_with("Said to pi.  (pi)"),
        "{table}"
    );
    let json = list(&["--all", "--json"]);
    let sessions: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(sessions[0]["agent"], "pliant");
    assert_eq!(sessions[1]["agent"], "pi");
    assert_eq!(sessions[1]["path"], file.to_str().unwrap());
    home.settings(json!({"piCompat": {"sessions": "off"}}));
    assert!(!list(&["--all"]).contains("Said to pi."));
    home.pliant()
        .args(["session", "show", ID])
        .run()
        .failure(&["No session begins with"]);
}

#[test]
fn a_session_of_pi_is_read_by_its_id_but_neither_written_nor_deleted() {
    // interfaces §3.1
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let file = pi_session(&home);
    let before = contents(&home.home_dir().join(".pi"));
    let shown = home
        .pliant()
        .args(["session", "show", &ID[..8]])
        .run()
        .success();
    assert!(shown.stdout.contains("Said to pi."), "{}", shown.stdout);
    let path = file.to_str().unwrap();
    for (words, said) in [
        (vec!["--session", ID], "is pi's. Copy it"),
        (vec!["session", "rm", "--yes", ID], "is pi's, so it stays"),
        (
            vec!["session", "doctor", "--write-copy", ID],
            "nothing is written there",
        ),
    ] {
        let run = match words[0] {
            "session" => home.pliant().args(&words),
            _ => home.prompt("x").args(&words),
        };
        let told = run.run().failure(&[said]).stderr;
        assert!(told.contains(path) || told.contains("--fork"), "{told}");
    }
    home.prompt("x").args(["--continue", "--no-session"]).run();
    assert_eq!(contents(&home.home_dir().join(".pi")), before);
}

#[test]
fn a_session_of_pi_is_forked_by_its_id_and_continued_in_its_place_by_its_file() {
    // interfaces §3.1
    let server = ModelServer::start([reply::text("Forked."), reply::text("Continued.")]);
    let home = TempHome::with_model(&server);
    let file = pi_session(&home);
    let before = fs::read_to_string(&file).unwrap();
    home.prompt("And now?").args(["--fork", ID]).run().success();
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    assert_eq!(home.session()[0]["parentSession"], file.to_str().unwrap());
    home.prompt("And now?")
        .args(["--session", file.to_str().unwrap()])
        .run()
        .success();
    let after = fs::read_to_string(&file).unwrap();
    assert!(
        after.starts_with(&before) && after.contains("Continued."),
        "{after}"
    );
    assert_eq!(home.session_files().len(), 1);
    for request in server.finish() {
        let conversation = request.conversation();
        assert_eq!(conversation[0].1, "Said to pi.");
    }
}

#[test]
fn at_a_terminal_a_fork_of_pis_session_is_offered() {
    // interfaces §3.1
    let server = ModelServer::start([reply::text("Forked.")]);
    let home = TempHome::with_model(&server);
    pi_session(&home);
    let mut talk = Talk::with(command(&home, &["--session", ID]));
    talk.shows_in_the_end(
        "Warning: The session",
        "Copy it to this directory and go on there? [y/N] ",
    );
    talk.keys("y\n");
    talk.shows_in_the_end("Warning: The session", "> ");
    talk.keys("And now?\n");
    talk.shows_in_the_end("Warning: The session", "Forked.\n> ");
    assert_eq!(server.finish()[0].conversation()[0].1, "Said to pi.");
}

#[test]
fn the_models_of_pi_count_where_pliant_has_none() {
    // interfaces §3.1
    let server = ModelServer::start([reply::text("From pi's model.")]);
    let home = TempHome::new();
    let models = json!({"providers": {"mock": {"baseUrl": server.url(), "api": "openai-completions",
        "apiKey": "test-key", "models": [{"id": "mock-model"}]}}});
    let file = write_pi(&home, "models.json", &models.to_string());
    let output = home.prompt("x").run().success();
    assert_eq!(output.stdout, "From pi's model.\n");
    assert_eq!(fs::read_to_string(&file).unwrap(), models.to_string());
    assert_eq!(contents(&home.home_dir().join(".pi")).len(), 1);
    home.settings(json!({"piCompat": {"resources": false}}));
    home.prompt("x").run().failure(&[]);
    home.settings(json!({}));
    home.models(json!({}));
    home.prompt("x").run().failure(&[]);
    assert_eq!(server.finish().len(), 1);
}

#[test]
fn resources_of_pis_project_folder_count_behind_pliants_when_the_project_is_trusted() {
    // interfaces §3.1
    let server = ModelServer::start((0..3).map(|_| reply::text("x")));
    let home = TempHome::with_model(&server);
    home.write(".pi/prompts/a.md", "Pi's a.");
    home.write(".pi/prompts/b.md", "Pi's b.");
    home.write(".pliant/prompts/b.md", "Pliant's b.");
    home.prompt("/a").run().success();
    let told = home.prompt("/a").args(["/b", "-a"]).run().success().stderr;
    assert!(told.contains("The prompt template \"b\" of"), "{told}");
    let requests = server.finish();
    let sent: Vec<String> = requests
        .iter()
        .map(|request| request.conversation().last().unwrap().1.clone())
        .collect();
    assert_eq!(sent, ["/a", "Pi's a.", "Pliant's b."]);
}

#[test]
fn settings_of_pi_are_copied_once_and_what_is_there_stays() {
    // interfaces §3.1
    let home = TempHome::new();
    let theirs = json!({"theme": "dark", "defaultModel": "theirs", "retry": {"maxRetries": 9, "enabled": true},
        "packages": ["npm:x"], "extensions": ["a.ts"], "skills": ["./mine", "~/s"], "prompts": ["!x"],
        "httpProxy": "http://user:secret@proxy", "modelThinkingLevels": {"p/m.1": "high"}, "strange": 1});
    let file = write_pi(&home, "settings.json", &theirs.to_string());
    home.settings(json!({"defaultModel": "ours", "retry": {"enabled": false}, "own": {"x": 1}}));
    let import = |arguments: &[&str]| {
        let words = ["config", "import-pi"].iter().chain(arguments);
        home.pliant().args(words).run().success().stdout
    };
    let told = import(&[]);
    for words in [
        "Copied: theme, retry.maxRetries, skills, httpProxy, modelThinkingLevels.",
        "Kept as they are here (--force replaces them): defaultModel, retry.enabled.",
        "Left out: packages, because packages of pi",
        "Left out: extensions, because extensions of pi are TypeScript",
        "Left out: prompts, because it has patterns",
        "Left out: strange, because pliant does not know it.",
    ] {
        assert!(told.contains(words), "{words} is missing in {told}");
    }
    assert!(!told.contains("secret"), "{told}");
    let written = || -> Value {
        serde_json::from_str(&fs::read_to_string(home.agent_dir().join("settings.json")).unwrap())
            .unwrap()
    };
    let mine = home.home_dir().join(".pi/agent/mine");
    let mut expected = json!({"defaultModel": "ours", "retry": {"enabled": false, "maxRetries": 9},
        "own": {"x": 1}, "theme": "dark", "skills": [mine.to_str().unwrap(), "~/s"],
        "httpProxy": "http://user:secret@proxy", "modelThinkingLevels": {"p/m.1": "high"}});
    assert_eq!(written(), expected);
    assert!(import(&[]).starts_with("Nothing was copied."));
    import(&["--force"]);
    expected["defaultModel"] = json!("theirs");
    expected["retry"]["enabled"] = json!(true);
    assert_eq!(written(), expected);
    assert_eq!(fs::read_to_string(file).unwrap(), theirs.to_string());
}

#[test]
fn settings_that_cannot_be_read_are_copied_neither_from_nor_to() {
    let home = TempHome::new();
    let import = || home.pliant().args(["config", "import-pi"]).run();
    import().failure(&["There are no settings of pi"]);
    write_pi(&home, "settings.json", "{\"theme\": ");
    import().failure(&["The settings of pi in", "cannot be read"]);
    write_pi(&home, "settings.json", "{\"theme\": \"dark\"}");
    let own = home.write_agent("settings.json", "{,}");
    import().failure(&["was not changed"]);
    assert_eq!(fs::read_to_string(own).unwrap(), "{,}");
}

#[test]
fn keys_of_pi_are_copied_on_request_and_logins_are_not() {
    // interfaces §3.1
    let home = TempHome::new();
    let theirs = json!({"one": {"type": "api_key", "key": "sk-one-secret"},
        "two": {"type": "api_key", "key": "sk-two-secret"},
        "three": {"type": "oauth", "refresh": "refresh-secret", "access": "a", "expires": 1}});
    let file = write_pi(&home, "auth.json", &theirs.to_string());
    let own = home.write_agent(
        "auth.json",
        json!({"two": {"type": "api_key", "key": "ours"}, "four": {"type": "api_key", "key": "four"}}).to_string(),
    );
    fs::set_permissions(&own, fs::Permissions::from_mode(0o644)).unwrap();
    let import = |arguments: &[&str]| {
        let words = ["auth", "import-pi"].iter().chain(arguments);
        home.pliant().args(words).run()
    };
    import(&["one", "nobody"]).failure(&["nothing for \"nobody\""]);
    let told = import(&[]).success().stdout;
    assert!(told.contains("Copied: one.\nKept as they are here (--force replaces them): two.\nLeft out: three, because it is a login"), "{told}");
    assert!(!told.contains("secret"), "{told}");
    let written = || -> Value { serde_json::from_str(&fs::read_to_string(&own).unwrap()).unwrap() };
    let key = |key: &str| json!({"type": "api_key", "key": key});
    assert_eq!(
        written(),
        json!({"two": key("ours"), "four": key("four"), "one": key("sk-one-secret")})
    );
    assert_eq!(
        fs::metadata(&own).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(import(&["three"]).status.code(), Some(1));
    import(&["two", "--force"]).success();
    assert_eq!(written()["two"], key("sk-two-secret"));
    assert_eq!(fs::read_to_string(file).unwrap(), theirs.to_string());
}

#[test]
fn keys_of_pi_are_not_used_by_themselves() {
    // interfaces §3.1
    let server = ModelServer::start([reply::text("x")]);
    let home = TempHome::new();
    home.models(
        json!({"mock": {"baseUrl": server.url(), "api": "openai-completions",
        "models": [{"id": "mock-model"}]}}),
    );
    write_pi(
        &home,
        "auth.json",
        &json!({"mock": {"type": "api_key", "key": "sk-of-pi"}}).to_string(),
    );
    home.prompt("x").run().success();
    assert_eq!(server.finish()[0].header("authorization"), None);
}
