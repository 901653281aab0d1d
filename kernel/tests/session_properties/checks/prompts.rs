//! What a prompt was told and what became of it.

use pliant_kernel::session::Disposition;

use super::{Broken, require, user_begins};
use crate::record::Record;
use crate::script::Script;

/// Invariants 27, 28 and 29.
pub fn check(_: &Script, record: &Record) -> Broken {
    for prompt in &record.prompts {
        let told = prompt.told();
        require(told.len() == 1, format!("the observer was told {told:?}"))?;
        let rejected = told == [Disposition::Rejected];
        require(
            rejected == prompt.refused.is_some() || prompt.deferred,
            format!("{prompt:?} is refused and accepted"),
        )?;
        let begun: Vec<String> = record
            .events
            .iter()
            .filter_map(|e| user_begins(e))
            .collect();
        let times = begun.iter().filter(|text| **text == prompt.text).count();
        let expected = match told.first() {
            Some(Disposition::Started) => 1..=1,
            Some(Disposition::Queued) => 0..=1,
            Some(Disposition::Handled | Disposition::Rejected) | None => 0..=0,
        };
        require(
            expected.contains(&times) || prompt.failed.is_some(),
            format!("{prompt:?} begins {times} times"),
        )?;
    }
    for abort in record.aborts.iter().filter(|abort| abort.idle) {
        require(
            abort.requests_alive == 0 && abort.tools_alive == 0,
            format!("something is alive after an abort: {abort:?}"),
        )?;
    }
    Ok(())
}
