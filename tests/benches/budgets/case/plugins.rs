//! Which plugins a run loads, and how long each takes, as the kernel's log says.

use std::collections::BTreeMap;
use std::fs;

use crate::lab::Lab;
use crate::measure::measure;
use pliant_tests::replay::Answer;
use pliant_tests::table::{Table, Unit};

const RUNS: usize = 11;
const BUDGET_MS: f64 = 2.0;

/// Loads of one plugin in milliseconds, by its name.
type Loads = BTreeMap<String, Vec<f64>>;

/// `-p` with all tools and with none.
pub fn plugins(lab: &Lab, table: &mut Table) {
    let all = loads(lab, &["-p"]);
    let without_tools = loads(lab, &["-p", "--no-tools"]);
    for (run, loads) in [("-p", &all), ("-p --no-tools", &without_tools)] {
        let names: Vec<&str> = loads.keys().map(String::as_str).collect();
        table.note(format!("{run} loads: {}", names.join(", ")));
    }
    for (plugin, taken) in all {
        let what = format!("load of {plugin}");
        table.row(what, Unit::Ms, taken, BUDGET_MS);
    }
}

fn loads(lab: &Lab, flags: &[&str]) -> Loads {
    let log = lab.scratch("loads.log");
    let mut loads = Loads::new();
    for _ in 0..RUNS {
        lab.model.load([Answer::text(2)]);
        let mut command = lab.prompt(flags);
        command
            .arg("--log-file")
            .arg(&log)
            .env("PLIANT_LOG", "pliant=debug");
        measure(&command);
        let lines = fs::read_to_string(&log).expect("a run writes the log it is told to");
        read_loads(&lines, &mut loads);
    }
    loads
}

/// Lines like `TIME DEBUG pliant::dylib: loaded plugin=NAME took_us=NUMBER`. A plugin whose line
/// has no number was loaded, and is not measured.
fn read_loads(log: &str, loads: &mut Loads) {
    let lines = log.lines();
    let loaded = lines.filter_map(|line| line.split_once(" pliant::dylib: loaded "));
    for (_, fields) in loaded {
        let field = |name: &str| fields.split(' ').find_map(|word| word.strip_prefix(name));
        let Some(plugin) = field("plugin=") else {
            continue;
        };
        let micros = field("took_us=").and_then(|number| number.parse::<f64>().ok());
        let taken = loads.entry(plugin.to_owned()).or_default();
        taken.extend(micros.map(|micros| micros / 1e3));
    }
}
