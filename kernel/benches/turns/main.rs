//! The kernel's own time: of a turn in a long loop of tool calls, without handlers and with many, and
//! of a streamed delta on its way from the socket to a subscriber.
//!
//! `cargo bench -p pliant-kernel --bench turns` runs each case in a process of its own, which is this
//! program run again. It says `ok` or `over` and never fails on a time: the machine may be busy with
//! something else, so the load is printed before and after.

mod child;
mod deltas;
mod handlers;
mod looping;

use std::process::ExitCode;

use pliant_tests::table::Table;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        [looping::FLAG, turns, handlers] => return looping::run(turns, handlers),
        [deltas::FLAG, url, library] => return deltas::run(url, library),
        _ => {}
    }
    if !words.contains(&"--bench") {
        println!("Turns are measured by `cargo bench -p pliant-kernel --bench turns`.");
        return ExitCode::SUCCESS;
    }
    println!("before: load average {}", child::load());
    let mut table = Table::default();
    looping::measure(&mut table);
    deltas::measure(&mut table);
    println!("\n{table}");
    println!("after: load average {}", child::load());
    ExitCode::SUCCESS
}
