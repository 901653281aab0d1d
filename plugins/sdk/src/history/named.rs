//! Values by name, in the order in which they came: what sections and tools are patched in.

use std::collections::HashMap;

/// A value that is set again stays in its place; one that was removed comes back at the end. No step
/// walks over the others, however many there are.
#[derive(Debug)]
pub(super) struct Named<T> {
    places: HashMap<String, usize>,
    values: Vec<Option<T>>,
}

impl<T> Named<T> {
    pub(super) fn set(&mut self, name: &str, value: T) {
        if let Some(place) = self.places.get(name) {
            self.values[*place] = Some(value);
            return;
        }
        self.places.insert(name.to_owned(), self.values.len());
        self.values.push(Some(value));
    }

    pub(super) fn remove(&mut self, name: &str) {
        if let Some(place) = self.places.remove(name) {
            self.values[place] = None;
        }
    }

    pub(super) fn into_values(self) -> impl Iterator<Item = T> {
        self.values.into_iter().flatten()
    }
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self {
            places: HashMap::new(),
            values: Vec::new(),
        }
    }
}
