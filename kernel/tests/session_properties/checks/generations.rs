//! No dispatch has handlers of two generations.

use super::{Broken, require};
use crate::extension::Called;
use crate::record::Record;
use crate::script::Script;

/// Invariant 38: behind the first handler of a generation comes the last one of the same, unless one
/// between them ended the dispatch.
pub fn check(_: &Script, record: &Record) -> Broken {
    let mut open: Vec<&Called> = Vec::new();
    for called in &record.called {
        if !called.last {
            open.push(called);
            continue;
        }
        let same = |first: &&Called| {
            (first.point, &first.about, first.generation)
                == (called.point, &called.about, called.generation)
        };
        let first = open.iter().rposition(same);
        require(
            first.is_some(),
            format!("{called:?} is called in a dispatch of another generation"),
        )?;
        first.map(|first| open.remove(first));
    }
    Ok(())
}
