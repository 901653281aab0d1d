//! What fifty extensions that listen to every tool call and every prompt cost beside none.

use std::fs;

use super::{ms, peak, wall_ms};
use crate::lab::Lab;
use pliant_tests::replay::Answer;
use pliant_tests::table::{Table, Unit, middle};

const SCRIPTS: usize = 50;
const RUNS: usize = 11;
const TURNS: usize = 100;

/// A handler as people write it: it looks at what it is about, and lets it pass.
const SCRIPT: &str = r#"
let seen = 0;
on("tool_call", |event, ctx| {
    if event.toolName == "bash" && event.input.command.contains("rm -rf") {
        return #{ block: true, reason: "No." };
    }
    seen += 1;
});
on("input", |event, ctx| {
    if event.text == "never said" { return #{ action: "handled" }; }
});
"#;

/// A short prompt and a loop of tool calls, with them and without.
pub fn scripts(lab: &Lab, table: &mut Table) {
    let without = Figures::of(lab);
    let folder = lab.agent_dir().join("extensions");
    fs::create_dir_all(&folder).expect("the home can be written");
    for number in 0..SCRIPTS {
        let file = folder.join(format!("listens{number:02}.rhai"));
        fs::write(file, SCRIPT).expect("the home can be written");
    }
    let with = Figures::of(lab);
    fs::remove_dir_all(&folder).expect("the home can be written");
    let what = |of: &str| format!("{SCRIPTS} scripts, {of}");
    let more = |pick: fn(&Figures) -> f64| [pick(&with) - pick(&without)];
    table.row(what("start-up"), Unit::Ms, more(|it| it.wall_ms), 15.0);
    table.row(what("memory"), Unit::Mib, more(|it| it.peak_mib), 20.0);
    table.row(what("each tool call"), Unit::Ms, more(|it| it.turn_ms), 0.2);
}

/// Medians of several runs.
struct Figures {
    wall_ms: f64,
    peak_mib: f64,
    turn_ms: f64,
}

impl Figures {
    fn of(lab: &Lab) -> Self {
        let runs = lab.prompts(RUNS, &["-p"], || vec![Answer::text(2)]);
        let median =
            |of: fn(&crate::measure::Run) -> f64| middle(&runs.iter().map(of).collect::<Vec<_>>());
        lab.prompts(1, &["-p"], || {
            let calls = (0..TURNS).map(|number| Answer::read(number, "small.txt"));
            calls.chain([Answer::text(2)]).collect()
        });
        let turns: Vec<f64> = lab.model.turns().into_iter().map(ms).collect();
        assert_eq!(turns.len(), TURNS, "the loop ended early");
        Self {
            wall_ms: median(wall_ms),
            peak_mib: median(peak),
            turn_ms: middle(&turns),
        }
    }
}
