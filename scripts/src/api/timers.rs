//! `after(ms, || …)` runs a closure once, `every(ms, || …)` again and again; both answer a function
//! that stops the timer. A script's timers end with it when it is reloaded.

use std::time::Duration;

use rhai::{Dynamic, Engine, FnPtr, INT};

use crate::call::{Call, ScriptResult, fail};
use crate::timers::{Plan, Stopper};

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("after", |ms: INT, run: FnPtr| set("after", ms, run, false));
    engine.register_fn("every", |ms: INT, run: FnPtr| set("every", ms, run, true));
}

fn set(function: &str, ms: INT, run: FnPtr, again: bool) -> ScriptResult<FnPtr> {
    // A timer that always has its time would never let go of a core.
    let least = INT::from(again);
    let Some(ms) = u64::try_from(ms).ok().filter(|_| ms >= least) else {
        return Err(fail(format!(
            "{function} takes {least} or more milliseconds, not {ms}"
        )));
    };
    let call = Call::current()?;
    let plan = Plan {
        run: call.program().callback(run, &[])?,
        wait: Duration::from_millis(ms),
        again,
    };
    stop_function(call.timers().set(plan)?)
}

#[expect(
    deprecated,
    reason = "Rhai marks what may still change its signature this way; see its documentation"
)]
fn stop_function(stopper: Stopper) -> ScriptResult<FnPtr> {
    FnPtr::from_fn("stop", move |_, _| {
        stopper.stop();
        Ok(Dynamic::UNIT)
    })
}
