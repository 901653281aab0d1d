//! What extensions show in place of what a front end would show by itself (`extensions.md` §4.10): views
//! of custom messages and entries and of tool calls, and Markdown. Nothing of it changes what is stored
//! or sent.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pliant_sdk::Error;
use pliant_sdk::display::{
    EntryShown, MarkdownShown, MessageShown, NEXT_VIEW, Surface, ToolShown, ViewOptions,
};
use pliant_sdk::host::{BoxFuture, ByteStream, Services};
use pliant_sdk::message::CustomMessage;
use pliant_sdk::view::View;
use serde::Serialize;
use serde_json::Value;

use super::{Session, Shared, lock};
use crate::registry::{Callers, HandlerFailure, Lender, Registered, Source};

/// How long somebody who looks at a screen waits for it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Longer Markdown is shown as it is.
const MOST_MARKDOWN: usize = 1024 * 1024;

impl Session {
    /// How an extension shows a custom message; `None` leaves it to the front end, also when the
    /// extension fails, which is reported.
    pub async fn view_message(
        &self,
        message: &CustomMessage,
        options: ViewOptions,
    ) -> Option<View> {
        let snapshot = self.0.equipment.registry.snapshot();
        let renderer = snapshot.message_renderer(&message.custom_type)?;
        let shown = MessageShown {
            message: message.clone(),
            options,
        };
        self.view("message_renderer", renderer, &shown).await
    }

    /// The same of a custom entry, as it is stored.
    pub async fn view_entry(&self, entry: &Value, options: ViewOptions) -> Option<View> {
        let snapshot = self.0.equipment.registry.snapshot();
        let custom_type = entry.get("customType").and_then(Value::as_str)?;
        let renderer = snapshot.entry_renderer(custom_type)?;
        let entry = entry.clone();
        let shown = EntryShown { entry, options };
        self.view("entry_renderer", renderer, &shown).await
    }

    /// How half of a tool call is shown: by the renderers of tools one after the other, at last by the
    /// tool itself.
    pub async fn view_tool(&self, shown: &ToolShown) -> Option<View> {
        let chain = Chain::of(&self.0, shown)?;
        let view = chain.next().await.ok().flatten();
        self.0.publish_reports().await;
        view
    }

    /// Markdown as extensions want it shown. One that fails leaves the text as it is.
    pub async fn transform_markdown(&self, markdown: String, surface: Surface) -> String {
        let snapshot = self.0.equipment.registry.snapshot();
        let transformers = snapshot.markdown_transformers();
        if transformers.is_empty() || markdown.len() > MOST_MARKDOWN {
            return markdown;
        }
        let mut shown = MarkdownShown { markdown, surface };
        for transformer in transformers {
            let callers = self.0.impatient();
            let asked = callers.ask(transformer, "markdown_transformer", "transform", &shown);
            let taken = asked.await.answer(|text: String| match text.len() {
                0..=MOST_MARKDOWN => Ok(text),
                _ => Err(Error::invalid("the transformed Markdown is too long")),
            });
            if let Some(text) = taken {
                shown.markdown = text;
            }
        }
        self.0.publish_reports().await;
        shown.markdown
    }

    async fn view(
        &self,
        event: &'static str,
        renderer: &Registered<()>,
        shown: &impl Serialize,
    ) -> Option<View> {
        let callers = self.0.impatient();
        let asked = callers.ask(renderer, event, "render", shown).await;
        let view = asked.answer(checked).flatten();
        self.0.publish_reports().await;
        view
    }
}

/// A view that can be laid out.
fn checked(view: Option<View>) -> Result<Option<View>, Error> {
    view.iter().try_for_each(View::check)?;
    Ok(view)
}

impl Shared {
    /// Calls that a screen waits for.
    pub(super) fn impatient(self: &Arc<Self>) -> Callers<'_> {
        let patience = self.patience(lock(&self.abort).clone());
        Callers::new(self, patience.at_most(PATIENCE))
    }
}

/// Who is asked for the view of a tool call, in order.
#[derive(Clone)]
struct Chain {
    session: Arc<Shared>,
    shown: Arc<Vec<u8>>,
    left: VecDeque<Link>,
}

#[derive(Clone)]
enum Link {
    Renderer(Arc<Registered<()>>),
    Tool(Arc<Registered<pliant_sdk::ToolSpec>>),
}

impl Chain {
    /// `None` when nobody would be asked.
    fn of(session: &Arc<Shared>, shown: &ToolShown) -> Option<Self> {
        let snapshot = session.equipment.registry.snapshot();
        let renderers = snapshot.tool_renderers().iter().cloned();
        let tool = snapshot.tool(&shown.tool_name).cloned();
        let tool = tool.filter(|tool| tool.spec.renders).map(Link::Tool);
        let left: VecDeque<Link> = renderers.map(Link::Renderer).chain(tool).collect();
        if left.is_empty() {
            return None;
        }
        Some(Self {
            session: Arc::clone(session),
            shown: Arc::new(serde_json::to_vec(shown).ok()?),
            left,
        })
    }

    /// The view of the next one that has one. Who fails is reported and passed by.
    fn next(mut self) -> BoxFuture<'static, Result<Option<View>, Error>> {
        Box::pin(async move {
            while let Some(link) = self.left.pop_front() {
                let session = Arc::clone(&self.session);
                let lender = Lending {
                    session: &session,
                    rest: &self,
                };
                let patience = session.patience(lock(&session.abort).clone());
                let callers = Callers::new(&lender, patience.at_most(PATIENCE));
                let shown = Vec::clone(&self.shown);
                let event = "tool_renderer";
                let view = match &link {
                    Link::Renderer(renderer) => {
                        let asked = callers.ask_bytes(renderer, event, "render", shown).await;
                        asked.answer(checked)
                    }
                    Link::Tool(tool) => {
                        let asked = callers.ask_bytes(tool, event, "render", shown).await;
                        asked.answer(checked)
                    }
                };
                if let Some(view) = view.flatten() {
                    return Ok(Some(view));
                }
            }
            Ok(None)
        })
    }
}

/// Lends a renderer what it is called with, and the view of whoever comes after it.
struct Lending<'a> {
    session: &'a Arc<Shared>,
    rest: &'a Chain,
}

impl Lender for Lending<'_> {
    fn services(&self, source: &Source) -> Arc<dyn Services> {
        Arc::new(WithNext {
            services: self.session.services(source),
            rest: self.rest.clone(),
        })
    }

    fn report(&self, failure: HandlerFailure) {
        self.session.report(failure);
    }
}

struct WithNext {
    services: Arc<dyn Services>,
    rest: Chain,
}

impl Services for WithNext {
    fn call(&self, service: &str, payload: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        if service != NEXT_VIEW {
            return self.services.call(service, payload);
        }
        let next = self.rest.clone().next();
        Box::pin(async move { Ok(serde_json::to_vec(&next.await?)?) })
    }

    fn open(
        &self,
        service: &str,
        payload: Vec<u8>,
    ) -> BoxFuture<'static, Result<ByteStream, Error>> {
        self.services.open(service, payload)
    }

    fn notify(&self, service: &str, payload: &[u8]) {
        self.services.notify(service, payload);
    }
}
