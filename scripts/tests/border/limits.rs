//! No script may hang, exhaust or end the process.

use std::time::{Duration, Instant};

use pliant_kernel::registry::Kind;
use pliant_scripts::Limits;
use serde_json::json;

use crate::kit::{Fake, load, load_error, load_with, try_load};

fn tool(body: &str) -> String {
    format!(
        "register_tool(#{{ name: \"t\", description: \"d\", execute: |args, ctx| {{ {body} }} }});"
    )
}

fn handler(body: &str) -> String {
    format!("on(\"input\", |event, ctx| {{ {body} }});")
}

const SHORT: Limits = Limits {
    load: Duration::from_millis(50),
    handler: Duration::from_millis(50),
};

#[tokio::test]
async fn a_handler_that_does_not_end_is_ended_at_its_limit() {
    let bench = try_load(
        &handler("\n let n = 0;\n loop { try { loop { n += 1; } } catch {} }"),
        Fake::default(),
        SHORT,
    )
    .await
    .unwrap_or_else(|error| panic!("{error}"));
    let started = Instant::now();
    let error = bench.hook("input", json!({})).await.unwrap_err();
    assert_eq!(error.code, "timeout");
    assert!(error.message.starts_with("t.rhai:"), "{error}");
    assert!(
        error
            .message
            .ends_with("the script did not end within 50 ms and was stopped"),
        "{error}"
    );
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn the_limit_holds_while_waiting_and_while_loading() {
    let bench = try_load(&handler("sleep(60); #{}"), Fake::default(), SHORT)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        bench.hook("input", json!({})).await.unwrap_err().code,
        "timeout"
    );
    let error = try_load("loop {}", Fake::default(), SHORT)
        .await
        .err()
        .unwrap();
    assert_eq!(error.code, "timeout");
}

#[tokio::test]
async fn the_time_of_a_dialog_does_not_count() {
    let fake = Fake::default()
        .on("ui.ask", |_| Ok(json!(true)))
        .slow(Duration::from_millis(120));
    let bench = try_load(
        &handler("#{ sure: ctx.ui.confirm(\"a\", \"b\") }"),
        fake,
        SHORT,
    )
    .await
    .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        bench.hook("input", json!({})).await.unwrap(),
        json!({"sure": true})
    );
}

/// Drops the future of a running call and waits until the script has noticed.
async fn drop_ends(body: &str) -> Duration {
    let fake = Fake::default()
        .on("ui.ask", |_| Ok(json!(true)))
        .slow(Duration::from_secs(60));
    let script = format!(
        "let alive = 0; {} on(\"turn_start\", || #{{ alive: alive }});",
        tool(body)
    );
    let bench = load_with(&script, fake).await;
    let id = bench.contribution(Kind::Tool, "t").id;
    let running = bench.start(id, "execute", &json!({"toolCallId": "c", "input": {}}));
    assert!(
        tokio::time::timeout(Duration::from_millis(50), running)
            .await
            .is_err()
    );
    // The generation is held by the script's thread until it ends.
    let watched = std::sync::Arc::downgrade(&bench.generation);
    let listener = std::sync::Arc::downgrade(&bench.listener);
    let dropped = Instant::now();
    drop(bench);
    while listener.strong_count() > 0 || watched.strong_count() > 0 {
        assert!(
            dropped.elapsed() < Duration::from_secs(5),
            "still running: {body}"
        );
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
    dropped.elapsed()
}

#[tokio::test]
async fn dropping_the_call_ends_the_script_wherever_it_is() {
    for body in [
        "loop { alive += 1; }",
        "loop { try { loop { alive += 1; } } catch (e) { } }",
        "let all = [1]; loop { try { all.map(|x| { loop { alive += 1; } }); } catch { } }",
        "sleep(60);",
        "sleep(60.5);",
        "ctx.ui.confirm(\"a\", \"b\");",
        "http(#{ url: \"http://x\" });",
        "exec(\"sleep\", [60]);",
        "read_file(\"x\");",
    ] {
        let took = drop_ends(body).await;
        println!("{took:?} {body}");
        assert!(took < Duration::from_secs(2), "{took:?}: {body}");
    }
}

#[tokio::test]
async fn a_caller_that_wants_no_more_events_ends_the_script() {
    let bench = load(&tool("loop { ctx.update(\"x\"); }")).await;
    bench.hang_up();
    assert_eq!(
        bench.tool_text("t", json!({})).await,
        "cancelled: Operation aborted"
    );
}

#[tokio::test]
async fn deep_recursion_is_an_error() {
    let script = format!(
        "fn f(n) {{ if n == 0 {{ 0 }} else {{ 1 + f(n - 1) }} }} {}",
        tool("f(args.n)")
    );
    let bench = load(&script).await;
    assert_eq!(bench.tool_text("t", json!({"n": 60})).await, "60");
    let text = bench.tool_text("t", json!({"n": 1_000})).await;
    assert!(text.contains("Stack overflow"), "{text}");
    assert!(text.contains("hint: calls may be nested 64 deep"), "{text}");
}

#[tokio::test]
async fn the_deepest_expressions_in_the_deepest_calls_do_not_overflow_the_stack() {
    let nested = (0..20).fold("f(n - 1)".to_owned(), |inner, _| format!("(0 + {inner})"));
    let script = format!(
        "fn f(n) {{ if n == 0 {{ 0 }} else {{ {nested} }} }} {}",
        tool("f(60)")
    );
    let bench = load(&script).await;
    let text = bench.tool_text("t", json!({})).await;
    assert!(text == "0" || text.contains("nested too deeply"), "{text}");
    let deeper = format!("{}{}", "[".repeat(2_000), "]".repeat(2_000));
    let error = load_error(&format!("let x = {deeper};")).await;
    assert!(
        error
            .message
            .contains("Expression exceeds maximum complexity"),
        "{error}"
    );
}

#[tokio::test]
async fn sizes_are_capped() {
    // C03
    for (body, what) in [
        (
            "let s = \"0123456789\"; loop { s += s; }",
            "Length of string",
        ),
        ("let a = [1, 2, 3]; loop { a += a; }", "Size of array"),
        ("let a = []; a.pad(2000000, 0); a", "Size of array"),
        ("let b = blob(2000000); b", "Size of array"),
        (
            "let s = \"\"; s.pad(20000000, \"x\"); s",
            "Length of string",
        ),
        (
            "let s = \"x\"; let a = [s]; loop { a += a; }",
            "Size of array",
        ),
    ] {
        let bench = load(&tool(body)).await;
        let started = Instant::now();
        let text = bench.tool_text("t", json!({})).await;
        assert!(text.contains(what), "{body}: {text}");
        assert!(started.elapsed() < Duration::from_secs(10), "{body}");
    }
}

#[tokio::test]
async fn calls_of_one_script_run_side_by_side() {
    let bench = load(&format!(
        "let count = 0; {}",
        tool("sleep(0.2); count += 1; count")
    ))
    .await;
    let started = Instant::now();
    let calls = (0..8).map(|_| bench.tool_text("t", json!({})));
    let mut counts = futures_util::future::join_all(calls).await;
    assert!(
        started.elapsed() < Duration::from_millis(1_000),
        "{:?}",
        started.elapsed()
    );
    counts.sort();
    assert_eq!(counts.len(), 8);
    // Captured variables are shared: none of the eight additions is lost.
    assert_eq!(bench.tool_text("t", json!({})).await, "9");
}

#[tokio::test]
async fn constants_are_read_side_by_side() {
    // Rhai 1.27 locks the constants for every look, and panics when it does not get the lock.
    let script = format!(
        "const N = 1; fn sum() {{ let s = 0; for i in 0..20000 {{ s += global::N; }} s }} {}",
        tool("sum()")
    );
    let bench = load(&script).await;
    let calls = (0..8).map(|_| bench.tool_text("t", json!({})));
    assert_eq!(futures_util::future::join_all(calls).await, ["20000"; 8]);
}

#[tokio::test]
async fn a_variable_used_in_its_own_method_call_is_an_error_and_no_deadlock() {
    let bench = load(&format!(
        "let list = [1, 2]; {}",
        tool("list.filter(|x| list.len() > 1)")
    ))
    .await;
    let text = bench.tool_text("t", json!({})).await;
    assert!(text.contains("Data race"), "{text}");
}

#[tokio::test]
async fn a_panic_inside_rhai_is_an_error_with_the_scripts_name() {
    // Rhai's size walk panics on a shared cell inside a collection (codemode §12.5).
    let bench = load(&format!(
        "let n = 1; {}",
        tool("let f = || n; let a = [0]; a.push(f); a.map(|x| 1)")
    ))
    .await;
    let text = bench.tool_text("t", json!({})).await;
    assert!(
        text == "[1,1]" || text.starts_with("panic: t.rhai: "),
        "{text}"
    );
}

#[tokio::test]
async fn a_context_kept_beyond_its_call_refuses_to_work() {
    let bench = load(&format!(
        "let kept = (); {} on(\"input\", || {{ kept.update(\"x\"); }});",
        tool("kept = ctx; 1")
    ))
    .await;
    assert_eq!(bench.tool_text("t", json!({})).await, "1");
    let error = bench.hook("input", json!({})).await.unwrap_err();
    assert!(
        error.message.contains("belongs to a call that has ended"),
        "{error}"
    );
}
