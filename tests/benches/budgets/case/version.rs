//! The least that a process can cost.

use super::{peak, wall_ms};
use crate::lab::Lab;
use crate::measure::{Run, measure};
use pliant_tests::table::{Table, Unit};

const RUNS: usize = 21;

/// `pliant --version`.
pub fn version(lab: &Lab, table: &mut Table) {
    let command = lab.command(&["--version"]);
    let runs: Vec<Run> = (0..RUNS).map(|_| measure(&command)).collect();
    table.row("--version", Unit::Ms, runs.iter().map(wall_ms), 3.0);
    table.row("--version, memory", Unit::Mib, runs.iter().map(peak), 6.0);
}
