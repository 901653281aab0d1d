//! What a caller may do to a session tree, as values that can be drawn and made smaller.

use pliant_kernel::tree::{EntryBody, Replacement};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::values;

/// One step. An index picks one of the entries there are then.
#[derive(Debug, Clone)]
pub enum Operation {
    Append(Box<EntryBody>),
    /// Keeps from this one of the messages of the context on.
    Compact(String, Index),
    Branch(Index),
    ResetLeaf,
    BranchWithSummary(Option<Index>, String),
    Label(Index, String),
    Name(String),
    Edit(Index, Replacement),
    Refused(Refusal),
    Reopen,
    ForkBefore(Index),
    ForkAt(Index),
    CopyInto,
}

/// What must fail and change nothing.
#[derive(Debug, Clone)]
pub enum Refusal {
    BranchToUnknown,
    SummaryAtUnknown,
    LabelOfUnknown,
    EditOfUnknown,
    SummaryMessage,
    PendingAnswer,
    KnownTypeWithoutFields,
    /// Another file has the session's name already.
    NameTaken,
}

/// A life of a session.
pub fn operations() -> impl Strategy<Value = Vec<Operation>> {
    vec(operation(), 1..30)
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::{
        Append, Branch, BranchWithSummary, Compact, CopyInto, Edit, ForkAt, ForkBefore, Label,
        Name, Refused, Reopen, ResetLeaf,
    };
    let at = any::<Index>;
    prop_oneof![
        12 => values::body().prop_map(|body| Append(Box::new(body))),
        2 => (values::text(), at()).prop_map(|(summary, keep)| Compact(summary, keep)),
        2 => at().prop_map(Branch),
        1 => Just(ResetLeaf),
        1 => (proptest::option::of(at()), values::text())
            .prop_map(|(to, summary)| BranchWithSummary(to, summary)),
        3 => (at(), "|[a-z]{1,3}").prop_map(|(target, label)| Label(target, label)),
        1 => values::text().prop_map(Name),
        4 => (at(), values::replacement()).prop_map(|(target, edit)| Edit(target, edit)),
        2 => refusal().prop_map(Refused),
        2 => Just(Reopen),
        1 => at().prop_map(ForkBefore),
        1 => at().prop_map(ForkAt),
        1 => Just(CopyInto),
    ]
}

fn refusal() -> impl Strategy<Value = Refusal> {
    prop_oneof![
        Just(Refusal::BranchToUnknown),
        Just(Refusal::SummaryAtUnknown),
        Just(Refusal::LabelOfUnknown),
        Just(Refusal::EditOfUnknown),
        Just(Refusal::SummaryMessage),
        Just(Refusal::PendingAnswer),
        Just(Refusal::KnownTypeWithoutFields),
        Just(Refusal::NameTaken),
    ]
}
