//! A long streamed answer of a service on loopback, read by the library of the wire, until a
//! subscriber has every piece. The server is in another process, so its time does not count.

use std::fs;
use std::process::ExitCode;

use pliant_kernel::pipeline::Prompt;
use pliant_tests::plugin;
use pliant_tests::replay::{Answer, Replay};
use pliant_tests::table::{Table, Unit, middle};
use serde_json::json;

use crate::child::{self, ms};

pub const FLAG: &str = "--deltas";

const RUNS: usize = 5;
const SHORT: usize = 5_000;
const LONG: usize = 20_000;

/// Adds the rows.
pub fn measure(table: &mut Table) {
    eprintln!("building the wire's library");
    let library = plugin("openai_completions").display().to_string();
    let server = Replay::start();
    eprintln!("measuring: {LONG} deltas");
    let per_thousand = |deltas: usize| -> Vec<f64> {
        let run = |_| {
            // The first answer is short: it opens the connection and loads the library.
            server.load([Answer::text(2), Answer::text(deltas)]);
            let figures = child::run(&[FLAG, &server.url(), &library]);
            let pieces = figures["pieces"].as_f64().unwrap_or(f64::NAN);
            figures["cpuMs"].as_f64().unwrap_or(f64::NAN) / pieces * 1e3
        };
        (0..RUNS).map(run).collect()
    };
    let short = middle(&per_thousand(SHORT));
    let long = per_thousand(LONG);
    let growth: Vec<f64> = long.iter().map(|cpu| cpu / short).collect();
    let what = |what: &str| format!("{LONG} deltas: {what}");
    table.row(what("CPU per 1,000"), Unit::Ms, long, 1.5);
    table.row(what("that, to one of 5,000"), Unit::Times, growth, 1.2);
}

/// In the copy: asks twice and writes what the second answer took.
pub fn run(url: &str, library: &str) -> ExitCode {
    let dir = tempfile::tempdir().expect("the temporary directory is writable");
    let agent = dir.path().join("agent");
    let models = json!({"providers": {"local": {
        "baseUrl": url, "api": "openai-completions", "apiKey": "none",
        "models": [{"id": "m", "contextWindow": 200_000_000, "maxTokens": 1_000_000}],
    }}});
    fs::create_dir(&agent)
        .and_then(|()| fs::write(agent.join("models.json"), models.to_string()))
        .expect("the folder is ours");
    let kernel = child::kernel(dir.path(), &[library]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("an event loop starts");
    let (pieces, cpu) = runtime.block_on(async {
        let session = child::session(&kernel, "local", "m").await;
        let ask = async || {
            let end = session.prompt(Prompt::text("Tell me."), |_| ()).await;
            assert!(end.is_ok_and(|end| end.failure.is_none()));
        };
        ask().await;
        let reader = tokio::spawn(child::count_pieces(session.subscribe()));
        let before = child::cpu();
        ask().await;
        session.end_subscriptions();
        let pieces = reader.await.unwrap_or(0);
        (pieces, child::cpu() - before)
    });
    println!("{}", json!({"pieces": pieces, "cpuMs": ms(cpu)}));
    ExitCode::SUCCESS
}
