//! Running one evaluation on a thread for scripts, from the async side: what waits for it can go away,
//! and a panic in it is an error.

use std::sync::Arc;

use pliant_sdk::Error;
use tokio::sync::oneshot;

use crate::call::{Call, Stop, StopSign};
use crate::threads;

/// Runs `work` as this call on a thread for scripts. Dropping the future stops the script; panics
/// are errors.
pub(crate) async fn evaluate<T: Send + 'static>(
    call: Arc<Call>,
    work: impl FnOnce(&Arc<Call>) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let (answer, waiting) = oneshot::channel();
    let unanswered = StopOnDrop(Arc::clone(call.stop_sign()));
    threads::spawn(Box::new(move || {
        let result = pliant_sdk::catch(|| call.enter(|| work(&call)));
        let result = match result {
            Ok(result) => result.map_err(|error| call.explain(error)),
            Err(panic) => Err(name_panic(panic, call.program().name())),
        };
        // The values of the call are freed on this thread, before the caller goes on.
        drop(call);
        let _ = answer.send(result);
    }))?;
    let result = waiting.await;
    drop(unanswered);
    result.unwrap_or_else(|_| Err(Error::failed("the script's thread ended without an answer")))
}

struct StopOnDrop(Arc<StopSign>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.raise(Stop::Cancelled);
    }
}

fn name_panic(mut panic: Error, script: &str) -> Error {
    panic.message = format!("{script}: {}", panic.message);
    panic
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pliant_sdk::host::{Host, NoServices};

    use super::*;
    use crate::call::Phase;
    use crate::engine::Profile;
    use crate::program::Program;
    use crate::timers::Timers;

    #[tokio::test]
    async fn a_panic_on_a_script_thread_is_an_error_with_the_scripts_name() {
        let program = Arc::new(Program::compile("t.rhai", None, "", Profile::Extension).unwrap());
        let phase = Phase::Loading(Default::default());
        let host = Host::from_services(NoServices);
        let timers = Timers::new(&program, host.clone(), Duration::ZERO);
        let call = Call::new(program, timers, phase, host, None);
        let error = evaluate::<()>(call, |_| panic!("no {}", "way"))
            .await
            .unwrap_err();
        assert_eq!(
            (error.code.as_str(), error.message.as_str()),
            ("panic", "t.rhai: panicked: no way")
        );
    }
}
