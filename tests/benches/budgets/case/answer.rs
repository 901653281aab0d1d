//! One prompt and one short answer: everything that has to happen before a user reads a word.

use super::{ms, peak, wall_ms};
use crate::lab::Lab;
use pliant_tests::replay::Answer;
use pliant_tests::table::{Table, Unit};

const RUNS: usize = 21;

/// `pliant -p`.
pub fn answer(lab: &Lab, table: &mut Table) {
    let runs = lab.prompts(RUNS, &["-p"], || vec![Answer::text(2)]);
    let first_byte = runs.iter().filter_map(|run| run.first_byte.map(ms));
    table.row("-p, to the first byte", Unit::Ms, first_byte, 30.0);
    table.row(
        "-p, whole process",
        Unit::Ms,
        runs.iter().map(wall_ms),
        20.0,
    );
    table.row("-p, memory", Unit::Mib, runs.iter().map(peak), 22.0);
}
