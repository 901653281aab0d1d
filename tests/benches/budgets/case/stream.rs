//! A long streamed answer: processor time per delta, which must not grow with the answer's length.

use super::{ms, peak};
use crate::lab::Lab;
use crate::measure::Run;
use pliant_tests::replay::Answer;
use pliant_tests::table::{Table, Unit, middle};

const RUNS: usize = 5;

/// What the front end writes, its flags, and the budget for 1,000 deltas.
const MODES: [(&str, &[&str], f64); 2] =
    [("print", &["-p"], 2.5), ("JSON", &["--mode", "json"], 4.0)];

/// 20,000 deltas in each mode, beside 5,000.
pub fn stream(lab: &Lab, table: &mut Table) {
    for (mode, flags, budget) in MODES {
        let of = |deltas| lab.prompts(RUNS, flags, || vec![Answer::text(deltas)]);
        let nothing = middle(&of(2).iter().map(cpu_ms).collect::<Vec<_>>());
        let per_thousand = |runs: &[Run], thousands: f64| -> Vec<f64> {
            let of_deltas = |run: &Run| (cpu_ms(run) - nothing) / thousands;
            runs.iter().map(of_deltas).collect()
        };
        let (short, long) = (of(5_000), of(20_000));
        let few = middle(&per_thousand(&short, 5.0));
        let many = per_thousand(&long, 20.0);
        let growth: Vec<f64> = many.iter().map(|cpu| cpu / few).collect();
        let memory = long.iter().map(peak);
        let what = |of: &str| format!("20,000 deltas, {mode}: {of}");
        table.row(what("CPU per 1,000"), Unit::Ms, many, budget);
        table.row(what("that, to one of 5,000"), Unit::Times, growth, 1.2);
        table.row(what("memory"), Unit::Mib, memory, 30.0);
    }
}

fn cpu_ms(run: &Run) -> f64 {
    ms(run.cpu)
}
