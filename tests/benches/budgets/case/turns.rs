//! A loop of `read` calls: the program's own time between an answer and the next request, which must
//! not grow with what was said before.

use super::{ms, peak};
use crate::lab::Lab;
use pliant_tests::replay::Answer;
use pliant_tests::table::{Table, Unit, middle};

/// Turns, runs, and what the median turn may take.
const LOOPS: [(usize, usize, f64); 3] = [(100, 5, 0.5), (300, 3, 1.0), (1000, 1, 1.0)];

/// `pliant -p` with a model that calls `read` again and again.
pub fn turns(lab: &Lab, table: &mut Table) {
    for (turns, runs, budget) in LOOPS {
        let (mut all, mut last, mut growth) = (Vec::new(), Vec::new(), Vec::new());
        let mut memory = Vec::new();
        for _ in 0..runs {
            let script = || {
                let calls = (0..turns).map(|number| Answer::read(number, "small.txt"));
                calls.chain([Answer::text(2)]).collect()
            };
            memory.extend(lab.prompts(1, &["-p"], script).iter().map(peak));
            let taken: Vec<f64> = lab.model.turns().into_iter().map(ms).collect();
            assert_eq!(taken.len(), turns, "the loop ended early");
            let tenth = turns / 10;
            let (first, end) = (middle(&taken[..tenth]), middle(&taken[turns - tenth..]));
            last.push(end);
            growth.push(end / first);
            all.push(middle(&taken));
        }
        let what = |of: &str| format!("{turns} turns of read, {of}");
        table.row(what("each"), Unit::Ms, all, budget);
        table.row(what("each of the last tenth"), Unit::Ms, last, budget);
        table.row(what("last tenth to first"), Unit::Times, growth, 2.0);
        let memory = middle(&memory);
        table.note(format!("{} {memory:.1} MiB", what("memory:")));
    }
}
