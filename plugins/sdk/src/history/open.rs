//! Calls that wait for their result, found by id, by tool and by place.

use std::collections::BTreeSet;

use super::matching::Call;

/// Calls without a result, as their indices in the calls of a part. However many have one id, each
/// question takes a look or two: ids that all are equal are a damage that exists.
#[derive(Debug, Default)]
pub(super) struct OpenCalls<'a> {
    /// By id as stored, in order.
    by_id: BTreeSet<(&'a str, usize)>,
    /// The same by id and tool.
    by_tool: BTreeSet<(&'a str, &'a str, usize)>,
}

impl<'a> OpenCalls<'a> {
    pub(super) fn add(&mut self, index: usize, call: &Call<'a>) {
        self.by_id.insert((&call.call.id, index));
        self.by_tool.insert((&call.call.id, &call.call.name, index));
    }

    pub(super) fn remove(&mut self, index: usize, call: &Call<'a>) {
        self.by_id.remove(&(&call.call.id, index));
        self.by_tool
            .remove(&(&call.call.id, &call.call.name, index));
    }

    /// Which of the calls with its id a result answers: of the last message that has one the first
    /// of the result's tool, or the first.
    pub(super) fn answered_by(&self, calls: &[Call<'a>], id: &str, tool: &str) -> Option<usize> {
        let (_, last) = self.by_id.range((id, 0)..=(id, usize::MAX)).next_back()?;
        let message = calls.get(*last)?.message;
        let first = calls.partition_point(|call| call.message < message);
        let mut of_tool = self.by_tool.range((id, tool, first)..=(id, tool, *last));
        let of_tool = of_tool.next().map(|(_, _, index)| *index);
        of_tool.or_else(|| self.first_from(first, id))
    }

    /// The first call with that id in a message after this one.
    pub(super) fn after(&self, calls: &[Call<'a>], message: usize, id: &str) -> Option<usize> {
        self.first_from(calls.partition_point(|call| call.message <= message), id)
    }

    fn first_from(&self, index: usize, id: &str) -> Option<usize> {
        let mut found = self.by_id.range((id, index)..=(id, usize::MAX));
        found.next().map(|(_, index)| *index)
    }

    /// The ids of the calls.
    pub(super) fn ids(&self) -> impl Iterator<Item = &'a str> {
        self.by_id.iter().map(|(id, _)| *id)
    }
}
