//! A request on its way out: the fields of the body in their order, the headers in their layers.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use super::Compat;
use crate::host::{FramedRequest, HttpCredential, HttpRequest};
use crate::model::Model;
use crate::provider::StreamOptions;

/// The address of a model's service, without a slash at its end.
///
/// # Errors
/// A sentence for the user when there is none.
pub fn base_url(model: &Model) -> Result<&str, String> {
    match model.base_url.trim_end_matches('/') {
        "" => Err(format!(
            "The model {} has no base URL. Set `baseUrl` for its provider.",
            model.reference()
        )),
        base => Ok(base),
    }
}

/// The model's key in a header, which the host adds: in the protocol's own, or as a bearer token where
/// the user says so (`authHeader`).
#[must_use]
pub fn credential(model: &Model, header: &str, prefix: &str) -> HttpCredential {
    let (header, prefix) = match Compat::of(model).flag("authHeader", false) {
        true => ("authorization", "Bearer "),
        false => (header, prefix),
    };
    HttpCredential {
        provider: model.provider.clone(),
        header: header.to_owned(),
        prefix: prefix.to_owned(),
    }
}

/// A request with a JSON body, limits and attempts as the options say.
#[must_use]
pub fn post(
    url: String,
    headers: Headers,
    credential: Option<HttpCredential>,
    options: &StreamOptions,
    body: &Fields<'_>,
) -> FramedRequest {
    let request = HttpRequest {
        method: "POST".to_owned(),
        url,
        headers: headers.0,
        credential,
        timeout_ms: options.timeout_ms,
        max_retries: options.max_retries,
        max_retry_delay_ms: options.max_retry_delay_ms,
    };
    FramedRequest::new(request, body.size(), |bytes| body.write(bytes))
}

/// A field of the body.
#[derive(Debug)]
enum Field<'a> {
    Value(Value),
    /// JSON in pieces, so that what is long and known is copied once.
    Written(Vec<Cow<'a, [u8]>>),
}

/// The body in order; setting a field again keeps its place.
#[derive(Debug, Default)]
pub struct Fields<'a>(Vec<(String, Field<'a>)>);

impl<'a> Fields<'a> {
    /// Sets a field.
    pub fn value(&mut self, name: &str, value: impl Into<Value>) {
        self.set(name, Field::Value(value.into()));
    }

    /// Sets a field to JSON that is written already, in pieces.
    pub fn written(&mut self, name: &str, pieces: Vec<Cow<'a, [u8]>>) {
        self.set(name, Field::Written(pieces));
    }

    fn set(&mut self, name: &str, field: Field<'a>) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, place)) => *place = field,
            None => self.0.push((name.to_owned(), field)),
        }
    }

    /// About how many bytes the body has.
    fn size(&self) -> usize {
        const USUAL_VALUE: usize = 128;
        let sizes = self.0.iter().map(|(_, field)| match field {
            Field::Value(_) => USUAL_VALUE,
            Field::Written(pieces) => pieces.iter().map(|piece| piece.len()).sum(),
        });
        sizes.sum::<usize>() + USUAL_VALUE
    }

    fn write(&self, body: &mut Vec<u8>) {
        let mut separator = b'{';
        for (name, field) in &self.0 {
            body.push(separator);
            separator = b',';
            body.extend(json_bytes(name));
            body.push(b':');
            match field {
                // Writing JSON values to memory does not fail.
                Field::Value(value) => drop(serde_json::to_writer(&mut *body, value)),
                Field::Written(pieces) => {
                    pieces
                        .iter()
                        .for_each(|piece| body.extend_from_slice(piece));
                }
            }
        }
        body.extend_from_slice(if self.0.is_empty() { b"{}" } else { b"}" });
    }
}

/// A value as JSON; writing to memory does not fail.
pub(super) fn json_bytes(value: &(impl Serialize + ?Sized)) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// Headers with names that are unique without regard to case; the later value wins, `None` removes
/// one of the host.
#[derive(Debug, Default)]
pub struct Headers(Vec<(String, Option<String>)>);

impl Headers {
    /// Those of every request with a JSON body.
    #[must_use]
    pub fn of_json() -> Self {
        let mut headers = Self::default();
        headers.set("accept", Some("application/json".to_owned()));
        headers.set("content-type", Some("application/json".to_owned()));
        headers
    }

    /// Sets one.
    pub fn set(&mut self, name: &str, value: Option<String>) {
        self.0
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.0.push((name.to_owned(), value));
    }

    /// Whether one is set to a value.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let mut values = self.0.iter();
        values.any(|(known, value)| known.eq_ignore_ascii_case(name) && value.is_some())
    }

    /// What the model and the request say, over everything before.
    pub fn layer(&mut self, model: &Model, options: &StreamOptions) {
        let layers: [Option<&Map<String, Value>>; 2] =
            [model.headers.as_ref(), Some(&options.headers)];
        for (name, value) in layers.into_iter().flatten().flatten() {
            match value {
                Value::Null => self.set(name, None),
                Value::String(text) => self.set(name, Some(text.clone())),
                other => self.set(name, Some(other.to_string())),
            }
        }
    }
}
