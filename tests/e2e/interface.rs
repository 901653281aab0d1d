//! What an interface is drawn and driven with: themes and key bindings, live (`resources.md` §12.2).

use std::fs;

use pliant_tests::rpc::Rpc;
use pliant_tests::{ModelServer, TempHome};
use serde_json::json;

/// A theme with all colours that it has to have.
fn theme(name: &str, accent: &str) -> String {
    let colours = "accent border borderAccent borderMuted success error warning muted dim text thinkingText \
        selectedBg userMessageBg userMessageText customMessageBg customMessageText customMessageLabel \
        toolPendingBg toolSuccessBg toolErrorBg toolTitle toolOutput mdHeading mdLink mdLinkUrl mdCode mdCodeBlock \
        mdCodeBlockBorder mdQuote mdQuoteBorder mdHr mdListBullet toolDiffAdded toolDiffRemoved toolDiffContext \
        syntaxComment syntaxKeyword syntaxFunction syntaxVariable syntaxString syntaxNumber syntaxType \
        syntaxOperator syntaxPunctuation thinkingOff thinkingMinimal thinkingLow thinkingMedium thinkingHigh \
        thinkingXhigh bashMode";
    let mut written = json!({"name": name, "vars": {"main": accent}, "colors": {}});
    for token in colours.split_whitespace() {
        written["colors"][token] = json!("");
    }
    written["colors"]["accent"] = json!("main");
    written.to_string()
}

#[test]
fn a_theme_that_is_saved_counts_and_a_broken_one_stays_as_it_was() {
    // resources.md §12.1, §13.14; extensions.md §5.5
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    home.settings(json!({"theme": "mine"}));
    let file = home.write_agent("themes/mine.json", theme("mine", "#010203"));
    home.write_agent(
        "extensions/look.rhai",
        r#"register_command("look", #{ run: |args, ctx| {
            let all = ctx.ui.get_all_themes();
            let names = all.map(|theme| theme.name);
            let mine = ctx.ui.get_theme("mine");
            let set = ctx.ui.set_theme("dark");
            ctx.ui.notify(`${names} ${mine.colors.accent} ${ctx.ui.get_theme("no")} ${set.success} ${set.error}`);
        } });"#,
    );
    let mut rpc = home.rpc();
    rpc.state();
    let looked = |rpc: &mut Rpc| {
        rpc.ok(json!({"type": "prompt", "message": "/look"}));
        let shown = rpc.event("extension_ui_request");
        shown["message"].as_str().expect("a message").to_owned()
    };
    let before = looked(&mut rpc);
    assert!(
        before.starts_with("[\"mine\", \"system\", \"dark\", \"light\"] #010203  false"),
        "{before}"
    );
    assert!(
        before.contains("The theme \"dark\" is not shown"),
        "{before}"
    );
    fs::write(&file, theme("mine", "#040506")).expect("written");
    let told = rpc.event("resources_changed")["changes"].clone();
    assert_eq!(told[0]["source"], "theme:mine", "{told}");
    assert!(looked(&mut rpc).contains("#040506"));
    fs::write(&file, theme("mine", "sea")).expect("written");
    let told = rpc.event("resources_changed").to_string();
    assert!(told.contains("counts as it was before"), "{told}");
    assert!(looked(&mut rpc).contains("#040506"));
    fs::write(&file, theme("mine", "7")).expect("written");
    let told = rpc.event("resources_changed").to_string();
    assert!(told.contains("there is no variable"), "{told}");
    fs::remove_file(&file).expect("removed");
    let told = rpc.event("resources_changed").to_string();
    assert!(told.contains("is gone"), "{told}");
    assert!(looked(&mut rpc).contains("#040506"));
    home.settings(json!({"theme": "ligt"}));
    let told = rpc.event("resources_changed").to_string();
    assert!(
        told.contains("There is no theme") && told.contains("light"),
        "{told}"
    );
    rpc.end();
}

#[test]
fn key_bindings_that_are_saved_count_and_what_is_wrong_with_them_is_told() {
    // resources.md §12.2, tui.md §10
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    rpc.state();
    let keys = |text: &str| home.write_agent("keybindings.json", text);
    let told = |rpc: &mut Rpc| rpc.event("resources_changed")["changes"].clone();
    keys(r#"{"app.exit": "f2", "app.ext": "f3"}"#);
    let changes = told(&mut rpc);
    assert_eq!(changes[0]["source"], "keybindings.json", "{changes}");
    assert_eq!(changes[0]["message"], "Other keys: app.exit.", "{changes}");
    assert_eq!(changes[1]["outcome"], "failed", "{changes}");
    let near = "There is no action \"app.ext\"; \"app.exit\" is near";
    assert!(
        changes[1]["message"]
            .as_str()
            .expect("a message")
            .contains(near),
        "{changes}"
    );
    let file = keys("{");
    let changes = told(&mut rpc);
    assert_eq!(changes.as_array().map(Vec::len), Some(1), "{changes}");
    assert!(
        changes[0]["message"]
            .as_str()
            .expect("a message")
            .contains("line 1 column 1"),
        "{changes}"
    );
    fs::remove_file(file).expect("removed");
    assert_eq!(told(&mut rpc)[0]["message"], "Other keys: app.exit.");
    rpc.end();
}
