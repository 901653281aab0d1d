//! `sleep(seconds)`, in place of Rhai's, which ignores that nobody waits any more, and `now_ms()`, the
//! time since 1970 in milliseconds, as messages have it.

use std::time::{SystemTime, UNIX_EPOCH};

use pliant_sdk::Error;
use rhai::{Engine, FLOAT, INT};

use crate::call::{Call, ScriptResult, fail};

const MS_PER_SECOND: f64 = 1_000.0;

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("now_ms", || -> INT {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let ms = since.unwrap_or_default().as_millis();
        INT::try_from(ms).unwrap_or(INT::MAX)
    });
    engine.register_fn("sleep", |seconds: INT| {
        sleep(u64::try_from(seconds).unwrap_or(0).saturating_mul(1_000))
    });
    engine.register_fn("sleep", |seconds: FLOAT| {
        if !(0.0..=1e9).contains(&seconds) {
            return Err(fail(
                "sleep takes a number of seconds from 0 to a thousand million",
            ));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked just above"
        )]
        sleep((seconds * MS_PER_SECOND) as u64)
    });
}

fn sleep(ms: u64) -> ScriptResult<()> {
    let duration = std::time::Duration::from_millis(ms);
    Call::current()?.wait(async {
        tokio::time::sleep(duration).await;
        Ok::<(), Error>(())
    })
}
