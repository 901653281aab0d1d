//! A script as a generation: loading it, and running its contributions.

use std::sync::Arc;
use std::time::Duration;

use pliant_kernel::registry::{Contribution, Generation, Kind, Source};
use pliant_sdk::Error;
use pliant_sdk::host::{BoxFuture, ByteStream, Host, Services};
use pliant_sdk::plugin::Invocation;

use crate::call::{Call, Phase};
use crate::contribution::{Handler, Registration, Registrations, Running};
use crate::engine::Profile;
use crate::error::Failure;
use crate::evaluation::evaluate;
use crate::program::Program;
use crate::script::Script;
use crate::timers::Timers;

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
    let timers = Timers::new(&program, host.clone(), limits.handler);
    let phase = Phase::Loading(Default::default());
    let limit = Some(limits.load);
    let call = Call::new(
        Arc::clone(&program),
        Arc::clone(&timers),
        phase,
        host,
        limit,
    );
    let registered = evaluate(call, |call| {
        let program = call.program();
        program
            .run_top_level()
            .map_err(|error| Failure::from(error).into_error(program))?;
        Ok(call.take_registrations())
    })
    .await?;
    let Script {
        name, path, rank, ..
    } = script;
    let source = Source { name, path, rank };
    timers.begin();
    Ok(Arc::new(Extension::new(
        source, program, timers, registered, limits,
    )))
}

/// A loaded script.
struct Extension {
    source: Source,
    program: Arc<Program>,
    timers: Arc<Timers>,
    contributions: Vec<Contribution>,
    handlers: Vec<Arc<dyn Handler>>,
    limits: Limits,
}

impl Extension {
    fn new(
        source: Source,
        program: Arc<Program>,
        timers: Arc<Timers>,
        registered: Registrations,
        limits: Limits,
    ) -> Self {
        let mut contributions = Vec::new();
        let mut handlers = Vec::new();
        for (id, registration) in (0..).zip(registered.into_list()) {
            let Registration {
                kind,
                name,
                mut spec,
                handler,
            } = registration;
            if let serde_json::Value::Object(spec) = &mut spec {
                spec.insert("id".into(), id.into());
                spec.insert("kind".into(), serde_json::json!(kind));
            }
            contributions.push(Contribution {
                id,
                kind,
                name,
                spec,
            });
            handlers.push(handler);
        }
        Self {
            source,
            program,
            timers,
            contributions,
            handlers,
            limits,
        }
    }

    fn handler(&self, id: u32) -> Option<(Kind, &Arc<dyn Handler>)> {
        let index = usize::try_from(id).ok()?;
        Some((
            self.contributions.get(index)?.kind,
            self.handlers.get(index)?,
        ))
    }
}

impl Generation for Extension {
    fn source(&self) -> &Source {
        &self.source
    }

    fn contributions(&self) -> &[Contribution] {
        &self.contributions
    }

    fn invoke(
        &self,
        contribution: u32,
        invocation: Invocation,
    ) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        let Some((kind, handler)) = self.handler(contribution) else {
            let error = Error::unsupported(&format!("contribution {contribution}"));
            return Box::pin(std::future::ready(Err(error)));
        };
        let (handler, program) = (Arc::clone(handler), Arc::clone(&self.program));
        let timers = Arc::clone(&self.timers);
        let limit = (kind == Kind::Hook).then_some(self.limits.handler);
        let Invocation { op, payload, ctx } = invocation;
        Box::pin(async move {
            let host = ctx.host().clone();
            let call = Call::new(program, timers, Phase::Serving(ctx), host, limit);
            evaluate(call, move |call| {
                handler.run(&op, &payload, &Running::new(call))
            })
            .await
        })
    }

    fn control(&self, op: &str, _payload: &[u8]) -> Result<Vec<u8>, Error> {
        // There is nothing to hand over or shut down: what a script holds goes with its last call.
        Err(Error::unsupported(&format!("the operation \"{op}\"")))
    }

    fn retire(&self) {
        self.timers.end();
    }
}

/// A script that was loaded and never registered, or whose last call ended, leaves nothing running.
impl Drop for Extension {
    fn drop(&mut self) {
        self.timers.end();
    }
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
