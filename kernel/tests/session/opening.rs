//! What a session begins with, and which code serves its model.

use std::sync::{Arc, Mutex};

use pliant_kernel::models::ModelWish;
use pliant_kernel::pipeline::Prompt;
use pliant_kernel::registry::{InProcess, Rank, Source};
use pliant_kernel::{OpenOptions, SessionChoice};
use pliant_sdk::provider::{Provider, ProviderSpec};
use pliant_sdk::{Model, Plugin};
use serde_json::Value;

use crate::support::*;

#[tokio::test]
async fn the_selection_comes_first_and_the_system_message_with_the_first_prompt() {
    // G11, V3
    let started = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&started);
    let plugin = Plugin::new().on_event("session_start", move |event, _| {
        heard.lock().unwrap().push(event["reason"].clone());
        async { Ok(Value::Null) }
    });
    let scene = scene(Script::new([Reply::Text("ok")]), plugin).await;
    assert_eq!(*started.lock().unwrap(), ["startup"]);
    let kinds = || -> Vec<String> {
        let entries = scene.session.entries();
        let kind = |entry: &Arc<pliant_kernel::tree::Entry>| match entry.message() {
            Some(message) => message.role().to_owned(),
            None => format!("{:?}", entry.kind()),
        };
        entries.iter().map(kind).collect()
    };
    let selection = ["ModelChange", "ThinkingLevelChange"];
    assert_eq!(kinds(), selection);
    scene.prompt("hi").await;
    assert_eq!(
        kinds(),
        [&selection[..], &["system", "user", "assistant"]].concat()
    );
}

/// A service that speaks what another one speaks too.
struct Other;

impl Provider for Other {
    fn spec(&self) -> ProviderSpec {
        ProviderSpec {
            name: "other".into(),
            keyless: true,
            ..ProviderSpec::default()
        }
    }

    fn models(&self) -> Vec<Model> {
        let model = |id: &str, api: &str| Model {
            id: id.into(),
            provider: "other".into(),
            api: api.into(),
            ..Model::default()
        };
        vec![model("same", "scripted"), model("strange", "unspoken")]
    }
}

#[tokio::test]
async fn one_wire_serves_several_providers_and_a_provider_may_need_several_wires() {
    // G12
    let dir = tempfile::tempdir().unwrap();
    let kernel = kernel_in(dir.path());
    let script = Script::new([Reply::Text("from the wire")]);
    let plugin = Plugin::new()
        .wire(ScriptedWire(script.clone()))
        .provider(ScriptedProvider)
        .provider(Other);
    let source = Source::inline("fake", Rank::User);
    let generation = Arc::new(InProcess::new(source, plugin).unwrap());
    kernel.registry().publish(generation);
    for (model, said) in [
        ("same", None),
        (
            "strange",
            Some("Provider other has no API implementation for \"unspoken\""),
        ),
    ] {
        let open = OpenOptions {
            session: SessionChoice::InMemory,
            model: ModelWish {
                provider: Some("other".into()),
                model: Some(model.into()),
            },
            ..OpenOptions::default()
        };
        let session = kernel.open_session(open).await.unwrap();
        let end = session.prompt(Prompt::text("hi"), |_| ()).await.unwrap();
        let last = end.last.unwrap();
        let answer = last.as_assistant().unwrap();
        assert_eq!((&*answer.provider, &*answer.model), ("other", model));
        let error = answer.error_message.as_deref();
        assert_eq!(error.is_some(), said.is_some(), "{error:?}");
        assert!(
            error
                .unwrap_or_default()
                .starts_with(said.unwrap_or_default())
        );
    }
    assert_eq!(script.requests().len(), 1);
}
