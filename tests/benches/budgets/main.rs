//! The budgets of the README: what a whole process of the release binary costs, in one table.
//!
//! `cargo bench -p pliant-tests` builds and measures the binary and its plugins against a replayed
//! model on loopback; with `-- --build` also what a plugin author waits for, with `-- NAME` one case
//! alone. It says `ok` or `over`
//! and never fails on a time: the machine may be busy with something else, so the load is printed
//! before and after.

mod case;
mod lab;
mod measure;

use std::process::ExitCode;

use lab::Lab;
use pliant_tests::table::Table;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(command) = measure::command_of(&args) {
        return measure::run(command);
    }
    let wants = |flag: &str| args.iter().any(|arg| arg == flag);
    if !wants("--bench") {
        println!("Budgets are measured by `cargo bench -p pliant-tests`.");
        return ExitCode::SUCCESS;
    }
    println!("{}", lab::machine("before"));
    let lab = Lab::build();
    let mut table = Table::default();
    let only = args.iter().find(|arg| !arg.starts_with('-'));
    let wanted = |name: &str| only.is_none_or(|only| name.contains(only.as_str()));
    for (name, measure) in case::ALL {
        if !wanted(name) {
            continue;
        }
        eprintln!("measuring: {name}");
        measure(&lab, &mut table);
    }
    if wants("--build") {
        eprintln!("measuring: build");
        case::build(&lab, &mut table);
    }
    println!("\n{table}");
    println!("{}", lab::machine("after"));
    ExitCode::SUCCESS
}
