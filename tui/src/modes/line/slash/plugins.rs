//! How plugins and scripts are doing.

use std::fmt::Write;

use pliant_kernel::Runtime;
use pliant_kernel::reload::{Standing, is_much};

use super::{Outcome, Said, Slash};

pub(super) const PLUGINS: Slash = Slash {
    name: "plugins",
    takes: "",
    about: "Show how plugins and scripts are doing.",
    run: |runtime, _| Box::pin(plugins(runtime)),
};

async fn plugins(runtime: &Runtime) -> Outcome {
    let all = runtime.kernel().reloader().standing();
    let mut text: String = all.iter().map(lines).collect();
    let memory: u64 = all.iter().filter_map(|one| one.memory).sum();
    if is_much(memory) {
        text.push_str("That is much memory; old versions go when pliant is started again.\n");
    }
    Ok(Said::Text(text))
}

/// A line, and one more for what is wrong with it.
fn lines(one: &Standing) -> String {
    let Standing {
        name,
        generation,
        content,
        contributes,
        retired,
        memory,
        vitals,
        ..
    } = one;
    let mut text = name.clone();
    // A string takes everything.
    let mut add = |piece: std::fmt::Arguments<'_>| {
        let _ = text.write_fmt(piece);
    };
    if let Some(generation) = generation {
        add(format_args!(", generation {generation}"));
    }
    if let Some(content) = content {
        add(format_args!(" ({content})"));
    }
    add(format_args!(": {} contributions", contributes.len()));
    for (count, what) in [
        (vitals.calls, "calls"),
        (vitals.running, "running"),
        (vitals.failures, "failed"),
        (vitals.panics, "panics"),
        (vitals.crashes, "crashes"),
        (u64::from(*retired), "old versions in memory"),
    ] {
        if count > 0 {
            add(format_args!(", {count} {what}"));
        }
    }
    if let Some(memory) = memory {
        add(format_args!(
            ", {:.1} MiB",
            *memory as f64 / f64::from(1 << 20)
        ));
    }
    if let Some(pid) = vitals.pid {
        add(format_args!(", process {pid}"));
    }
    add(format_args!("\n"));
    if let Some(fault) = &vitals.fault {
        add(format_args!("    {fault}\n"));
    }
    text
}
