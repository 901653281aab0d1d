//! The session as a run, a tool and a handler see it.

use std::path::Path;
use std::sync::Arc;

use pliant_sdk::host::{BoxFuture, Services};
use pliant_sdk::{Error, Event, Message, Model};

use super::{Delivery, Shared, lock};
use crate::host::actions::{Actions, HostUi};
use crate::models::ModelClient;
use crate::prompt::PromptOptions;
use crate::registry::{HandlerFailure, Registry, Snapshot, Source};
use crate::run::{RunHost, Selection, Toolbox};

impl RunHost for Arc<Shared> {
    fn registry(&self) -> &Registry {
        &self.equipment.registry
    }

    fn client(&self) -> &ModelClient {
        &self.equipment.client
    }

    fn selection(&self) -> Selection {
        let state = lock(&self.state);
        Selection {
            model: state.model.clone().unwrap_or_default(),
            level: state.level,
        }
    }

    fn toolbox(&self, snapshot: &Arc<Snapshot>) -> Arc<Toolbox> {
        let active = self.tools.active(snapshot);
        let mut state = lock(&self.state);
        let scene = state.scene(&self.cwd.display().to_string());
        if let Some(toolbox) = &state.toolbox
            && toolbox.is_current(snapshot, &active, &scene)
        {
            return Arc::clone(toolbox);
        }
        let session = Arc::clone(self);
        let services: crate::run::MakeServices =
            Arc::new(move |source: &Source| session.services(source));
        let toolbox = Arc::new(Toolbox::new(snapshot, &active, &services, scene));
        state.toolbox = Some(Arc::clone(&toolbox));
        toolbox
    }

    fn prompt_options(&self) -> PromptOptions {
        self.prompt.clone()
    }

    fn services(&self, source: &Source) -> Arc<dyn Services> {
        let actions: Arc<dyn Actions> = Arc::clone(self) as Arc<dyn Actions>;
        self.equipment.host.for_source(source, Some(actions))
    }

    fn publish(&self, event: Event) -> BoxFuture<'_, ()> {
        Box::pin(self.subscribers.publish(event))
    }

    fn report(&self, failure: HandlerFailure) {
        lock(&self.reports).push(failure);
    }

    fn take_reports(&self) -> Vec<HandlerFailure> {
        std::mem::take(&mut lock(&self.reports))
    }

    fn store(&self, message: &Arc<Message>) -> Result<(), Error> {
        let mut tree = self.tree();
        match tree.append_message(Arc::clone(message)) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::failed(error.to_string())),
        }
    }

    fn context(&self) -> Vec<Arc<Message>> {
        self.tree().context().to_vec()
    }

    fn take_steering(&self) -> Vec<Message> {
        lock(&self.queues).take(Delivery::Steer)
    }

    fn take_follow_up(&self) -> Vec<Message> {
        lock(&self.queues).take(Delivery::FollowUp)
    }

    fn has_queued(&self) -> bool {
        !lock(&self.queues).is_empty()
    }

    fn delivered(&self, text: &str) -> Option<(Vec<String>, Vec<String>)> {
        let mut queues = lock(&self.queues);
        queues.delivered(text).then(|| queues.shown())
    }

    fn release(&self) {
        Shared::release(self);
    }

    fn conversation(&self) -> String {
        self.tree().id().to_string()
    }

    fn now_ms(&self) -> i64 {
        Shared::now_ms(self)
    }
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
}
