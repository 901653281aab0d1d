//! The extension of a script. Each load of it is a generation with handlers of its own; what is called
//! of it is recorded.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pliant_kernel::registry::{HookPoint, InProcess, Rank, Registry, Source};
use pliant_sdk::plugin::CallCtx;
use pliant_sdk::tool::ExecutionMode;
use pliant_sdk::{Error, Plugin};
use serde_json::Value;

use crate::model::Gate;
use crate::script::{Handler, Manner};
use crate::tools::{Doer, Workshop};

/// A call of the first or the last handler of a generation.
#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    pub point: &'static str,
    /// What tells dispatches apart that run side by side.
    pub about: String,
    pub generation: usize,
    pub last: bool,
}

/// Loads the extension.
pub struct Extension {
    registry: Arc<Registry>,
    to_come: Mutex<VecDeque<Vec<Handler>>>,
    pub called: Mutex<Vec<Called>>,
    pub gate: Gate,
    workshop: Arc<Workshop>,
    loads: Arc<Loads>,
}

/// Loads of the extension so far.
#[derive(Default)]
pub struct Loads {
    begun: AtomicUsize,
    done: AtomicUsize,
}

impl Loads {
    /// The numbers of the generation that is there for sure, and of the one that may be.
    pub fn look(&self) -> (usize, usize) {
        let done = self.done.load(Ordering::SeqCst);
        (done, self.begun.load(Ordering::SeqCst))
    }
}

/// A generation with an odd number has a tool that the others have not.
pub fn has_late_tool(generation: usize) -> bool {
    generation % 2 == 1
}

impl Extension {
    pub fn new(
        registry: Arc<Registry>,
        generations: Vec<Vec<Handler>>,
        workshop: Arc<Workshop>,
        loads: Arc<Loads>,
    ) -> Arc<Self> {
        Arc::new(Self {
            registry,
            to_come: Mutex::new(generations.into()),
            called: Mutex::default(),
            gate: Gate::default(),
            workshop,
            loads,
        })
    }

    /// No handler is left to come.
    pub fn calm_down(&self) {
        self.to_come.lock().unwrap().clear();
    }

    /// Loads the next generation in the place of the last one.
    pub fn load(self: &Arc<Self>) {
        // One lock for both: a generation is published before the next is made.
        let mut to_come = self.to_come.lock().unwrap();
        let number = self.loads.begun.load(Ordering::SeqCst) + 1;
        let handlers = to_come.pop_front().unwrap_or_default();
        let mut plugin = Plugin::new();
        for point in HookPoint::ALL {
            plugin = self.recorded(plugin, point.name(), number, false);
        }
        for handler in handlers {
            plugin = self.handled(plugin, handler.point.name(), handler.manner);
        }
        for point in HookPoint::ALL {
            plugin = self.recorded(plugin, point.name(), number, true);
        }
        if has_late_tool(number) {
            plugin = plugin.tool(Doer {
                name: "late",
                mode: ExecutionMode::default(),
                workshop: Arc::clone(&self.workshop),
            });
        }
        let source = Source::inline("extension", Rank::User);
        let generation = Arc::new(InProcess::new(source, plugin).unwrap());
        self.loads.begun.store(number, Ordering::SeqCst);
        self.registry.publish(generation);
        self.loads.done.store(number, Ordering::SeqCst);
    }

    fn recorded(
        self: &Arc<Self>,
        plugin: Plugin,
        point: &'static str,
        generation: usize,
        last: bool,
    ) -> Plugin {
        let extension = Arc::downgrade(self);
        plugin.on_event(point, move |event, _| {
            if let Some(extension) = extension.upgrade() {
                let about = event["toolCallId"].as_str().or(event["text"].as_str());
                extension.called.lock().unwrap().push(Called {
                    point,
                    about: about.unwrap_or_default().to_owned(),
                    generation,
                    last,
                });
            }
            async { Ok(Value::Null) }
        })
    }

    fn handled(self: &Arc<Self>, plugin: Plugin, point: &'static str, manner: Manner) -> Plugin {
        let extension = Arc::downgrade(self);
        plugin.on_event(point, move |_, ctx| {
            let extension = extension.upgrade();
            let manner = manner.clone();
            async move {
                match extension {
                    Some(extension) => extension.behave(manner, ctx).await,
                    None => Ok(Value::Null),
                }
            }
        })
    }

    async fn behave(self: Arc<Self>, manner: Manner, ctx: CallCtx) -> Result<Value, Error> {
        match manner {
            Manner::Nothing => {}
            Manner::Fail => return Err(Error::failed("the handler fails")),
            Manner::Panic => resume_unwind(Box::new("the handler panics")),
            Manner::Answer(answer) => return Ok(answer),
            Manner::Gate => self.gate.pass().await,
            Manner::Hang => std::future::pending().await,
            Manner::Abort => ctx.host().session().abort().await?,
            Manner::Ask => {
                ctx.host().session().is_idle().await?;
                let refused = ctx.host().session().wait_idle().await;
                assert!(refused.is_err(), "a handler would wait for itself");
            }
            Manner::Reload => self.load(),
        }
        Ok(Value::Null)
    }
}
