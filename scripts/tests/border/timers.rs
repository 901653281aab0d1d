//! What a script does later, and when that is over.

use std::time::Duration;

use serde_json::{Value, json};

use crate::kit::{Bench, Fake, load_error, load_with};

/// Waits until the log has so many lines, and answers them.
async fn lines(bench: &Bench, count: usize) -> Vec<String> {
    let limit = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        let lines = bench.fake.asked("log.write");
        if lines.len() >= count {
            let text = |line: &Value| line["message"].as_str().unwrap().to_owned();
            return lines.iter().map(text).collect();
        }
        assert!(tokio::time::Instant::now() < limit, "only {lines:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn started(script: &str) -> Bench {
    let script = format!("on(\"session_start\", |event, ctx| {{ {script} }});");
    let bench = load_with(&script, Fake::default()).await;
    bench.hook("session_start", json!({})).await.unwrap();
    bench
}

#[tokio::test]
async fn a_timer_runs_once_or_again_and_again_until_it_is_stopped() {
    let bench = started(
        r#"
        let n = 0;
        let stop = ();
        stop = every(1, || { n += 1; log(`tick ${n}`); if n == 3 { stop.call(); after(1, || log("after")); } });
        "#,
    )
    .await;
    let said = lines(&bench, 4).await;
    assert_eq!(
        said,
        [
            "t.rhai: tick 1",
            "t.rhai: tick 2",
            "t.rhai: tick 3",
            "t.rhai: after"
        ]
    );
}

/// reports E04
#[tokio::test]
async fn a_timer_of_an_old_generation_does_not_fire() {
    let bench = started(r#"every(1, || log("old")); after(1, || log("first"));"#).await;
    lines(&bench, 2).await;
    let Bench {
        generation,
        fake,
        listener,
    } = bench;
    drop(generation);
    let at_end = fake.asked("log.write").len();
    let other = started(r#"let n = 0; every(1, || { n += 1; log(`${n}`); });"#).await;
    lines(&other, 20).await;
    // One may have been on its way.
    let later = fake.asked("log.write").len();
    assert!(later <= at_end + 1, "{at_end} then {later}");
    drop(listener);
}

#[tokio::test]
async fn a_timer_that_fails_is_told_of_and_ends_after_three_failures_in_a_row() {
    let bench = started(r#"every(1, || throw "no"); let n = 0; every(1, || { n += 1; if n == 40 { log("end"); } });"#).await;
    let limit = tokio::time::Instant::now() + Duration::from_secs(20);
    while !bench
        .fake
        .asked("log.write")
        .iter()
        .any(|line| line["message"] == "t.rhai: end")
    {
        assert!(tokio::time::Instant::now() < limit);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let told = bench.fake.asked("log.write");
    let failed = told.iter().filter(|line| line["level"] == "error");
    let failed: Vec<&str> = failed
        .map(|line| line["message"].as_str().unwrap())
        .collect();
    assert_eq!(failed.len(), 3, "{failed:?}");
    assert!(
        failed[0].starts_with("a timer of t.rhai failed: t.rhai:1:"),
        "{failed:?}"
    );
}

#[tokio::test]
async fn timers_begin_in_handlers_and_there_are_not_too_many() {
    let error = load_error("every(10, || 1);").await;
    assert!(
        error
            .message
            .contains("every starts nothing while the script is loaded"),
        "{error}"
    );
    let script =
        r#"on("session_start", |event, ctx| { for i in 0..200 { every(60000, || 1); } });"#;
    let bench = load_with(script, Fake::default()).await;
    let error = bench.hook("session_start", json!({})).await.unwrap_err();
    assert!(error.message.contains("100 timers run already"), "{error}");
    for wrong in ["0", "-5", "999999999999999"] {
        let script = format!("on(\"session_start\", |event, ctx| {{ after({wrong}, || 1); }});");
        let bench = load_with(&script, Fake::default()).await;
        let error = bench.hook("session_start", json!({})).await.unwrap_err();
        assert!(
            error.message.contains("after takes milliseconds"),
            "{error}"
        );
    }
}

/// reports E04
#[tokio::test]
async fn a_retired_generation_that_a_call_holds_alive_has_no_timers() {
    let bench = started(
        r#"every(1, || log("tick")); after(1, || { log("begun"); sleep(86400); log("ended"); });"#,
    )
    .await;
    bench.fake.until_asked("log.write", 3).await;
    bench.generation.retire();
    let at_end = bench.fake.asked("log.write").len();
    let other = started(r#"every(1, || log("clock"));"#).await;
    other.fake.until_asked("log.write", 20).await;
    // One may have been on its way.
    let later = bench.fake.asked("log.write").len();
    assert!(later <= at_end + 1, "{at_end} then {later}");
    let error = bench.hook("session_start", json!({})).await.unwrap_err();
    assert!(
        error
            .message
            .contains("this version of the script has been replaced"),
        "{error}"
    );
}

#[tokio::test]
async fn a_timer_that_stops_itself_ends_its_run_first_and_has_no_other() {
    let bench = started(
        r#"let stop = (); let n = 0;
        stop = every(1, || { stop.call(); n += 1; sleep(0); log(`run ${n}`); });"#,
    )
    .await;
    bench.fake.until_asked("log.write", 1).await;
    let other = started(r#"every(1, || log("clock"));"#).await;
    other.fake.until_asked("log.write", 20).await;
    assert_eq!(lines(&bench, 1).await, ["t.rhai: run 1"]);
}

#[tokio::test]
async fn a_stopped_timer_does_not_count_until_its_time_would_have_come() {
    let script = r#"on("turn_start", || { let stop = after(600000, || 1); stop.call(); });"#;
    let bench = load_with(script, Fake::default()).await;
    for _ in 0..150 {
        bench.hook("turn_start", json!({})).await.unwrap();
        tokio::task::yield_now().await;
    }
}
