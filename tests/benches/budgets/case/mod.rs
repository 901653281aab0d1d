//! The cases, one file each: run something several times, add rows to the table.

use std::time::Duration;

use crate::lab::Lab;
use crate::measure::Run;
use pliant_tests::table::Table;

mod answer;
mod build;
mod plugins;
mod reload;
mod scripts;
mod stream;
mod turns;
mod version;

pub use build::build;

/// Measures something and adds its rows.
type Case = fn(&Lab, &mut Table);

/// Every case that is always measured, by name.
pub const ALL: [(&str, Case); 7] = [
    ("version", version::version),
    ("answer", answer::answer),
    ("plugins", plugins::plugins),
    ("turns", turns::turns),
    ("stream", stream::stream),
    ("reload", reload::reload),
    ("scripts", scripts::scripts),
];

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn wall_ms(run: &Run) -> f64 {
    ms(run.wall)
}

/// In MiB.
fn peak(run: &Run) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "far below 2^52 KiB")]
    let kib = run.peak_kib as f64;
    kib / 1024.0
}
