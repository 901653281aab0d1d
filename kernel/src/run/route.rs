//! Who answers a request: the model selected, or the one that a virtual model names for this request
//! (R14, `kernel.md` §7.3). Limits follow whoever answered.

use std::sync::Arc;

use pliant_sdk::message::Message;
use pliant_sdk::virtual_model::{FailedAnswer, Route, RouteReason, RouteRequest, VIRTUAL_API};
use pliant_sdk::{Error, Event, Model};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::advice::ended;
use super::driver::RunDriver;
use super::{ModelHost, RunHost, Selection, TreeHost, after};
use crate::agent::Driver;
use crate::registry::call_ctx;
use crate::tree::{CustomEntry, EntryBody, EntryKind, SessionTree};

/// Entries that keep what routes of virtual models have said (V13).
const STATE: &str = "pi.virtual-model-state";

/// What a run remembers of its requests.
#[derive(Debug, Default)]
pub(super) struct Routing {
    /// Model and level of the latest request.
    sent: Option<Selection>,
    /// Its answer has not ended.
    under_way: bool,
    /// The answer that is asked for again, until it is.
    failed: Option<FailedAnswer>,
}

impl Routing {
    /// Model and level of the request under way.
    pub(super) fn under_way(&self) -> Option<&Selection> {
        self.sent.as_ref().filter(|_| self.under_way)
    }

    /// The answer of the request under way has ended.
    pub(super) fn answered(&mut self) {
        self.under_way = false;
    }

    /// The latest answer is asked for again (R7, R22). One that no physical model gave is no reason for
    /// a route to be another one.
    pub(super) fn failed(&mut self, answer: &Arc<Message>) {
        self.failed = self.sent.as_ref().map(|sent| FailedAnswer {
            message: Arc::clone(answer),
            model: Model {
                // They may hold a secret.
                headers: None,
                ..sent.model.clone()
            },
        });
    }
}

/// Model and level of the request that is about to be made. A virtual model is routed; then the
/// conversation may be too long for the model it is routed to (R14).
pub(super) async fn selection<H: RunHost>(driver: &RunDriver<'_, H>) -> Result<Selection, Error> {
    let failed = {
        let mut routing = driver.routing();
        let failed = routing.failed.take();
        *routing = Routing::default();
        failed
    };
    let selected = driver.host.selection();
    let is_virtual = selected.model.api == VIRTUAL_API;
    let sent = match is_virtual {
        true => in_conversation(driver, selected, failed).await?,
        false => selected,
    };
    {
        let mut routing = driver.routing();
        routing.sent = Some(sent.clone());
        routing.under_way = true;
    }
    if is_virtual {
        after::within_threshold(driver, &sent.model).await;
    }
    Ok(sent)
}

/// Model and level of a request beside the conversation: a virtual model is routed without its state.
pub(super) async fn direct<H: RunHost>(
    host: &H,
    cancel: &CancellationToken,
    selected: &Selection,
) -> Result<Selection, Error> {
    if selected.model.api != VIRTUAL_API {
        return Ok(selected.clone());
    }
    let request = RouteRequest {
        model: selected.model.clone(),
        thinking_level: selected.level,
        reason: RouteReason::Direct,
        previous: host.look(latest_good),
        messages: host.context(),
        ..RouteRequest::default()
    };
    let routed = cancel.run_until_cancelled(ask(host, cancel, &request));
    Ok(routed.await.ok_or_else(Error::cancelled)??.0)
}

/// The model whose limits count for the conversation: the one selected; while that is a virtual one, the
/// one that gave the latest good answer, if it is known (V14).
pub async fn limits<H: ModelHost + TreeHost>(host: &H) -> Model {
    let selected = host.selection().model;
    if selected.api != VIRTUAL_API {
        return selected;
    }
    match host.look(latest_good) {
        Some(answer) => giver(host, &answer).await.unwrap_or(selected),
        None => selected,
    }
}

/// The model that gave an answer, if its limits say something of the next request: it is the one
/// selected, or a virtual one is selected and this one is known (R19).
pub(super) async fn answering<H: ModelHost>(host: &H, answer: &Arc<Message>) -> Option<Model> {
    let selected = host.selection().model;
    if selected.api == VIRTUAL_API {
        return giver(host, answer).await;
    }
    let said = answer.as_assistant()?;
    let same = said.provider == selected.provider && said.model == selected.id;
    same.then_some(selected)
}

async fn giver<H: ModelHost>(host: &H, answer: &Arc<Message>) -> Option<Model> {
    let said = answer.as_assistant()?;
    let reference = format!("{}/{}", said.provider, said.model);
    let found = host.find_model(reference).await;
    found.filter(|model| model.api != VIRTUAL_API)
}

/// V10–V13: what the route says is kept before the request is sent.
async fn in_conversation<H: RunHost>(
    driver: &RunDriver<'_, H>,
    selected: Selection,
    failed: Option<FailedAnswer>,
) -> Result<Selection, Error> {
    let host = driver.host;
    let messages = host.context();
    let (provider, id) = (selected.model.provider.clone(), selected.model.id.clone());
    let kept = host.look(|tree| kept_state(tree, &provider, &id));
    let request = RouteRequest {
        model: selected.model,
        thinking_level: selected.level,
        reason: match failed {
            Some(_) => RouteReason::Retry,
            None => reason(&messages),
        },
        previous: host.look(latest_good),
        failed,
        state: kept.clone(),
        messages,
    };
    let (routed, state) = ask(host, driver.cancel, &request).await?;
    if let Some(state) = state.filter(|state| Some(state) != kept.as_ref()) {
        let data = json!({"provider": provider, "modelId": id, "state": state});
        let entry = host.append(EntryBody::Custom(CustomEntry {
            custom_type: STATE.to_owned(),
            data: Some(data),
        }))?;
        let entry = serde_json::to_value(&entry)?;
        driver.emit(Event::EntryAppended { entry }).await;
    }
    Ok(routed)
}

/// Asks the virtual model, and makes sure of its answer.
async fn ask<H: RunHost>(
    host: &H,
    cancel: &CancellationToken,
    request: &RouteRequest,
) -> Result<(Selection, Option<Value>), Error> {
    let name = request.model.reference();
    let registered = host.registry().snapshot().virtual_model(&name).cloned();
    let registered = registered.ok_or_else(|| {
        Error::failed(format!(
            "The virtual model {name} is not registered any more, so nobody says who answers for it. Select another model."
        ))
    })?;
    let refused = |cause: String| {
        let source = &registered.source().name;
        Error::failed(format!(
            "The virtual model {name} {cause} Select another model, or mend \"{source}\", which routes it."
        ))
    };
    let services = registered.lend(host.services(registered.source()));
    let ctx = call_ctx(services, cancel.clone());
    let asked = registered.invoke::<Route>("route", request, ctx);
    let answer = match host.patience(cancel).limit {
        Some(limit) => timeout(limit, asked).await.map_err(|_| {
            let ms = limit.as_millis();
            refused(format!(
                "did not say within {ms} ms who answers for it; the setting extensions.handlerTimeoutMs allows more."
            ))
        })?,
        None => asked.await,
    };
    let Route {
        model: target,
        thinking_level,
        state,
    } = answer.map_err(|error| {
        refused(format!(
            "could not say who answers for it: {}",
            ended(&error.to_string())
        ))
    })?;
    let model = match host.find_model(target.clone()).await {
        None => {
            return Err(refused(format!(
                "wants \"{target}\" to answer, which is no model that is known."
            )));
        }
        Some(model) if model.api == VIRTUAL_API => {
            return Err(refused(format!(
                "wants {target} to answer, which is a virtual model itself."
            )));
        }
        Some(model) => model,
    };
    if !host.usable(&model.provider) {
        return Err(refused(format!(
            "wants {target} to answer, and no key for \"{}\" is known.",
            model.provider
        )));
    }
    let level = model.clamp_level(thinking_level.unwrap_or(request.thinking_level));
    Ok((Selection { model, level }, state))
}

/// V11, where nothing has failed.
fn reason(messages: &[Arc<Message>]) -> RouteReason {
    let since = messages.iter().rev();
    let mut since = since.take_while(|message| message.as_assistant().is_none());
    match since.any(|message| matches!(**message, Message::User(_))) {
        true => RouteReason::User,
        false => RouteReason::Continuation,
    }
}

/// The latest answer of the branch that neither failed nor was aborted (V12).
fn latest_good(tree: &SessionTree) -> Option<Arc<Message>> {
    let answers = tree.path_to_leaf().iter().rev();
    let mut answers = answers.filter_map(|entry| entry.message());
    let good = |message: &&Arc<Message>| {
        let answer = message.as_assistant();
        answer.is_some_and(|answer| !answer.stop_reason.is_failure())
    };
    answers.find(good).cloned()
}

/// What the latest route of this virtual model on the branch kept.
fn kept_state(tree: &SessionTree, provider: &str, id: &str) -> Option<Value> {
    let entries = tree.path_to_leaf().iter().rev();
    let customs = entries.filter(|entry| entry.kind() == EntryKind::Custom);
    let mut kept = customs.filter_map(|entry| match entry.body() {
        EntryBody::Custom(custom) if custom.custom_type == STATE => custom.data.as_ref(),
        _ => None,
    });
    let own = |data: &&Value| data["provider"] == provider && data["modelId"] == id;
    kept.find(own)?.get("state").cloned()
}
