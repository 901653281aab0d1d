//! A plugin in a child as a generation of the registry. A child that is gone is replaced when somebody
//! needs it; one that crashes time after time has to wait longer and longer for that.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::{BoxFuture, Services};
use pliant_sdk::plugin::Invocation;

use super::guest::Start;
use super::host::Child;
use super::process::HostProgram;
use crate::dylib::generation::PluginHost;
use crate::dylib::load::compare;
use crate::dylib::manifest::{FoundPlugin, LoadError};
use crate::dylib::stage::StagedCopy;
use crate::registry::{Contribution, Generation, Source, Vitals, until};

/// Crashes in a row that a fresh child follows at once.
const AT_ONCE: u32 = 3;

/// The first wait after those, doubled with each further crash.
const FIRST_WAIT: Duration = Duration::from_millis(250);

const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// How long a lifecycle operation may take.
const CONTROL: Duration = Duration::from_secs(2);

/// A plugin that runs in a process of its own.
pub(in crate::dylib) struct Isolated {
    source: Source,
    contributions: Arc<[Contribution]>,
    run: Arc<Run>,
}

/// What every child of it is started with, and the one that runs.
struct Run {
    found: FoundPlugin,
    copy: StagedCopy,
    host: Arc<PluginHost>,
    program: HostProgram,
    services: Arc<dyn Services>,
    retired: Arc<AtomicBool>,
    current: Mutex<Option<Arc<Child>>>,
    /// Held while a child is started.
    starting: tokio::sync::Mutex<Crashes>,
    crashes: AtomicU32,
    calls: AtomicU64,
    /// Until when no child is started, and why: until then calls need not try.
    rests: Mutex<Option<(Instant, Error)>>,
}

/// Crashes since a call was answered.
#[derive(Default)]
struct Crashes {
    in_row: u32,
    last: Option<Instant>,
    how: String,
}

impl Crashes {
    /// How long to wait before another child is started.
    fn wait(&self, now: Instant) -> Duration {
        let Some(last) = self.last.filter(|_| self.in_row >= AT_ONCE) else {
            return Duration::ZERO;
        };
        let doubled = 1_u32 << (self.in_row - AT_ONCE).min(10);
        let wait = (FIRST_WAIT * doubled).min(LONGEST_WAIT);
        wait.saturating_sub(now.duration_since(last))
    }
}

impl Isolated {
    /// Starts a child for a library and answers it as a generation. Holds the caller's thread.
    ///
    /// # Errors
    /// Why it does not run.
    pub(in crate::dylib) fn open(
        found: FoundPlugin,
        host: &Arc<PluginHost>,
    ) -> Result<Self, LoadError> {
        let program = host
            .program
            .clone()
            .ok_or_else(|| not_isolated(&found, "this program has no process to run plugins in"))?;
        let copy = host.stage.copy(&found.path)?;
        compare(&found, &copy)?;
        let source = found.source();
        let retired: Arc<AtomicBool> = Arc::default();
        let over = Arc::clone(&retired);
        let services = until((host.services)(&source), move || {
            over.load(Ordering::Acquire)
        });
        let run = Arc::new(Run {
            found,
            copy,
            host: Arc::clone(host),
            program,
            services,
            retired,
            current: Mutex::default(),
            starting: tokio::sync::Mutex::default(),
            crashes: AtomicU32::new(0),
            calls: AtomicU64::new(0),
            rests: Mutex::default(),
        });
        let contributions = run.start()?.into();
        Ok(Self {
            source,
            contributions,
            run,
        })
    }
}

fn not_isolated(found: &FoundPlugin, why: &str) -> LoadError {
    LoadError::create_failed(
        found,
        format!("it is to run in a process of its own, but {why}."),
    )
}

/// What a child that did not start came to.
pub(super) fn start_failed(
    found: &FoundPlugin,
    host: &PluginHost,
    why: Option<String>,
) -> LoadError {
    match why {
        Some(why) => LoadError::create_failed(found, why),
        None => LoadError::TooSlow {
            name: found.manifest.name.clone(),
            path: found.path.display().to_string(),
            limit: format!("{} s", host.runtime.start_limit().as_secs_f32()),
        },
    }
}

impl Run {
    /// Starts a child and makes it the current one.
    fn start(&self) -> Result<Vec<Contribution>, LoadError> {
        let name = &self.found.manifest.name;
        let start = Start {
            copy: self.copy.path().to_owned(),
            init: (self.host.init)(name),
            limits: (self.host.limits)(name),
            tries: false,
        };
        let runtime = self.host.runtime.threads();
        let runtime =
            runtime.map_err(|error| LoadError::create_failed(&self.found, error.to_string()))?;
        let started = Child::start(
            name,
            &self.program,
            &start,
            Arc::clone(&self.services),
            &runtime,
            self.host.runtime.start_limit(),
        );
        let (child, described) =
            started.map_err(|why| start_failed(&self.found, &self.host, why))?;
        let contributions = self.found.contributions(&described)?;
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        Ok(contributions)
    }

    fn current(&self) -> Option<Arc<Child>> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.clone().filter(|child| child.ended().is_none())
    }

    /// The child that runs, or a fresh one.
    async fn child(self: &Arc<Self>) -> Result<Arc<Child>, Error> {
        if let Some(child) = self.current() {
            return Ok(child);
        }
        let mut crashes = self.starting.lock().await;
        if let Some(child) = self.current() {
            return Ok(child);
        }
        let gone = self
            .current
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(gone) = gone {
            self.crashes.fetch_add(1, Ordering::Relaxed);
            crashes.in_row = if gone.served() > 0 {
                1
            } else {
                crashes.in_row + 1
            };
            crashes.last = Some(Instant::now());
            crashes.how = gone.ended().unwrap_or_default().to_owned();
        }
        let wait = crashes.wait(Instant::now());
        if !wait.is_zero() {
            let error = Error::new(
                code::CRASHED,
                format!(
                    "The plugin \"{}\" crashed {} times in a row ({}) and is started again in {:.1} s at the earliest. Mend it, or disable it.",
                    self.found.manifest.name,
                    crashes.in_row,
                    crashes.how,
                    wait.as_secs_f32()
                ),
            );
            let mut rests = self.rests.lock().unwrap_or_else(PoisonError::into_inner);
            *rests = Some((Instant::now() + wait, error.clone()));
            return Err(error);
        }
        let (run, (tell, told)) = (Arc::clone(self), tokio::sync::oneshot::channel());
        let start = move || {
            let started = run.start().map(drop);
            drop(run);
            // Who waited may have given up.
            let _ = tell.send(started);
        };
        self.host.runtime.blocking(start)?;
        let started = told
            .await
            .map_err(|_| Error::failed("its start was given up"));
        if let Err(error) = started? {
            crashes.in_row += 1;
            crashes.last = Some(Instant::now());
            crashes.how = error.to_string();
            return Err(Error::new(code::CRASHED, error.to_string()));
        }
        self.current().ok_or_else(|| {
            let name = &self.found.manifest.name;
            Error::new(
                code::CRASHED,
                format!("The plugin \"{name}\" crashed at its start."),
            )
        })
    }
}

impl Generation for Isolated {
    fn source(&self) -> &Source {
        &self.source
    }

    fn contributions(&self) -> Arc<[Contribution]> {
        Arc::clone(&self.contributions)
    }

    fn invoke(
        &self,
        contribution: u32,
        call: Invocation,
    ) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        let run = Arc::clone(&self.run);
        run.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let child = run.child().await?;
            child.invoke(contribution, call).await
        })
    }

    fn control(&self, op: &str, payload: &[u8]) -> Result<Vec<u8>, Error> {
        match self.run.current() {
            Some(child) => child.control(op, payload, CONTROL),
            None => Err(Error::unsupported(&format!("the operation \"{op}\""))),
        }
    }

    /// Between crashes: its handlers are not asked a thousand times in vain (E09).
    fn fault(&self) -> Option<Error> {
        let mut rests = self
            .run
            .rests
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_over = |rests: &mut (Instant, Error)| rests.0 <= Instant::now();
        drop(rests.take_if(is_over));
        rests.as_ref().map(|(_, error)| error.clone())
    }

    fn retire(&self) {
        self.run.retired.store(true, Ordering::Release);
    }

    fn vitals(&self) -> Vitals {
        Vitals {
            isolation: Some("process".to_owned()),
            pid: self.run.current().map(|child| child.id()),
            calls: self.run.calls.load(Ordering::Relaxed),
            crashes: u64::from(self.run.crashes.load(Ordering::Relaxed)),
            ..Vitals::default()
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let current = self
            .current
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(child) = current.take() {
            child.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crashes_in_a_row_are_followed_by_longer_and_longer_waits() {
        let now = Instant::now();
        let wait = |in_row: u32, ago: u64| {
            let crashes = Crashes {
                in_row,
                last: now.checked_sub(Duration::from_millis(ago)),
                how: String::new(),
            };
            crashes.wait(now).as_millis()
        };
        assert_eq!([wait(0, 0), wait(2, 0)], [0, 0]);
        assert_eq!([wait(3, 0), wait(3, 200), wait(3, 400)], [250, 50, 0]);
        assert_eq!([wait(4, 0), wait(6, 0), wait(40, 0)], [500, 2000, 30_000]);
    }
}
