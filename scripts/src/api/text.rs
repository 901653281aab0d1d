//! What Rhai's strings lack: `trimmed(s)` and `replaced(s, a, b)`, which answer instead of changing,
//! `lines(s)`, and `join(list, separator)`. Each also works as a method.

use rhai::{Array, Engine};

use crate::call::{ScriptResult, fail};
use crate::convert;
use crate::engine::{MAX_ELEMENTS, MAX_STRING};

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("trimmed", |text: &str| text.trim().to_owned());
    engine.register_fn("replaced", replaced);
    engine.register_fn("lines", lines);
    engine.register_fn("join", |list: Array, separator: &str| {
        let texts: Vec<String> = list.iter().map(convert::display).collect();
        texts.join(separator)
    });
}

fn lines(text: &str) -> ScriptResult<Array> {
    if text.lines().count() > MAX_ELEMENTS {
        return Err(fail(
            "lines: the text has more lines than a list may have elements",
        ));
    }
    Ok(text.lines().map(|line| line.to_owned().into()).collect())
}

/// Looks at the size before it allocates: many short matches replaced by a long text grow fast.
fn replaced(text: &str, find: &str, with: &str) -> ScriptResult<String> {
    if find.is_empty() {
        return Ok(text.to_owned());
    }
    let growth = with.len().saturating_sub(find.len());
    let size = growth.saturating_mul(text.matches(find).count()) + text.len();
    match size > MAX_STRING {
        true => Err(fail("replaced: the result is longer than a string may be")),
        false => Ok(text.replace(find, with)),
    }
}
