//! Input handlers compose: what becomes of a text is what becomes of it if it is given from one to the
//! next, and who fails might as well not be there.

use std::sync::Arc;

use pliant_kernel::models::ModelWish;
use pliant_kernel::pipeline::Prompt;
use pliant_kernel::registry::{InProcess, Rank, Source};
use pliant_kernel::{Kernel, KernelOptions, OpenOptions, SessionChoice};
use pliant_sdk::hook::{InputAnswer, InputEvent};
use pliant_sdk::{Error, Message, Plugin};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::cases;
use crate::model::{ScriptedProvider, ScriptedWire, Talk};

#[derive(Debug, Clone, PartialEq)]
enum Handler {
    Nothing,
    Fails,
    Appends(String),
    Reverses,
    /// Takes texts that are longer.
    Takes(usize),
}

fn handler() -> impl Strategy<Value = Handler> {
    prop_oneof![
        1 => Just(Handler::Nothing),
        2 => Just(Handler::Fails),
        3 => "[a-z]{1,3}".prop_map(Handler::Appends),
        2 => Just(Handler::Reverses),
        1 => (0..12_usize).prop_map(Handler::Takes),
    ]
}

/// What a handler makes of a text; `None` when it takes it.
fn apply(handler: &Handler, text: String) -> Option<String> {
    match handler {
        Handler::Nothing | Handler::Fails => Some(text),
        Handler::Appends(more) => Some(text + more),
        Handler::Reverses => Some(text.chars().rev().collect()),
        Handler::Takes(longer) => Some(text).filter(|text| text.len() <= *longer),
    }
}

fn answer(handler: &Handler, text: String) -> Result<InputAnswer, Error> {
    let changed = |text| InputAnswer::Transform { text, images: None };
    match handler {
        Handler::Nothing => Ok(InputAnswer::Continue),
        Handler::Fails => Err(Error::failed("the handler fails")),
        other => Ok(apply(other, text).map_or(InputAnswer::Handled, changed)),
    }
}

/// The text that reaches the model.
async fn sent(handlers: Vec<Handler>, text: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let options = KernelOptions::new(folder.path().to_path_buf(), folder.path().join("agent"));
    let kernel = Kernel::boot(options).unwrap();
    let talk = Arc::new(Talk::default());
    let plugin = Plugin::new()
        .wire(ScriptedWire(Arc::clone(&talk)))
        .provider(ScriptedProvider);
    let plugin = handlers.into_iter().fold(plugin, |plugin, handler| {
        plugin.on(move |event: InputEvent, _| {
            let answer = answer(&handler, event.text);
            async { answer }
        })
    });
    let source = Source::inline("fake", Rank::User);
    let generation = Arc::new(InProcess::new(source, plugin).unwrap());
    kernel.registry().publish(generation);
    let open = OpenOptions {
        session: SessionChoice::InMemory,
        model: ModelWish {
            provider: Some("fake".into()),
            model: Some("m".into()),
        },
        ..OpenOptions::default()
    };
    let session = kernel.open_session(open).await.unwrap();
    session.prompt(Prompt::text(text), |_| ()).await.unwrap();
    let requests = talk.requests.lock().unwrap();
    let last = requests.first()?.messages.last()?;
    let Message::User(user) = &**last else {
        panic!("{last:?} was sent last")
    };
    Some(user.content.joined_text(""))
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn input_handlers_fold(handlers in vec(handler(), 0..6), text in "[a-z]{1,8}") {
        // P16, invariant 30
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let folded = handlers
            .iter()
            .try_fold(text.clone(), |text, handler| apply(handler, text));
        let mut sound = handlers.clone();
        sound.retain(|handler| *handler != Handler::Fails);
        prop_assert_eq!(&runtime.block_on(sent(handlers, &text)), &folded);
        prop_assert_eq!(&runtime.block_on(sent(sound, &text)), &folded);
    }
}
