//! `sleep(ms)`, in place of Rhai's, which ignores that nobody waits any more. Milliseconds, as
//! everywhere else here.

use std::time::Duration;

use pliant_sdk::Error;
use rhai::{Engine, FLOAT, INT};

use crate::call::{Call, ScriptResult, fail};

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("sleep", |ms: INT| {
        sleep(u64::try_from(ms).unwrap_or_default())
    });
    // Rhai's own takes seconds, with a fraction where needed.
    engine.register_fn("sleep", |ms: FLOAT| -> ScriptResult<()> {
        Err(fail(format!(
            "sleep takes whole milliseconds, not {ms}; half a second is sleep(500)"
        )))
    });
}

fn sleep(ms: u64) -> ScriptResult<()> {
    Call::current()?.wait(async {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        Ok::<(), Error>(())
    })
}
