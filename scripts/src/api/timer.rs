//! `after(ms, || …)` and `every(ms, || …)`: what is done later. Each answers a function that stops it.
//! Timers end with the version of the script that started them.

use std::sync::Arc;
use std::time::Duration;

use rhai::{Engine, FnPtr, INT};
use tokio::sync::Notify;

use super::register::function;
use crate::call::{Call, ScriptResult, fail, throw};
use crate::timers::Timer;

/// A timer that never ends is no timer.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("after", |ms: INT, callback: FnPtr| {
        start("after", ms, callback, false)
    });
    engine.register_fn("every", |ms: INT, callback: FnPtr| {
        start("every", ms, callback, true)
    });
}

fn start(name: &str, ms: INT, callback: FnPtr, repeats: bool) -> ScriptResult<FnPtr> {
    let call = Call::current()?;
    call.ensure_open()?;
    if call.registrations().is_some() {
        return Err(fail(format!(
            "{name} starts nothing while the script is loaded, which may happen without a session. Start timers in a handler, for example in on(\"session_start\", …)"
        )));
    }
    let period = u64::try_from(ms).ok().map(Duration::from_millis);
    let fits = |period: &Duration| !period.is_zero() && *period <= LONGEST;
    let Some(period) = period.filter(fits) else {
        return Err(fail(format!(
            "{name} takes milliseconds, from 1 to those of a week"
        )));
    };
    let stopped = Arc::new(Notify::new());
    let timer = Timer {
        callback: call.program().callback(callback, &[])?,
        period,
        repeats,
        stopped: Arc::clone(&stopped),
    };
    let started = timer.start(call.program(), call.host().clone(), call.runtime()?);
    started.map_err(|error| throw(&error))?;
    function("stop", move || {
        stopped.notify_one();
        Ok(rhai::Dynamic::UNIT)
    })
}
