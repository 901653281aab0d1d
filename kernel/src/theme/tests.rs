//! What a theme's file may say.

use serde_json::{Value, json};

use super::*;

/// A theme in which every token has the colour 7.
fn whole() -> Value {
    let required = Token::ALL.iter().filter(|token| token.fallback().is_none());
    let colours: serde_json::Map<_, _> = required
        .map(|token| (token.name().to_owned(), json!(7)))
        .collect();
    json!({"name": "mine", "colors": colours})
}

fn with(at: &str, value: Value) -> Value {
    let mut theme = whole();
    *theme.pointer_mut(at).unwrap() = value;
    theme
}

fn refused(theme: &Value) -> String {
    Theme::parse(&theme.to_string()).unwrap_err().to_string()
}

#[test]
fn a_theme_has_a_colour_for_every_token_and_the_optional_ones_fall_back() {
    // resources §8, tui R13.2
    let mut written = whole();
    written["$schema"] = json!("https://example.org/theme.json");
    written["appearance"] = json!("light");
    written["vars"] = json!({"blue": "#00f", "sky": "blue", "own": ""});
    written["export"] = json!({"pageBg": "sky", "infoBg": 8});
    for (token, colour) in [
        ("muted", "sky"),
        ("text", "own"),
        ("selectedBg", "#123456"),
        ("thinkingXhigh", "oklch(0 0 0)"),
    ] {
        written["colors"][token] = json!(colour);
    }
    written["colors"]["scrollbarThumb"] = json!(255);
    let theme = Theme::parse(&written.to_string()).unwrap();
    let blue = Colour::Rgb(0, 0, 255);
    assert_eq!(
        (theme.name(), theme.appearance()),
        ("mine", Some(Appearance::Light))
    );
    assert_eq!(theme.token("accent"), Some(Colour::Index(7)));
    assert_eq!(theme.token("muted"), Some(blue));
    assert_eq!(theme.token("nothing"), None);
    assert_eq!(theme.colour(Token::ScrollbarTrack), blue);
    assert_eq!(theme.colour(Token::ScrollbarThumb), Colour::Index(255));
    assert_eq!(
        theme.colour(Token::SearchMatchBg),
        Colour::Rgb(0x12, 0x34, 0x56)
    );
    assert_eq!(theme.colour(Token::SearchMatchText), Colour::Default);
    assert_eq!(theme.colour(Token::ThinkingMax), Colour::Rgb(0, 0, 0));
    let export = ExportColours {
        page: Some(blue),
        card: None,
        info: Some(Colour::Index(8)),
    };
    assert_eq!(theme.export(), &export);
}

#[test]
fn what_nobody_knows_is_refused_with_what_is_near() {
    // resources §8
    let mut field = whole();
    field["colours"] = json!({});
    assert!(
        refused(&field).contains("a field \"colours\", which no theme has; \"colors\" is near")
    );
    let mut token = whole();
    token["colors"]["acent"] = json!(1);
    assert!(refused(&token).contains("\"acent\", which is no token; \"accent\" is near"));
    let mut export = whole();
    export["export"] = json!({"page": 1});
    assert!(refused(&export).contains("\"page\""));
    let mut variable = whole();
    variable["vars"] = json!({"green": 2});
    variable["colors"]["accent"] = json!("gren");
    assert!(
        refused(&variable).contains(
            "\"accent\" names a variable \"gren\" that it does not have; \"green\" is near"
        )
    );
}

#[test]
fn what_is_missing_or_of_another_kind_is_told() {
    for (theme, why) in [
        (json!([]), "no JSON object"),
        (json!({"name": "x"}), "no \"colors\""),
        (
            json!({"name": "x", "colors": {"accent": 1}}),
            "no colour for border, borderAccent",
        ),
        (with("/name", json!(1)), "no \"name\""),
        (with("/name", json!("")), "is empty"),
        (with("/name", json!("a/b")), "a slash"),
        (with("/name", json!("a\u{1b}[2J")), "control character"),
        (with("/name", json!("system")), "the terminal's own colours"),
        (with("/colors", json!(3)), "\"colors\" is no object"),
        (
            with("/colors/accent", json!(256)),
            "the colour 256 of \"accent\" is none",
        ),
        (with("/colors/accent", json!(-1)), "is none"),
        (with("/colors/accent", json!(1.5)), "is none"),
        (with("/colors/accent", json!("#12")), "is none"),
        (with("/colors/accent", json!(null)), "is none"),
    ] {
        assert!(refused(&theme).contains(why), "{why}: {}", refused(&theme));
    }
    let syntax = Theme::parse("{\n  \"name\": oops\n}")
        .unwrap_err()
        .to_string();
    assert!(
        syntax.contains("no JSON") && syntax.contains("line 2 column"),
        "{syntax}"
    );
    let mut appearance = whole();
    appearance["appearance"] = json!("grey");
    assert!(refused(&appearance).contains("neither \"dark\" nor \"light\""));
}

#[test]
fn variables_chain_and_one_that_leads_to_itself_or_nowhere_is_refused() {
    // resources §8, tui R13.3
    for (vars, why) in [
        (
            json!({"a": "b", "b": "c", "c": "a"}),
            "leads back to itself",
        ),
        (json!({"a": "a"}), "leads back to itself"),
        (json!({"a": "gone"}), "there is no variable \"gone\""),
        (json!({"a": []}), "the colour [] of \"a\" is none"),
    ] {
        let mut theme = whole();
        theme["vars"] = vars;
        assert!(refused(&theme).contains(why), "{}", refused(&theme));
    }
    // A long chain into which every variable leads takes no longer than its length.
    let mut theme = whole();
    let mut vars: serde_json::Map<_, _> = (0..20_000)
        .map(|at| (format!("v{at}"), json!(format!("v{}", at + 1))))
        .collect();
    vars.insert("v20000".into(), json!("#010203"));
    theme["vars"] = Value::Object(vars);
    theme["colors"]["accent"] = json!("v0");
    let theme = Theme::parse(&theme.to_string()).unwrap();
    assert_eq!(theme.token("accent"), Some(Colour::Rgb(1, 2, 3)));
}

#[test]
fn a_theme_is_chosen_by_its_name_and_the_terminals_own_counts_where_there_is_none() {
    // tui R13.1
    let dark = Theme {
        name: "dark".into(),
        ..Theme::parse(&whole().to_string()).unwrap()
    };
    let themes = Themes::new(vec![Arc::new(dark)]);
    let names: Vec<&str> = themes.all().map(|theme| theme.name()).collect();
    assert_eq!(names, ["dark", "system", "light"]);
    let pair = ThemeChoice::parse("light/dark").unwrap();
    assert_eq!(themes.chosen(&pair, Appearance::Light).name(), "light");
    let own = themes.chosen(&pair, Appearance::Dark);
    assert_eq!(own.token("accent"), Some(Colour::Index(7)));
    assert_eq!(themes.problem(&pair), None);
    let wrong = ThemeChoice::parse("ligt/dark").unwrap();
    assert_eq!(themes.chosen(&wrong, Appearance::Light).name(), SYSTEM);
    let problem = themes.problem(&wrong).unwrap();
    assert!(
        problem.contains("There is no theme \"ligt\"; \"light\" is near."),
        "{problem}"
    );
}
