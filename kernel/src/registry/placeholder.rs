//! What stands for a source that is there and cannot be loaded, so that it fails closed: its tools keep
//! their names from weaker ones and answer with the reason, and so do its gates, which therefore block
//! (G5). It is replaced when the source can be loaded, and withdrawn when that is gone.

use std::collections::HashSet;
use std::future::ready;
use std::sync::Arc;

use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::BoxFuture;
use pliant_sdk::plugin::Invocation;
use serde_json::{Value, json};

use super::{Contribution, Generation, HookPoint, Kind, Source};

/// Something that a source would contribute.
#[derive(Debug, Clone, PartialEq)]
pub struct Promise {
    /// What it is.
    pub kind: Kind,
    /// Its name, or the event of a handler.
    pub name: String,
    /// Its declaration, where that is known.
    pub spec: Value,
}

impl Promise {
    /// One of which no more is known.
    pub fn new(kind: Kind, name: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
            spec: Value::Null,
        }
    }

    /// Whether it is a handler without which nothing is done.
    #[must_use]
    pub fn is_gate(&self) -> bool {
        let gates = HookPoint::ALL.iter().filter(|point| point.fails_closed());
        self.kind == Kind::Hook && gates.map(|gate| gate.name()).any(|gate| gate == self.name)
    }

    /// The declaration that says it is not usable.
    fn declared(&self, reason: &str) -> Value {
        let Self { kind, name, spec } = self;
        if spec.is_object() {
            return spec.clone();
        }
        let description = format!("Not usable at present. {reason}");
        match kind {
            Kind::Tool => json!({
                "name": name, "label": name, "description": description,
                "parameters": {"type": "object"},
            }),
            _ => json!({"name": name, "label": name, "description": description}),
        }
    }
}

/// A generation that takes no calls.
#[derive(Debug)]
pub struct Placeholder {
    source: Source,
    contributions: Arc<[Contribution]>,
    reason: Error,
}

impl Placeholder {
    /// For a source that cannot be loaded for a reason, a sentence; `None` when there is nothing of it
    /// to keep the place for.
    pub fn new(source: Source, promises: Vec<Promise>, reason: &str) -> Option<Self> {
        let reason = format!("{}.", reason.trim_end().trim_end_matches('.'));
        let mut known = HashSet::new();
        let kept: Vec<Promise> = promises
            .into_iter()
            .filter(|promise| promise.kind != Kind::Hook || promise.is_gate())
            .filter(|promise| known.insert((promise.kind, promise.name.clone())))
            .collect();
        let has_gate = kept.iter().any(Promise::is_gate);
        let contributions = (0..).zip(&kept).map(|(id, promise)| Contribution {
            id,
            kind: promise.kind,
            name: promise.name.clone(),
            spec: promise.declared(&reason),
        });
        let advice = match has_gate {
            true => {
                "Until it is mended, removed or disabled, nothing is done that it would be asked about."
            }
            false => "Mend it, or remove or disable it.",
        };
        let contributions: Arc<[_]> = contributions.collect();
        (!contributions.is_empty()).then(|| Self {
            source,
            contributions,
            reason: Error::new(code::FAULTY, format!("{reason} {advice}")),
        })
    }
}

impl Generation for Placeholder {
    fn source(&self) -> &Source {
        &self.source
    }

    fn contributions(&self) -> Arc<[Contribution]> {
        Arc::clone(&self.contributions)
    }

    fn invoke(&self, _: u32, _: Invocation) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        Box::pin(ready(Err(self.reason.clone())))
    }

    fn control(&self, op: &str, _: &[u8]) -> Result<Vec<u8>, Error> {
        Err(Error::unsupported(&format!("the operation \"{op}\"")))
    }

    fn fault(&self) -> Option<Error> {
        Some(self.reason.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{Rank, Registry};

    fn registered(promises: Vec<Promise>) -> Registry {
        let registry = Registry::default();
        let source = Source::inline("x", Rank::User);
        let placeholder = Placeholder::new(source, promises, "It is half a file");
        registry.publish(Arc::new(placeholder.unwrap()));
        registry
    }

    #[test]
    fn every_kind_keeps_its_place_but_handlers_that_guard_nothing() {
        // issue "Rust plugins", Build 8; E06
        let registry = registered(vec![
            Promise::new(Kind::Tool, "read"),
            Promise::new(Kind::Hook, "tool_call"),
            Promise::new(Kind::Hook, "tool_call"),
            Promise::new(Kind::Hook, "agent_end"),
            Promise::new(Kind::Command, "c"),
            Promise::new(Kind::Wire, "w"),
            Promise::new(Kind::Provider, "p"),
        ]);
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.diagnostics(), [""; 0]);
        assert!(snapshot.tool("read").is_some());
        assert!(snapshot.command("c").is_some() && snapshot.wire("w").is_some());
        assert!(snapshot.provider("p").is_some());
        assert_eq!(snapshot.handlers("tool_call").len(), 1);
        assert_eq!(snapshot.handlers("agent_end").len(), 0);
        let fault = snapshot.tool("read").unwrap().fault().unwrap();
        assert!(fault.is(code::FAULTY));
        assert!(
            fault
                .message
                .starts_with("It is half a file. Until it is mended")
        );
    }

    #[test]
    fn what_would_contribute_nothing_needs_no_place() {
        let source = Source::inline("x", Rank::User);
        let hook = Promise::new(Kind::Hook, "agent_end");
        assert!(Placeholder::new(source, vec![hook], "no").is_none());
    }
}
