//! What a loaded script has registered: at its top level, and since in its handlers. Ids are never given
//! twice, so a call made from an older view of the registry still finds what it means.

use std::sync::{Arc, PoisonError, RwLock};

use pliant_kernel::registry::{Contribution, Kind};
use pliant_sdk::Error;

use crate::contribution::{Handler, Registration};

/// More are a mistake, such as a registration in a handler that is called for every message.
const MOST: usize = 10_000;

/// The list of one generation.
#[derive(Default)]
pub(crate) struct Contributed(RwLock<List>);

#[derive(Default)]
struct List {
    items: Arc<[Contribution]>,
    /// By id.
    handlers: Vec<(Kind, Arc<dyn Handler>)>,
}

impl Contributed {
    /// Adds registrations, in order. Of one kind and name the last one counts, in the place of the first;
    /// handlers of events add up.
    ///
    /// # Errors
    /// `invalid`, when there are too many.
    pub(crate) fn add(&self, new: impl IntoIterator<Item = Registration>) -> Result<(), Error> {
        let mut list = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut items = list.items.to_vec();
        for registration in new {
            if list.handlers.len() >= MOST {
                return Err(Error::invalid(format!(
                    "the script has registered something {MOST} times; register it once, at the top level or in on(\"session_start\", …)"
                )));
            }
            let (item, handler) = list.numbered(registration);
            list.handlers.push((item.kind, handler));
            let same = |old: &Contribution| {
                item.kind != Kind::Hook && old.kind == item.kind && old.name == item.name
            };
            match items.iter_mut().find(|old| same(old)) {
                Some(old) => *old = item,
                None => items.push(item),
            }
        }
        list.items = items.into();
        Ok(())
    }

    /// Takes one away; `false` when there is none.
    pub(crate) fn remove(&self, kind: Kind, name: &str) -> bool {
        let mut list = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let stays = |item: &&Contribution| item.kind != kind || item.name != name;
        let items: Arc<[Contribution]> = list.items.iter().filter(stays).cloned().collect();
        let is_less = items.len() < list.items.len();
        list.items = items;
        is_less
    }

    /// Everything, in order.
    pub(crate) fn items(&self) -> Arc<[Contribution]> {
        let list = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&list.items)
    }

    /// What runs one of them, also of one that was taken away.
    pub(crate) fn handler(&self, id: u32) -> Option<(Kind, Arc<dyn Handler>)> {
        let list = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let (kind, handler) = list.handlers.get(usize::try_from(id).ok()?)?;
        Some((*kind, Arc::clone(handler)))
    }
}

impl List {
    fn numbered(&self, registration: Registration) -> (Contribution, Arc<dyn Handler>) {
        let Registration {
            kind,
            name,
            mut spec,
            handler,
        } = registration;
        let id = u32::try_from(self.handlers.len()).unwrap_or(u32::MAX);
        if let serde_json::Value::Object(spec) = &mut spec {
            spec.insert("id".into(), id.into());
            spec.insert("kind".into(), serde_json::json!(kind));
        }
        let item = Contribution {
            id,
            kind,
            name,
            spec,
        };
        (item, handler)
    }
}
