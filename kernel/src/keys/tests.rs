//! What keys do by default and by the user's file.

use std::collections::HashMap;
use std::fs;

use serde_json::{Value, json};

use super::*;

const PLATFORMS: [Platform; 3] = [Platform::Unix, Platform::Wsl, Platform::Windows];

fn action(id: &str) -> Action {
    Action::parse(id).unwrap()
}

fn read(written: &Value) -> (KeyBindings, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(FILE);
    fs::write(&file, written.to_string()).unwrap();
    KeyBindings::read(&file, Platform::Unix).unwrap()
}

#[test]
fn every_default_is_a_key_and_none_does_two_things_in_one_place() {
    // tui §10
    for platform in PLATFORMS {
        let bindings = KeyBindings::defaults(platform);
        let mut places = HashMap::new();
        for action in Action::all() {
            let keys = action.defaults(platform);
            assert_eq!(bindings.keys(action), keys, "{action} on {platform:?}");
            for key in keys {
                assert_eq!(normal(key).unwrap(), *key);
                let other = places.insert((action.context(), *key), action);
                assert_eq!(other, None, "{key} does {action} too, on {platform:?}");
            }
        }
    }
    let ids: std::collections::HashSet<&str> = Action::all().map(Action::id).collect();
    assert_eq!(ids.len(), Action::all().count());
}

#[test]
fn a_key_does_what_the_nearest_place_says() {
    // tui R10.1
    let keys = KeyBindings::defaults(Platform::Unix);
    let resolve = |key, contexts: &[Context]| keys.resolve(key, contexts).map(Action::id);
    let around = [
        Context::Transcript,
        Context::History,
        Context::App,
        Context::Editor,
    ];
    assert_eq!(resolve("Ctrl+P", &around), Some("app.model.cycleForward"));
    assert_eq!(
        resolve("ctrl+p", &[Context::Sessions, Context::Select]),
        Some("app.session.togglePath")
    );
    assert_eq!(resolve("pageUp", &around), Some("tui.altScreen.pageUp"));
    assert_eq!(
        resolve("pageup", &[Context::Editor]),
        Some("tui.editor.pageUp")
    );
    assert_eq!(resolve("ctrl+c", &around), Some("app.clear"));
    assert_eq!(resolve("x", &around), None);
    assert_eq!(resolve("no key", &around), None);
    assert_eq!(
        KeyBindings::defaults(Platform::Windows).keys(action("app.suspend")),
        [""; 0]
    );
    assert_eq!(
        KeyBindings::defaults(Platform::Wsl).keys(action("tui.editor.undo")),
        ["alt+z"]
    );
}

#[test]
fn the_users_keys_take_the_place_of_an_actions_and_an_empty_list_switches_it_off() {
    // tui §10
    let (keys, problems) = read(&json!({
        "app.model.select": ["Shift+Ctrl+M", "ctrl+shift+m", "f5"],
        "app.tools.expand": [],
        "newSession": "ctrl+l",
        "cursorUp": "ctrl+u",
    }));
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(
        keys.keys(action("app.model.select")),
        ["ctrl+shift+m", "f5"]
    );
    assert_eq!(keys.keys(action("app.tools.expand")), [""; 0]);
    assert_eq!(keys.resolve("ctrl+o", &[Context::App]), None);
    assert_eq!(
        keys.resolve("ctrl+l", &[Context::App]),
        Some(action("app.session.new"))
    );
    // What had the key by default in the same place has lost it; in another place nothing has.
    assert_eq!(keys.keys(action("tui.editor.deleteToLineStart")), [""; 0]);
    assert_eq!(keys.keys(action("app.tree.filter.labeledOnly")), ["ctrl+l"]);
}

#[test]
fn what_is_wrong_costs_its_entry_and_is_told() {
    // tui §10
    let (keys, problems) = read(&json!({
        "app.modle.select": "f5",
        "app.exit": "ctrl+hyper+x",
        "app.clear": 7,
        "app.suspend": ["f6", null],
        "app.session.new": "f7",
        "newSession": "f8",
        "app.session.tree": "f9",
        "app.session.fork": "f9",
        "tui.editor.undo": "f9",
    }));
    let told = |why: &str| {
        let found = problems
            .iter()
            .any(|one| one.contains(why) && one.contains(FILE));
        assert!(found, "{why}: {problems:?}");
    };
    told("There is no action \"app.modle.select\"; \"app.model.select\" is near");
    told("The keys of \"app.exit\" stay as they are, because \"ctrl+hyper+x\" is no key");
    told("The keys of \"app.clear\" stay as they are, because they are neither");
    told("The keys of \"app.suspend\" stay as they are, because one of them is no text");
    told("\"newSession\" is the former name of \"app.session.new\"");
    told("The key f9 is bound to \"app.session.tree\" and to \"app.session.fork\"");
    assert_eq!(problems.len(), 6, "{problems:?}");
    assert_eq!(keys.keys(action("app.exit")), ["ctrl+d"]);
    assert_eq!(keys.keys(action("app.session.new")), ["f7"]);
    assert_eq!(
        keys.resolve("f9", &[Context::App]),
        Some(action("app.session.tree"))
    );
    assert_eq!(keys.keys(action("app.session.fork")), [""; 0]);
    assert_eq!(keys.keys(action("tui.editor.undo")), ["f9"]);
}

#[test]
fn extensions_may_not_have_the_keys_of_some_actions_and_take_those_of_others() {
    // extensions §4.5
    let keys = KeyBindings::defaults(Platform::Unix);
    let id = |action: Option<Action>| action.map(Action::id);
    assert_eq!(id(keys.reserved("Tab+x")), None);
    assert_eq!(id(keys.reserved("SHIFT+Tab")), Some("app.thinking.cycle"));
    assert_eq!(
        id(keys.reserved("ctrl+k")),
        Some("tui.editor.deleteToLineEnd")
    );
    assert_eq!(id(keys.taken("ctrl+k")), Some("tui.editor.deleteToLineEnd"));
    // Of several the one that keeps the key.
    assert_eq!(id(keys.taken("ctrl+d")), Some("app.exit"));
    assert_eq!(id(keys.reserved("ctrl+y")), None);
    assert_eq!(id(keys.taken("Ctrl+Y")), Some("tui.editor.yank"));
    assert_eq!(keys.taken("ctrl+alt+f9"), None);
    assert_eq!(keys.taken("no key"), None);
    assert_eq!(
        Action::all().filter(|action| action.is_reserved()).count(),
        18
    );
    // A key that is bound otherwise is free.
    let (own, _) = read(&json!({"app.tools.expand": "f5"}));
    assert_eq!(id(own.reserved("f5")), Some("app.tools.expand"));
    assert_eq!(own.reserved("ctrl+o"), None);
}

#[test]
fn a_file_that_is_saved_counts_and_a_broken_one_changes_nothing() {
    // resources §12.2
    let dir = tempfile::tempdir().unwrap();
    let (agent, pi) = (dir.path().join("agent"), dir.path().join("pi"));
    fs::create_dir(&agent).unwrap();
    fs::create_dir(&pi).unwrap();
    fs::write(pi.join(FILE), "{\"app.exit\": \"f2\"}").unwrap();
    let (live, problems) = LiveKeys::load(&agent, Some(&pi), Platform::Unix);
    let exit = || live.now().keys(action("app.exit")).to_vec();
    assert!(problems.is_empty());
    // Pi's count as long as the user has none.
    assert_eq!(exit(), ["f2"]);
    let file = agent.join(FILE);
    fs::write(&file, "{\"app.exit\": \"f3\", \"app.clear\": []}").unwrap();
    let reread = live.reread();
    assert_eq!(reread.changed, [action("app.clear"), action("app.exit")]);
    assert_eq!(exit(), ["f3"]);
    fs::write(&file, "{\n  \"app.exit\": f4\n}").unwrap();
    let reread = live.reread();
    assert!(reread.changed.is_empty());
    assert!(
        reread.problems[0].contains("line 2"),
        "{:?}",
        reread.problems
    );
    assert_eq!(live.reread(), Reread::default(), "told a second time");
    assert_eq!(exit(), ["f3"]);
    fs::remove_file(&file).unwrap();
    assert_eq!(live.reread().changed.len(), 2);
    assert_eq!(exit(), ["f2"]);
}
