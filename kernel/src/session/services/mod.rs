//! What handlers, tools and commands ask of their session, by name: a table for each group of
//! services, and what each kind of call may use (`extensions.md` §5.1). A session that has ended
//! answers nobody (§6).

mod around;
mod bus;
mod messages;
mod model;
mod naming;
mod nesting;
mod places;
mod prompt;
mod read;
mod registering;
mod reload;
mod replace;
mod state;
mod themes;
mod tools;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pliant_sdk::error::code;
use pliant_sdk::host::{BoxFuture, ByteStream};
use pliant_sdk::ui::Dialog;
use pliant_sdk::{Error, Model};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Shared, lock};
use crate::host::actions::{Actions, Ask, CallScope};
use crate::host::ui::HostUi;

pub(super) use nesting::UnderWay;

/// One service.
struct Service {
    name: &'static str,
    allowed: Allowed,
    run: fn(Arc<Shared>, Ask) -> BoxFuture<'static, Result<Value, Error>>,
}

/// Which calls may use a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Allowed {
    /// All of them.
    Anywhere,
    /// Commands of the user.
    InCommands,
    /// Running tools.
    InTools,
}

impl Allowed {
    fn check(self, service: &str, scope: &CallScope) -> Result<(), Error> {
        match (self, scope) {
            (Self::Anywhere, _) | (Self::InCommands, CallScope::Command { .. }) => Ok(()),
            (Self::InTools, CallScope::Tool { .. }) => Ok(()),
            (Self::InTools, _) => Err(Error::new(
                code::UNAVAILABLE,
                format!(
                    "{service} can be used in a running tool only: the call belongs to the call that makes it."
                ),
            )),
            (Self::InCommands, _) => Err(Error::new(
                code::UNAVAILABLE,
                format!(
                    "{service} can be used in a command only: a handler or tool would wait for the run that waits for it. Register a command for it."
                ),
            )),
        }
    }
}

/// All groups.
const GROUPS: &[&[Service]] = &[
    state::SERVICES,
    bus::SERVICES,
    messages::SERVICES,
    prompt::SERVICES,
    read::SERVICES,
    registering::SERVICES,
    reload::SERVICES,
    around::SERVICES,
    replace::SERVICES,
    naming::SERVICES,
    places::SERVICES,
    themes::SERVICES,
    tools::SERVICES,
    model::SERVICES,
];

/// A service that answers a stream.
struct StreamService {
    name: &'static str,
    allowed: Allowed,
    open: fn(Ask) -> Result<ByteStream, Error>,
}

const STREAMS: &[StreamService] = tools::STREAMS;

fn all() -> impl Iterator<Item = &'static Service> {
    GROUPS.iter().copied().flatten()
}

/// Names of all services of sessions.
pub(crate) fn service_names() -> impl Iterator<Item = &'static str> {
    let streams = STREAMS.iter().map(|service| service.name);
    all().map(|service| service.name).chain(streams)
}

impl Actions for Shared {
    fn cwd(&self) -> &Path {
        &self.cwd
    }

    fn environment(&self) -> Vec<(String, String)> {
        let (id, file) = {
            let tree = self.tree();
            (
                tree.id().to_string(),
                tree.path().map(|path| path.display().to_string()),
            )
        };
        let state = lock(&self.state);
        let model = state.model.as_ref();
        let values = [
            ("SESSION_ID", Some(id)),
            ("SESSION_FILE", file),
            (
                "PROVIDER",
                model.map(|model: &Model| model.provider.clone()),
            ),
            ("MODEL", model.map(|model| model.id.clone())),
            ("REASONING_LEVEL", Some(state.level.as_str().to_owned())),
        ];
        let both = |(name, value): (&str, Option<String>)| {
            value.map(|value| {
                [
                    (format!("PLIANT_{name}"), value.clone()),
                    (format!("PI_{name}"), value),
                ]
            })
        };
        values.into_iter().filter_map(both).flatten().collect()
    }

    fn ui(&self) -> &dyn HostUi {
        &*self.equipment.ui
    }

    fn asks_user(self: Arc<Self>, dialog: &Dialog) -> Box<dyn Send> {
        Box::new(self.prompt_opens(dialog))
    }

    fn leaving(&self) -> CancellationToken {
        lock(&self.leaving).clone()
    }

    fn services(&self) -> Vec<&'static str> {
        all().map(|service| service.name).collect()
    }

    fn ask(self: Arc<Self>, name: &str, ask: Ask) -> BoxFuture<'static, Result<Value, Error>> {
        let Some(service) = all().find(|service| service.name == name) else {
            let error = Error::unsupported(&format!("the service \"{name}\""));
            return Box::pin(std::future::ready(Err(error)));
        };
        let allowed = self
            .check_open(name)
            .and_then(|()| service.allowed.check(name, &ask.scope));
        if let Err(error) = allowed {
            return Box::pin(std::future::ready(Err(error)));
        }
        // Calls of tools count themselves, and there may be very many.
        if service.name.starts_with("tools.") {
            return (service.run)(self, ask);
        }
        let answer = (service.run)(Arc::clone(&self), ask);
        Box::pin(async move { self.asked.answer(service.name, answer).await })
    }

    fn open(
        self: Arc<Self>,
        name: &str,
        ask: Ask,
    ) -> BoxFuture<'static, Result<ByteStream, Error>> {
        let service = STREAMS.iter().find(|service| service.name == name);
        let opened = match service {
            None => Err(Error::unsupported(&format!(
                "the streaming service \"{name}\""
            ))),
            Some(service) => self
                .check_open(name)
                .and_then(|()| service.allowed.check(name, &ask.scope))
                .and_then(|()| (service.open)(ask)),
        };
        Box::pin(std::future::ready(opened))
    }
}

fn read_as<T: DeserializeOwned>(service: &str, payload: Value) -> Result<T, Error> {
    serde_json::from_value(payload)
        .map_err(|error| Error::invalid(format!("{service} cannot use what it was given: {error}")))
}

impl Shared {
    fn check_open(&self, service: &str) -> Result<(), Error> {
        if self.let_go.load(Ordering::Acquire) {
            return Err(Error::new(
                code::STALE,
                format!(
                    "{service} asked a session that has ended. Do not keep what a call was given; \"session_start\" tells of the next session."
                ),
            ));
        }
        Ok(())
    }
}
