//! The leaf, branches, labels and the tree as a whole.

use super::*;

#[test]
fn every_append_becomes_the_leaf_and_the_parent_of_the_next() {
    // S7, S21, invariant 1
    let mut tree = memory();
    assert_eq!(tree.leaf(), None);
    let a = add(&mut tree, user("a"));
    let label = tree.set_label(&a, Some("here")).unwrap().id().clone();
    let b = add(&mut tree, assistant("b"));
    assert_eq!(tree.entry(&label).unwrap().parent(), Some(&a));
    assert_eq!(tree.entry(&b).unwrap().parent(), Some(&label));
    assert_eq!(tree.leaf(), Some(&b));
}

#[test]
fn moving_the_leaf_writes_nothing_and_starts_another_branch() {
    // S22
    let folder = Folder::new();
    let mut tree = SessionTree::create(&folder.0, cwd(), None, ids());
    let a = add(&mut tree, user("a"));
    add(&mut tree, assistant("left"));
    let before = lines(tree.path().unwrap());
    tree.branch(&a).unwrap();
    assert_eq!(shown(tree.context()), ["user: a"]);
    assert!(matches!(
        tree.branch(&"nowhere".into()),
        Err(TreeError::UnknownEntry { .. })
    ));
    assert_eq!(tree.leaf(), Some(&a));
    tree.reset_leaf();
    assert_eq!((tree.leaf(), tree.context().len()), (None, 0));
    assert_eq!(lines(tree.path().unwrap()), before);

    let root = add(&mut tree, user("another root"));
    assert_eq!(tree.entry(&root).unwrap().parent(), None);
    assert_eq!(shown(tree.context()), ["user: another root"]);
    assert_eq!(tree.nodes().roots.len(), 2);
}

#[test]
fn going_to_a_prompt_is_standing_before_it_with_its_text() {
    // R40
    let mut tree = memory();
    let first = add(&mut tree, user("one"));
    let answer = add(&mut tree, assistant("1"));
    let noted = add(&mut tree, custom_message("note"));
    add(&mut tree, user("two"));
    let count = tree.entries().len();
    assert_eq!(tree.navigate(&noted).unwrap().as_deref(), Some("note"));
    assert_eq!(tree.leaf(), Some(&answer));
    assert_eq!(tree.navigate(&answer).unwrap(), None);
    assert_eq!(tree.leaf(), Some(&answer));
    assert_eq!(tree.navigate(&first).unwrap().as_deref(), Some("one"));
    assert_eq!(tree.leaf(), None);
    assert!(tree.navigate(&"nowhere".into()).is_err());
    assert_eq!(tree.entries().len(), count);
}

#[test]
fn a_branch_summary_names_the_leaf_that_was_left() {
    // S23
    let mut tree = memory();
    let a = add(&mut tree, user("a"));
    let b = add(&mut tree, assistant("b"));
    let summary = |text: &str| BranchSummary {
        summary: text.into(),
        ..BranchSummary::default()
    };
    let entry = Arc::clone(
        tree.branch_with_summary(Some(&a), summary("went left"))
            .unwrap(),
    );
    let EntryBody::BranchSummary(stored) = entry.body() else {
        panic!()
    };
    assert_eq!((&*stored.from_id, entry.parent()), (b.as_str(), Some(&a)));
    assert_eq!(
        shown(tree.context()),
        ["user: a", "branchSummary: went left"]
    );

    tree.reset_leaf();
    let entry = tree.branch_with_summary(None, summary("")).unwrap();
    let EntryBody::BranchSummary(stored) = entry.body() else {
        panic!()
    };
    assert_eq!(stored.from_id, "root");
    assert_eq!(
        tree.context().len(),
        0,
        "an empty summary is not in the context"
    );

    let leaf = tree.leaf().cloned();
    assert!(
        tree.branch_with_summary(Some(&"nowhere".into()), summary("x"))
            .is_err()
    );
    assert_eq!(tree.leaf(), leaf.as_ref());
}

#[test]
fn the_last_label_wins_and_an_empty_one_clears() {
    // S25
    let folder = Folder::new();
    let mut tree = SessionTree::create(&folder.0, cwd(), None, ids());
    let a = add(&mut tree, user("a"));
    assert!(matches!(
        tree.set_label(&"nowhere".into(), Some("x")),
        Err(TreeError::UnknownEntry { .. })
    ));
    tree.set_label(&a, Some("one")).unwrap();
    let entry = Arc::clone(tree.set_label(&a, Some("two")).unwrap());
    let label = tree.label(&a).unwrap();
    assert_eq!(
        (&*label.text, &*label.timestamp),
        ("two", entry.timestamp())
    );
    assert_eq!(again(tree.path().unwrap()).label(&a), tree.label(&a));
    tree.set_label(&a, Some("")).unwrap();
    assert_eq!(tree.label(&a), None);
    assert_eq!(again(tree.path().unwrap()).label(&a), None);
}

#[test]
fn the_latest_name_counts_wherever_it_stands() {
    // S5
    let mut tree = memory();
    let a = add(&mut tree, user("a"));
    tree.set_name("one").unwrap();
    tree.branch(&a).unwrap();
    assert_eq!(tree.name(), Some("one"));
    tree.set_name("  ").unwrap();
    assert_eq!(tree.name(), None);
}

#[test]
fn children_come_by_timestamp_with_their_labels() {
    // S24
    let folder = Folder::new();
    let tree = open(&folder.fixture("v3.jsonl"));
    let nodes = tree.nodes();
    let fork = nodes
        .all
        .iter()
        .find(|node| node.entry.id().as_str() == "a0000007")
        .unwrap();
    let children: Vec<&str> = fork
        .children
        .iter()
        .map(|child| nodes.all[*child].entry.id().as_str())
        .collect();
    assert_eq!(children, ["b0000001", "c0000001"]);
    assert_eq!(fork.label.as_ref().unwrap().text, "good point");
}

#[test]
fn a_very_deep_session_overflows_no_stack() {
    // S24
    let folder = Folder::new();
    let mut tree = SessionTree::create(&folder.0, cwd(), None, ids());
    for _ in 0..20_000 {
        tree.append(EntryBody::Custom(CustomEntry::default()))
            .unwrap();
    }
    let last = add(&mut tree, user("deep"));
    let again = again(tree.path().unwrap());
    assert_eq!(again.path_to_leaf().len(), 20_001);
    assert_eq!(again.nodes().roots.len(), 1);
    let fork = tree.fork(&last, Position::At).unwrap();
    assert_eq!(fork.tree.entries().len(), 20_001);
}

#[test]
fn usage_counts_every_branch_and_never_shrinks() {
    // invariant 36, M4
    let mut tree = memory();
    let a = add(&mut tree, user("a"));
    let b = add(&mut tree, assistant("b"));
    assert_eq!(tree.usage_totals().total_tokens, 11);
    tree.branch(&a).unwrap();
    add(&mut tree, assistant("c"));
    assert_eq!(tree.usage_totals().total_tokens, 22);
    tree.branch(&b).unwrap();
    tree.edit_context(&b, Replacement::Omit).unwrap();
    add(&mut tree, compaction("all", None));
    assert_eq!(tree.usage_totals().total_tokens, 22);
    assert_eq!(tree.usage_totals().cost.total_from_provider, Some(false));
}

#[test]
fn a_tree_and_its_parts_go_between_threads() {
    fn sendable<T: Send + Sync>() {}
    sendable::<SessionTree>();
    sendable::<Projection>();
}
