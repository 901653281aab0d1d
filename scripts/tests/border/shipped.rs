//! The extensions that ship: each does what its first comment says.

use pliant_kernel::registry::Kind;
use pliant_scripts::shipped_extensions;
use serde_json::{Value, json};

use crate::kit::{Bench, Fake, http_answer, load_with};

async fn shipped(name: &str, fake: Fake) -> Bench {
    let all = shipped_extensions();
    let one = all.iter().find(|one| one.name == name).unwrap();
    load_with(&one.text, fake).await
}

async fn call(bench: &Bench, tool: &str, input: Value) -> Value {
    let event = json!({"toolName": tool, "input": input, "toolCallId": "c1"});
    bench.hook("tool_call", event).await.unwrap()
}

async fn bash(bench: &Bench, line: &str) -> Value {
    call(bench, "bash", json!({"command": line})).await
}

fn is_blocked(answer: &Value) -> bool {
    answer["block"] == json!(true)
}

/// Rules, and a user who gives that answer when asked.
fn gate(rules: &'static str, answer: Option<&'static str>) -> Fake {
    Fake::default()
        .stream("config.get", move |_| Ok(vec![rules.as_bytes().to_vec()]))
        .stream("ui.ask", move |_| {
            Ok(vec![json!(answer).to_string().into_bytes()])
        })
        .on("ui.info", |_| Ok(json!({"mode": "tui", "hasUi": true})))
        .on("session.append", |_| Ok(json!("e1")))
}

const RULES: &str = r#"{"deny": ["git push **"], "ask": ["npm publish **"], "allow": ["git log:*", "ls **", "cd **"]}"#;

#[tokio::test]
async fn the_gate_judges_every_simple_command_and_what_denies_wins() {
    // reports T09
    let bench = shipped("permission-gate", gate(RULES, None)).await;
    for line in [
        "git log",
        "git log -n 3 --oneline",
        "ls -la && git log",
        "cd x; ls",
        "ls 2>/dev/null 2>&1",
    ] {
        assert!(!is_blocked(&bash(&bench, line).await), "{line}");
    }
    assert!(
        bench.fake.asked("ui.ask").is_empty(),
        "nobody is asked about what is allowed"
    );
    for line in [
        "cd x && rm -rf .",
        "cd x; rm y",
        "cd x || rm y",
        "ls | rm y",
        "ls\nrm y",
        "{ ls; rm y; }",
        "ls $(rm y)",
        "ls <(rm y)",
        "ls <<E\n$(rm y)\nE",
        "A=1 rm y",
        "sh -c 'rm y'",
        "ls $X; $Y",
        "./git log",
        "git log > ~/.bashrc",
        "cd x &>> f",
    ] {
        assert!(is_blocked(&bash(&bench, line).await), "{line}");
    }
    assert!(!bench.fake.asked("ui.ask").is_empty());
}

#[tokio::test]
async fn a_rule_that_denies_is_not_asked_about_wherever_the_command_stands() {
    let bench = shipped("permission-gate", gate(RULES, Some("Run it"))).await;
    for line in [
        "git push",
        "ls; git push -f",
        "echo $(git push)",
        "bash -c 'ls && git push'",
        "sudo git push",
        "$X; git push",
        "echo ${x:-$(ls)}; git push",
        "f() { git push; }",
        "git -C /r --no-pager push",
        "/usr/bin/git push",
    ] {
        let answer = bash(&bench, line).await;
        assert!(is_blocked(&answer), "{line}");
        assert!(
            answer["reason"]
                .as_str()
                .unwrap()
                .contains("\"git push **\""),
            "{answer}"
        );
    }
    assert!(bench.fake.asked("ui.ask").is_empty());
    let logged = bench.fake.asked("session.append");
    assert_eq!(logged.len(), 10);
    assert_eq!(logged[0]["data"]["decision"], "deny");
    assert_eq!(logged[0]["customType"], "permission-gate");
}

#[tokio::test]
async fn an_argument_that_may_become_one_that_a_rule_forbids_is_asked_about() {
    // reports T09
    let rules = r#"{"deny": ["git push **"], "ask": []}"#;
    let bench = shipped("permission-gate", gate(rules, None)).await;
    for line in ["git $X", "git pus?", "ls | xargs git"] {
        assert!(is_blocked(&bash(&bench, line).await), "{line}");
    }
    for line in ["git log", "echo $X", "ls *"] {
        assert!(!is_blocked(&bash(&bench, line).await), "{line}");
    }
}

#[tokio::test]
async fn what_the_user_says_counts_and_once_and_for_all_if_he_says_so() {
    let once = shipped("permission-gate", gate("null", Some("Run it"))).await;
    for _ in 0..2 {
        assert!(!is_blocked(&bash(&once, "rm -rf build").await));
    }
    assert_eq!(once.fake.asked("ui.ask").len(), 2);
    let always = "Run it, and do not ask about this line again";
    let always = shipped("permission-gate", gate("null", Some(always))).await;
    for _ in 0..2 {
        assert!(!is_blocked(&bash(&always, "rm -rf build").await));
    }
    assert_eq!(always.fake.asked("ui.ask").len(), 1);
    let no = shipped("permission-gate", gate("null", Some("Do not run it"))).await;
    let answer = bash(&no, "rm -rf build").await;
    assert!(
        answer["reason"]
            .as_str()
            .unwrap()
            .starts_with("The user does not let this run"),
        "{answer}"
    );
    assert!(
        !is_blocked(&bash(&no, "rm build.txt").await),
        "without a list only what can do harm is asked about"
    );
    assert!(!is_blocked(&call(&no, "write", json!({"path": "x"})).await));
}

#[tokio::test]
async fn where_nobody_can_be_asked_the_gate_says_no() {
    let fake = Fake::default()
        .on("config.get", |_| Ok(Value::Null))
        .on("ui.ask", crate::kit::unavailable)
        .on("ui.info", |_| Ok(json!({"mode": "print", "hasUi": false})))
        .on("session.append", |_| Ok(json!("e1")));
    let bench = shipped("permission-gate", fake).await;
    let answer = bash(&bench, "sudo ls").await;
    assert!(
        answer["reason"]
            .as_str()
            .unwrap()
            .starts_with("Nobody can be asked"),
        "{answer}"
    );
}

#[tokio::test]
async fn protected_paths_are_not_written_however_they_are_spelled() {
    let fake = Fake::default().on("config.get", |_| {
        Ok(json!([".env", ".git/", "secrets/*.key", "*.pem"]))
    });
    let bench = shipped("protected-paths", fake).await;
    for path in [
        ".env",
        "./.env",
        "a/../.env",
        "/x/y/.env",
        "sub/.env",
        ".git/config",
        ".git",
        "x/.git/hooks/a",
        "secrets/a.key",
        "q/secrets/b.key",
        "x.pem",
    ] {
        for tool in ["write", "edit"] {
            let answer = call(&bench, tool, json!({"path": path})).await;
            assert!(is_blocked(&answer), "{tool} {path}");
        }
        for line in [
            format!("echo x > {path}"),
            format!("ls; cat a >> '{path}'"),
            format!("tee {path}"),
            format!("true && rm {path}"),
        ] {
            assert!(is_blocked(&bash(&bench, &line).await), "{line}");
        }
    }
    for path in [
        "env",
        ".envrc",
        "secrets/a.txt",
        "secrets/x/a.key",
        ".github/x",
        "a.pem.txt",
    ] {
        assert!(
            !is_blocked(&call(&bench, "write", json!({"path": path})).await),
            "{path}"
        );
    }
    assert!(!is_blocked(
        &call(&bench, "read", json!({"path": ".env"})).await
    ));
    assert!(!is_blocked(&bash(&bench, "cat .env > copy").await));
}

#[tokio::test]
async fn the_todo_list_is_kept_in_the_tree_and_shown() {
    let fake = Fake::default()
        .on("session.append", |_| Ok(json!("e1")))
        .on("ui.show", |_| Ok(Value::Null))
        .on("session.read", |_| {
            let entry = |items: Value| json!({"type": "custom", "customType": "todo", "data": {"items": items}});
            Ok(json!([entry(json!([])), {"type": "message"}, entry(json!([{"text": "b", "status": "active"}]))]))
        });
    let bench = shipped("todo", fake).await;
    let items = json!([{"text": "a", "status": "done"}, {"text": "b", "status": "active"}, {"text": "c", "status": "pending"}]);
    let said = bench.tool_text("todo", json!({"items": items})).await;
    assert_eq!(said, "2 of 3 are open.\n☑ a\n▶ b\n☐ c");
    assert_eq!(
        bench.fake.asked("session.append"),
        [json!({"customType": "todo", "data": {"items": items}})]
    );
    bench.hook("session_tree", json!({})).await.unwrap();
    let shown = bench.fake.asked("ui.show");
    assert_eq!(shown[0]["widgetLines"], json!(["☑ a", "▶ b", "☐ c"]));
    assert_eq!(
        shown[1]["widgetLines"],
        json!(["▶ b"]),
        "as it was at that place"
    );
    bench
        .invoke(Kind::Command, "todo", "run", json!(""))
        .await
        .unwrap();
    assert_eq!(bench.fake.asked("ui.show")[2]["message"], "▶ b");
}

#[tokio::test]
async fn plan_mode_lets_look_and_nothing_else_until_it_is_turned_off() {
    let fake = Fake::default()
        .on("ui.show", |_| Ok(Value::Null))
        .on("flag.get", |_| Ok(json!(true)));
    let bench = shipped("plan-mode", fake).await;
    assert!(
        !is_blocked(&bash(&bench, "rm x").await),
        "off before the session begins"
    );
    bench
        .hook("session_start", json!({"reason": "startup"}))
        .await
        .unwrap();
    for line in [
        "ls -la",
        "cat a | grep b",
        "git log && git diff",
        "find . -name x",
        "ls 2>/dev/null",
        "ls 2>&1 | sort -rn",
        "find . -type f -name '*.rs' -follow",
        "git branch -a",
        "git log || rg -n x src/*",
        "cd x; true",
    ] {
        let answer = bash(&bench, line).await;
        assert_eq!(
            is_blocked(&answer),
            line.starts_with("cd"),
            "{line}: {answer}"
        );
    }
    for line in [
        "rm x",
        "ls > out",
        "git commit",
        "find . -delete",
        "find . -fprintf out x",
        "find . $X",
        "sort -no out in",
        "sort --output=out in",
        "rg --pre ./x y",
        "git branch new",
        "git branch -D old",
        "git diff --output=out",
        "ls > 1",
        "date -s 0",
        "ls; touch x",
        "$X",
        "ls | xargs rm",
        "sh -c 'ls'",
    ] {
        assert!(is_blocked(&bash(&bench, line).await), "{line}");
    }
    assert!(is_blocked(
        &call(&bench, "write", json!({"path": "x"})).await
    ));
    assert!(!is_blocked(
        &call(&bench, "read", json!({"path": "x"})).await
    ));
    let start = json!({"systemPromptOptions": {"sections": {}}});
    let edited = bench.hook("before_agent_start", start).await.unwrap();
    let said = &edited["event"]["systemPromptOptions"]["sections"]["plan_mode"];
    assert!(
        said.as_str().unwrap().starts_with("Plan mode is on"),
        "{edited}"
    );
    bench
        .invoke(Kind::Command, "plan", "run", json!(""))
        .await
        .unwrap();
    assert!(!is_blocked(&bash(&bench, "rm x").await));
}

#[tokio::test]
async fn notify_tells_of_long_runs_by_the_users_command_or_on_the_screen() {
    let fake = |wanted: &'static str| {
        Fake::default()
            .stream("config.get", move |_| Ok(vec![wanted.as_bytes().to_vec()]))
            .on("ui.show", |_| Ok(Value::Null))
            .stream("exec.stream", |_| {
                Ok(vec![b"x{\"code\":0,\"timedOut\":false}".to_vec()])
            })
    };
    let run = async |wanted: &'static str| {
        let bench = shipped("notify", fake(wanted)).await;
        bench.hook("agent_start", json!({})).await.unwrap();
        bench
            .hook("agent_settled", json!({"aborted": false}))
            .await
            .unwrap();
        (bench.fake.asked("ui.show"), bench.fake.asked("exec.stream"))
    };
    assert_eq!(run("null").await, (vec![], vec![]), "it did not take long");
    let (shown, _) = run(r#"{"afterSeconds": 0}"#).await;
    assert_eq!(shown[0]["message"], "Done after 0 s.");
    let (shown, started) = run(r#"{"afterSeconds": 0, "command": ["say", "-v"]}"#).await;
    assert!(shown.is_empty());
    assert_eq!(started[0]["argv"], json!(["say", "-v", "Done after 0 s."]));
}

#[tokio::test]
async fn summarize_and_handoff_ask_for_what_the_user_wants() {
    let fake = Fake::default()
        .on("config.get", |_| Ok(json!("all names")))
        .on("session.compact", |_| Ok(Value::Null));
    let bench = shipped("summarize", fake).await;
    bench
        .invoke(Kind::Command, "summarize", "run", json!(" and dates "))
        .await
        .unwrap();
    assert_eq!(
        bench.fake.asked("session.compact"),
        [json!({"customInstructions": "Keep all names. and dates"})]
    );
    let fake = Fake::default().on("session.send_user_message", |_| Ok(Value::Null));
    let bench = shipped("handoff", fake).await;
    bench
        .invoke(Kind::Command, "handoff", "run", json!("notes.md"))
        .await
        .unwrap();
    let asked = &bench.fake.asked("session.send_user_message")[0];
    assert!(
        asked["content"]
            .as_str()
            .unwrap()
            .contains("into the file notes.md"),
        "{asked}"
    );
}

#[tokio::test]
async fn the_router_hands_over_and_back() {
    let fake = Fake::default().on("config.get", |_| {
        Ok(json!({"strong": "p/big", "quick": "p/small", "turns": 2}))
    });
    let bench = shipped("model-router", fake).await;
    let mut state = Value::Null;
    for (reason, expected) in [
        ("user", "p/big"),
        ("continuation", "p/small"),
        ("continuation", "p/small"),
        ("continuation", "p/big"),
        ("continuation", "p/small"),
        ("retry", "p/big"),
    ] {
        let request = json!({"reason": reason, "state": state, "messages": []});
        let route = bench
            .invoke(Kind::VirtualModel, "router/two", "route", request)
            .await
            .unwrap();
        assert_eq!(route["model"], expected, "{reason}");
        state = route["state"].clone();
    }
}

#[tokio::test]
async fn a_compatible_server_is_asked_for_its_models_unless_the_settings_name_them() {
    let models = async |setting: &'static str, status: u16, body: &'static str| {
        let fake = Fake::default()
            .stream("config.get", move |_| Ok(vec![setting.as_bytes().to_vec()]))
            .stream("http.stream", move |_| Ok(http_answer(status, body)));
        let bench = shipped("openai-compatible", fake).await;
        let listed = bench.invoke(Kind::Provider, "compatible", "models", Value::Null);
        let listed = listed.await.unwrap();
        let fact = |model: &Value| {
            let text = |field: &str| model[field].as_str().unwrap().to_owned();
            format!(
                "{} {} {}",
                text("id"),
                text("baseUrl"),
                model["contextWindow"]
            )
        };
        let facts: Vec<String> = listed.as_array().unwrap().iter().map(fact).collect();
        (facts.join(", "), bench.fake.asked("http.stream").len())
    };
    let server = r#"{"baseUrl": "http://s/v1/"}"#;
    let body = r#"{"data": [{"id": "a"}, {"id": 7}, {"id": ""}, {"id": "b"}]}"#;
    let both = "a http://s/v1 32768, b http://s/v1 32768".to_owned();
    assert_eq!(models(server, 200, body).await, (both, 1));
    for (status, body) in [
        (500, body),
        (200, "<html>"),
        (200, "[]"),
        (200, r#"{"data": null}"#),
        (200, r#"{"data": "no"}"#),
        (200, r#"{"data": [null, 1]}"#),
    ] {
        assert_eq!(
            models(server, status, body).await,
            (String::new(), 1),
            "{body}"
        );
    }
    let named = r#"{"baseUrl": "http://s/v1", "models": ["c"], "contextWindow": 9}"#;
    assert_eq!(
        models(named, 200, body).await,
        ("c http://s/v1 9".to_owned(), 0)
    );
    assert_eq!(models("null", 200, body).await, (String::new(), 0));
}

#[test]
fn what_asks_or_blocks_is_off_unless_the_user_wants_it() {
    let on: Vec<&str> = shipped_extensions()
        .iter()
        .filter(|one| one.on)
        .map(|one| one.name)
        .collect();
    assert_eq!(on, ["guide"]);
}
