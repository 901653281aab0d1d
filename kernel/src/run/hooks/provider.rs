//! The exchange with a provider: handlers may change headers and body, and hear of the response and
//! its frames (`extensions.md` §3.3).

use std::ops::ControlFlow;
use std::sync::Arc;

use pliant_sdk::host::BoxFuture;
use pliant_sdk::{Error, Model};
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{listens, with_handlers};
use crate::host::frames_the_body;
use crate::models::{HeaderMap, ProviderHooks};
use crate::registry::HookPoint;
use crate::run::RunHost;

/// The handlers of a session, for one request to a model.
pub(in crate::run) fn provider<H: RunHost>(
    host: &H,
    cancel: &CancellationToken,
    model: &Model,
) -> Arc<dyn ProviderHooks> {
    Arc::new(Handlers {
        host: host.clone(),
        cancel: cancel.clone(),
        provider: model.provider.clone(),
        api: model.api.clone(),
        model: model.id.clone(),
    })
}

struct Handlers<H> {
    host: H,
    cancel: CancellationToken,
    provider: String,
    api: String,
    model: String,
}

#[derive(Serialize)]
struct BodyEvent<'a> {
    r#type: &'static str,
    payload: &'a Value,
}

impl<H: RunHost> Handlers<H> {
    async fn notify(&self, point: HookPoint, event: Value) {
        with_handlers(
            &self.host,
            &self.cancel,
            point,
            (),
            async |dispatcher, ()| {
                dispatcher.notify(&event).await;
            },
        )
        .await;
    }
}

impl<H: RunHost> ProviderHooks for Handlers<H> {
    fn wants(&self, point: HookPoint) -> bool {
        listens(&self.host, point)
    }

    /// The map is edited in place (G6).
    fn headers(&self, headers: HeaderMap) -> BoxFuture<'_, HeaderMap> {
        let point = HookPoint::BeforeProviderHeaders;
        Box::pin(async move {
            with_handlers(
                &self.host,
                &self.cancel,
                point,
                headers,
                async |dispatcher, mut headers| {
                    let payload =
                        |headers: &HeaderMap| json!({"type": point.name(), "headers": headers});
                    let take = |headers: &mut HeaderMap, answer: Value| {
                        if let Some(edited) = edited_headers(answer)? {
                            *headers = edited;
                        }
                        Ok(ControlFlow::Continue(()))
                    };
                    // The point does not fail closed, so the dispatch has no failure of its own.
                    let _ = dispatcher.each(&mut headers, payload, take).await;
                    headers
                },
            )
            .await
        })
    }

    /// A chain; an answer is the next body.
    fn body(&self, body: Value) -> BoxFuture<'_, Option<Value>> {
        let point = HookPoint::BeforeProviderRequest;
        Box::pin(async move {
            let draft = (body, false);
            let (body, changed) = with_handlers(&self.host, &self.cancel, point, draft, async |dispatcher, mut draft| {
                // Bodies are large: none is copied to be written.
                let payload = |(body, _): &(Value, bool)| {
                    let body = BodyEvent { r#type: point.name(), payload: body };
                    serde_json::to_vec(&body).unwrap_or_default()
                };
                let take = |draft: &mut (Value, bool), answer: Value| {
                    if !answer.is_object() {
                        return Err(Error::invalid(
                            "its answer is ignored, because the payload of a request is an object",
                        ));
                    }
                    *draft = (answer, true);
                    Ok(ControlFlow::Continue(()))
                };
                let _ = dispatcher.each_encoded(&mut draft, payload, take).await;
                draft
            })
            .await;
            changed.then_some(body)
        })
    }

    fn response(&self, status: u16, headers: HeaderMap) -> BoxFuture<'_, ()> {
        let point = HookPoint::AfterProviderResponse;
        let event = json!({"type": point.name(), "status": status, "headers": headers});
        Box::pin(self.notify(point, event))
    }

    fn frame(&self, data: Value) -> BoxFuture<'_, ()> {
        let point = HookPoint::ProviderStreamEvent;
        let event = json!({
            "type": point.name(), "provider": self.provider, "api": self.api, "model": self.model,
            "data": data,
        });
        Box::pin(self.notify(point, event))
    }
}

/// The headers of an edited event; one that cannot be sent would fail the whole request, so it is told
/// here whose it is.
fn edited_headers(mut answer: Value) -> Result<Option<HeaderMap>, Error> {
    let mut field = |path: &str| answer.pointer_mut(path).map(Value::take);
    let headers = match field("/event/headers").or_else(|| field("/headers")) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(headers)) => headers,
        Some(_) => {
            return Err(Error::invalid(
                "its answer is ignored, because its \"headers\" are not a map",
            ));
        }
    };
    match headers
        .iter()
        .find(|(name, value)| !is_sendable(name, value))
    {
        None => Ok(Some(headers)),
        Some((name, Value::String(_))) if frames_the_body(name) => Err(Error::invalid(format!(
            "its answer is ignored, because the header \"{name}\" is not for handlers to set; the length of the body decides it"
        ))),
        Some((name, _)) => Err(Error::invalid(format!(
            "its answer is ignored, because the header \"{name}\" cannot be sent; a value is a text of one line, or null to remove the header"
        ))),
    }
}

fn is_sendable(name: &str, value: &Value) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let fits = match value {
        Value::Null => true,
        Value::String(text) => !text.chars().any(|c| c.is_control() && c != '\t'),
        _ => false,
    };
    let framing = !value.is_null() && frames_the_body(name);
    fits && !framing && !name.is_empty() && name.bytes().all(is_token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_a_map_of_texts_of_one_line_and_nulls() {
        let read = |headers: Value| edited_headers(json!({"event": {"headers": headers}}));
        let good = json!({"X-A": "1", "x-b": null, "x-c": "\u{e4}\t"});
        assert_eq!(read(good.clone()).unwrap().map(Value::Object), Some(good));
        assert_eq!(edited_headers(json!({})), Ok(None));
        assert_eq!(edited_headers(json!("x")), Ok(None));
        let wrong = [
            json!([]),
            json!({"a b": "1"}),
            json!({"": "1"}),
            json!({"x": 1}),
            json!({"x": "1\r\ny: 2"}),
            json!({"Content-Length": "3"}),
            json!({"transfer-encoding": "chunked"}),
        ];
        for wrong in wrong {
            assert!(read(wrong).is_err());
        }
    }
}
