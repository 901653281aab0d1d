//! `after` and `every`. Other timers are the clock here: what could have run while they ran did not.

use serde_json::{Value, json};

use crate::kit::{Bench, Fake, load, load_error, load_with};

const RUNS: usize = 20;

/// What timers said, without the script's name.
fn said(asked: &[Value]) -> Vec<&str> {
    let texts = asked.iter().filter_map(|line| line["message"].as_str());
    texts
        .map(|text| text.strip_prefix("t.rhai: ").unwrap_or(text))
        .collect()
}

/// Lets another script's timer run often enough for any other that is alive.
async fn let_time_pass() {
    let clock = load("every(1, || log(\"tick\"));").await;
    clock.fake.until_asked("log.write", RUNS).await;
}

async fn ask(bench: &Bench, event: &str) -> Value {
    bench.hook(event, json!({})).await.unwrap()
}

#[tokio::test]
async fn a_timer_runs_after_its_time_once_or_again_and_again() {
    let bench = load(
        r#"let n = 0;
        after(1, || log("once"));
        every(1, || { n += 1; if n <= 3 { log(`again ${n}`); } if n == 10 { log("ten"); } });"#,
    )
    .await;
    let asked = bench.fake.until_asked("log.write", 5).await;
    let mut said = said(&asked);
    said.sort_unstable();
    assert_eq!(said, ["again 1", "again 2", "again 3", "once", "ten"]);
}

#[tokio::test]
async fn a_handler_sets_timers_and_a_timer_sets_timers() {
    let bench = load(r#"on("turn_start", || after(0, || after(0, || log("inner"))));"#).await;
    ask(&bench, "turn_start").await;
    let asked = bench.fake.until_asked("log.write", 1).await;
    assert_eq!(said(&asked), ["inner"]);
}

#[tokio::test]
async fn the_function_that_every_answers_stops_it() {
    let bench = load(
        r#"let n = 0; let stop = every(1, || { n += 1; log("run"); });
        on("input", || { stop.call(); stop.call(); });
        on("turn_end", || #{ entries: [n] });"#,
    )
    .await;
    bench.fake.until_asked("log.write", 2).await;
    ask(&bench, "input").await;
    // A run that was under way may still end.
    let at_stop = bench.fake.asked("log.write").len();
    let_time_pass().await;
    assert!(bench.fake.asked("log.write").len() <= at_stop + 1);
}

#[tokio::test]
async fn a_timer_that_stops_itself_ends_its_run_first() {
    let bench = load(
        r#"let stop = ();
        stop = every(1, || { stop.call(); log("stopped"); sleep(1); log("still here"); });"#,
    )
    .await;
    bench.fake.until_asked("log.write", 2).await;
    let_time_pass().await;
    assert_eq!(
        said(&bench.fake.asked("log.write")),
        ["stopped", "still here"]
    );
}

#[tokio::test]
async fn a_timer_of_an_old_generation_does_not_fire() {
    // reports.md E04
    let bench =
        load(r#"every(1, || log("run")); on("input", || { every(1, || log("new")); });"#).await;
    bench.fake.until_asked("log.write", 2).await;
    bench.generation.retire();
    let at_end = bench.fake.asked("log.write").len();
    let_time_pass().await;
    assert!(bench.fake.asked("log.write").len() <= at_end + 1);
    // A handler that is still under way then is told that it is too late.
    let error = bench.hook("input", json!({})).await.unwrap_err();
    assert!(
        error
            .message
            .contains("this version of the script has been replaced"),
        "{error}"
    );
}

#[tokio::test]
async fn a_run_under_way_is_ended_when_its_generation_is_retired() {
    let fake = Fake::default().on("files.read", |_| Ok(json!(null)));
    let bench = load_with(
        r#"after(0, || { log("begun"); sleep(86400000); log("ended"); });"#,
        fake,
    )
    .await;
    bench.fake.until_asked("log.write", 1).await;
    bench.generation.retire();
    let Bench {
        generation, fake, ..
    } = bench;
    drop(generation);
    // The thread that slept lets go of the services it was lent.
    while std::sync::Arc::strong_count(&fake) > 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(said(&fake.asked("log.write")), ["begun"]);
}

#[tokio::test]
async fn a_script_that_fails_while_it_is_loaded_leaves_no_timer() {
    let fake = Fake::default();
    let text = r#"every(1, || log("run")); throw "no";"#;
    let loaded = crate::kit::try_load(text, fake, pliant_scripts::Limits::default()).await;
    assert_eq!(loaded.err().unwrap().message, "t.rhai:1:26: no");
}

#[tokio::test]
async fn a_timer_that_fails_is_reported_once_and_goes_on() {
    let bench = load(
        r#"let n = 0; every(1, || { n += 1; if n == 20 { log("twenty"); } throw "broken"; });"#,
    )
    .await;
    let asked = bench.fake.until_asked("log.write", 2).await;
    assert_eq!(
        said(&asked),
        ["a timer failed: t.rhai:1:64: broken", "twenty"]
    );
    assert_eq!(asked[0]["level"], "error");
}

#[tokio::test]
async fn one_timer_has_one_run_at_a_time() {
    let bench = load(
        r#"let inside = 0; let most = 0; let n = 0;
        every(1, || {
            inside += 1; if inside > most { most = inside; }
            sleep(5); inside -= 1; n += 1;
            if n == 5 { log(`${most}`); }
        });"#,
    )
    .await;
    let asked = bench.fake.until_asked("log.write", 1).await;
    assert_eq!(said(&asked), ["1"]);
}

#[tokio::test]
async fn timers_are_counted_and_their_times_checked() {
    for (text, expected) in [
        (
            "for i in 0..101 { after(1000000, || 1); }",
            "t.rhai:1:19: a script may have 100 timers at a time; stop one first, with the function that `after` or `every` answered",
        ),
        (
            "every(0, || 1);",
            "t.rhai:1:1: every takes 1 or more milliseconds, not 0",
        ),
        (
            "after(-1, || 1);",
            "t.rhai:1:1: after takes 0 or more milliseconds, not -1",
        ),
        (
            "after(1, |ctx| 1);",
            "t.rhai:1:1: the function takes 1 parameters, but it is called with 0 (||)",
        ),
    ] {
        assert_eq!(load_error(text).await.message, expected, "{text}");
    }
    let stopped = "for i in 0..1000 { let stop = after(1000000, || 1); stop.call(); }";
    drop(load(stopped).await);
}

#[tokio::test]
async fn sleep_takes_whole_milliseconds() {
    let message = load_error("sleep(0.5);").await.message;
    assert_eq!(
        message,
        "t.rhai:1:1: sleep takes whole milliseconds, not 0.5; half a second is sleep(500)"
    );
}
