//! A script as a generation: loading it, and running its contributions.

use std::sync::Arc;
use std::time::Duration;

use pliant_kernel::registry::{Contribution, Generation, Kind, Source};
use pliant_sdk::Error;
use pliant_sdk::host::{BoxFuture, ByteStream, Host, Services};
use pliant_sdk::plugin::Invocation;
use tokio::sync::oneshot::{self, error::TryRecvError};

use crate::call::{Call, Phase, Stop, StopSign};
use crate::contribution::Running;
use crate::engine::Profile;
use crate::error::Failure;
use crate::program::Program;
use crate::script::Script;
use crate::threads;

/// How long a script may take. The time of dialogs does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Running the top level.
    pub load: Duration,
    /// A hook handler (`extensions.handlerTimeoutMs`). Tools, commands and providers have no limit.
    pub handler: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            load: Duration::from_secs(10),
            handler: Duration::from_secs(30),
        }
    }
}

/// Compiles a script, runs its top level, and answers what it registered. Nothing is registered
/// anywhere before the caller publishes the answer, so a script that fails half-way leaves no trace.
///
/// Inside a tokio runtime the top level may use services; dropping the future stops it.
///
/// # Errors
/// `invalid` for a syntax error, else what the top level failed with; either way with file, line
/// and column.
pub async fn load_extension(
    script: Script,
    services: Arc<dyn Services>,
    limits: Limits,
) -> Result<Arc<dyn Generation>, Error> {
    let program = Arc::new(Program::compile(
        &script.name,
        script.path.as_deref(),
        &script.text,
        Profile::Extension,
    )?);
    let host = Host::from_services(Lent(services));
    let phase = Phase::Loading(Default::default());
    let call = Call::new(Arc::clone(&program), phase, host, Some(limits.load));
    let registered = on_script_thread(call, |call| {
        let program = call.program();
        program
            .run_top_level()
            .map_err(|error| Failure::from(error).into_error(program))?;
        Ok(call.take_registrations())
    })
    .await?;
    program.contributed().add(registered.into_list())?;
    let Script {
        name, path, rank, ..
    } = script;
    Ok(Arc::new(Extension {
        source: Source { name, path, rank },
        program,
        limits,
    }))
}

/// A loaded script.
struct Extension {
    source: Source,
    program: Arc<Program>,
    limits: Limits,
}

impl Drop for Extension {
    /// Nobody can call it any more; calls under way may go on, but nothing begins by itself.
    fn drop(&mut self) {
        self.program.timers().end();
    }
}

impl Generation for Extension {
    fn source(&self) -> &Source {
        &self.source
    }

    fn contributions(&self) -> Arc<[Contribution]> {
        self.program.contributed().items()
    }

    fn invoke(
        &self,
        contribution: u32,
        invocation: Invocation,
    ) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        let Some((kind, handler)) = self.program.contributed().handler(contribution) else {
            let error = Error::unsupported(&format!("contribution {contribution}"));
            return Box::pin(std::future::ready(Err(error)));
        };
        let program = Arc::clone(&self.program);
        let limit = (kind == Kind::Hook).then_some(self.limits.handler);
        let Invocation { op, payload, ctx } = invocation;
        Box::pin(async move {
            let host = ctx.host().clone();
            let call = Call::new(program, Phase::Serving(ctx), host, limit);
            on_script_thread(call, move |call| {
                handler.run(&op, &payload, &Running::new(call))
            })
            .await
        })
    }

    fn control(&self, op: &str, _payload: &[u8]) -> Result<Vec<u8>, Error> {
        // There is nothing to hand over or shut down: what a script holds goes with its last call.
        Err(Error::unsupported(&format!("the operation \"{op}\"")))
    }

    /// Calls under way hold the script alive beyond this; its timers end now.
    fn retire(&self) {
        self.program.timers().end();
    }
}

/// Runs `work` as this call on a thread for scripts. Dropping the future stops the script; panics
/// are errors.
pub(crate) async fn on_script_thread<T: Send + 'static>(
    call: Arc<Call>,
    work: impl FnOnce(&Arc<Call>) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let (answer, mut waiting) = oneshot::channel();
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
    let early = threads::soon(|| match waiting.try_recv() {
        Ok(result) => Some(Some(result)),
        Err(TryRecvError::Closed) => Some(None),
        Err(TryRecvError::Empty) => None,
    });
    let result = match early {
        Some(result) => result,
        None => waiting.await.ok(),
    };
    drop(unanswered);
    let lost = || Err(Error::failed("the script's thread ended without an answer"));
    result.unwrap_or_else(lost)
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

/// Services as a type of their own, which is what a [`Host`] is made over.
struct Lent(Arc<dyn Services>);

impl Services for Lent {
    fn call(&self, service: &str, payload: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        self.0.call(service, payload)
    }

    fn open(
        &self,
        service: &str,
        payload: Vec<u8>,
    ) -> BoxFuture<'static, Result<ByteStream, Error>> {
        self.0.open(service, payload)
    }

    fn notify(&self, service: &str, payload: &[u8]) {
        self.0.notify(service, payload);
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use pliant_kernel::registry::Rank;
    use pliant_sdk::host::NoServices;

    use super::*;

    fn script(text: &str) -> Script {
        Script {
            name: "t.rhai".to_owned(),
            path: None,
            text: text.to_owned(),
            rank: Rank::User,
        }
    }

    #[tokio::test]
    async fn a_panic_on_a_script_thread_is_an_error_with_the_scripts_name() {
        let program = Program::compile("t.rhai", None, "", Profile::Extension).unwrap();
        let phase = Phase::Loading(Default::default());
        let host = Host::from_services(NoServices);
        let call = Call::new(Arc::new(program), phase, host, None);
        let error = on_script_thread::<()>(call, |_| panic!("no {}", "way"))
            .await
            .unwrap_err();
        assert_eq!(
            (error.code.as_str(), error.message.as_str()),
            ("panic", "t.rhai: panicked: no way")
        );
    }

    #[test]
    fn a_script_loads_without_a_runtime_but_has_no_services_then() {
        let load = |text: &str| {
            let loading = load_extension(script(text), Arc::new(NoServices), Limits::default());
            let mut loading = std::pin::pin!(loading);
            let mut cx = Context::from_waker(Waker::noop());
            loop {
                // The answer comes from another thread.
                match loading.as_mut().poll(&mut cx) {
                    Poll::Ready(loaded) => return loaded,
                    Poll::Pending => std::thread::yield_now(),
                }
            }
        };
        assert!(load(r#"on("input", || ());"#).is_ok());
        let error = load(r#"read_file("x");"#).err().unwrap();
        assert_eq!(
            error.message,
            "t.rhai:1:1: services are not there yet while this script is loaded"
        );
    }
}
