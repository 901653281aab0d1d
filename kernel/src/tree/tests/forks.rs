//! Forks, clones, copies and exports.

use serde_json::json;

use super::*;

fn conversation(folder: &Folder) -> SessionTree {
    let mut tree = SessionTree::create(&folder.0, cwd(), None, ids());
    add(&mut tree, user("question one"));
    add(&mut tree, assistant("answer one"));
    add(&mut tree, user("question two"));
    add(&mut tree, assistant("answer two"));
    tree
}

fn id_of(tree: &SessionTree, at: usize) -> EntryId {
    tree.entries()[at].id().clone()
}

#[test]
fn a_fork_before_a_user_message_keeps_what_came_before_and_returns_the_text() {
    // S27, S28
    let folder = Folder::new();
    let tree = conversation(&folder);
    let before = lines(tree.path().unwrap());
    let fork = tree.fork(&id_of(&tree, 2), Position::Before).unwrap();
    assert_eq!(fork.editor_text.as_deref(), Some("question two"));
    assert_eq!(
        shown(fork.tree.context()),
        ["user: question one", "assistant: answer one"]
    );
    assert_eq!(
        raw_lines(&fork.tree),
        raw_lines(&tree)[..2],
        "entries keep their ids and bytes"
    );
    assert_ne!(fork.tree.id(), tree.id());
    assert_eq!(fork.tree.header().parent_session.as_deref(), tree.path());
    assert_eq!(fork.tree.path().unwrap().parent(), Some(&*folder.0));
    assert_eq!(lines(tree.path().unwrap()), before);
    assert_eq!(
        snapshot(&again(fork.tree.path().unwrap())),
        snapshot(&fork.tree)
    );
}

#[test]
fn a_fork_before_the_first_message_is_a_fresh_session() {
    // S28, S11
    let folder = Folder::new();
    let tree = conversation(&folder);
    let fork = tree.fork(&id_of(&tree, 0), Position::Before).unwrap();
    assert_eq!(
        (fork.editor_text.as_deref(), fork.tree.entries().len()),
        (Some("question one"), 0)
    );
    assert_eq!(fork.tree.header().parent_session.as_deref(), tree.path());
    assert!(!fork.tree.is_on_disk());
}

#[test]
fn what_cannot_be_forked_is_refused() {
    // S28
    let folder = Folder::new();
    let tree = conversation(&folder);
    let refusal = |tree: &SessionTree, id: &EntryId| tree.fork(id, Position::Before).err().unwrap();
    assert!(matches!(
        refusal(&tree, &id_of(&tree, 1)),
        TreeError::NotAUserMessage { .. }
    ));
    assert!(matches!(
        refusal(&tree, &"nope".into()),
        TreeError::UnknownEntry { .. }
    ));
    let mut unwritten = SessionTree::create(&folder.0, cwd(), None, ids());
    let id = add(&mut unwritten, custom_message("x"));
    assert!(matches!(refusal(&unwritten, &id), TreeError::NotOnDisk));
}

#[test]
fn an_in_memory_session_forks_in_memory() {
    // S28
    let mut tree = memory();
    let id = add(&mut tree, user("hi"));
    let fork = tree.fork(&id, Position::At).unwrap();
    assert_eq!((fork.tree.path(), fork.tree.entries().len()), (None, 1));
    assert_eq!(fork.tree.header().parent_session, None);
}

#[test]
fn a_clone_moves_labels_to_the_end_and_closes_the_gaps_they_leave() {
    // S27
    let folder = Folder::new();
    let mut tree = conversation(&folder);
    let first = id_of(&tree, 0);
    let label = tree.set_label(&first, Some("start")).unwrap().id().clone();
    let given_at = tree.label(&first).unwrap().timestamp.clone();
    let after = add(&mut tree, user("question three"));
    add(&mut tree, compaction("sum", Some(&label)));
    let last = add(&mut tree, assistant("answer three"));
    let clone = tree.fork(&last, Position::At).unwrap().tree;

    let kinds: Vec<&str> = clone
        .entries()
        .iter()
        .map(|entry| entry.kind().as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            "message",
            "message",
            "message",
            "message",
            "message",
            "compaction",
            "message",
            "label"
        ]
    );
    let EntryBody::Compaction(kept) = clone.entries()[5].body() else {
        panic!()
    };
    assert_eq!(kept.first_kept_entry_id.as_ref(), Some(&after));
    for pair in clone.entries().windows(2) {
        assert_eq!(pair[1].parent(), Some(pair[0].id()));
    }
    assert_eq!(clone.label(&first).unwrap().timestamp, given_at);
    assert_eq!(clone.leaf(), Some(clone.entries().last().unwrap().id()));
    assert_eq!(shown(clone.context()), shown(tree.context()));
    assert_eq!(snapshot(&again(clone.path().unwrap())), snapshot(&clone));
}

#[test]
fn a_copy_into_another_folder_has_all_branches_and_is_migrated() {
    // S29
    let folder = Folder::new();
    for name in ["v3.jsonl", "v1.jsonl"] {
        let source = folder.fixture(name);
        let before = fs::read(&source).unwrap();
        let (dir, cwd) = (
            folder.path(&format!("{name}-copies")),
            Path::new("/elsewhere"),
        );
        let copy = SessionTree::copy_into(&source, &dir, cwd, None, ids()).unwrap();
        assert_eq!(fs::read(&source).unwrap(), before);
        assert_eq!(copy.header().cwd, cwd);
        assert_eq!(copy.header().parent_session.as_deref(), Some(&*source));
        assert_eq!(
            copy.entries().len(),
            before.iter().filter(|b| **b == b'\n').count() - 1
        );
        let again = again(copy.path().unwrap());
        assert_eq!(snapshot(&again), snapshot(&copy));
        assert!(
            again
                .entries()
                .iter()
                .all(|entry| !entry.id().as_str().is_empty())
        );
    }
}

#[test]
fn a_fork_does_not_depend_on_the_file_it_came_from() {
    let folder = Folder::new();
    let path = folder.file("s.jsonl", chain(3).join("\n") + "\n");
    let tree = open(&path);
    let leaf = tree.leaf().unwrap().clone();
    let fork = tree.fork(&leaf, Position::At).unwrap().tree;
    let copy = SessionTree::copy_into(&path, &folder.path("c"), cwd(), None, ids()).unwrap();
    fs::write(&path, "").unwrap();
    for tree in [fork, copy] {
        assert_eq!(shown(tree.context()), ["user: 1", "user: 2", "user: 3"]);
        assert_eq!(snapshot(&again(tree.path().unwrap())), snapshot(&tree));
    }
}

#[test]
fn a_later_version_stays_what_it_is_in_a_fork() {
    // M7, S29
    let folder = Folder::new();
    let path = folder.fixture("v4.jsonl");
    let copy = SessionTree::copy_into(&path, &folder.path("c"), cwd(), None, ids()).unwrap();
    let header = &lines(copy.path().unwrap())[0];
    assert!(header.contains("\"version\":4,"), "{header}");
    assert_eq!(copy.header().extra(), again(&path).header().extra());
}

#[test]
fn unknown_entries_and_fields_survive_a_fork_unchanged() {
    // M7
    let folder = Folder::new();
    let path = folder.fixture("v3.jsonl");
    let tree = open(&path);
    let clone = tree.fork(&"c0000009".into(), Position::At).unwrap().tree;
    let has = |text: &str| raw_lines(&clone).iter().any(|line| line.contains(text));
    assert!(has(r#""payload":{"b":1,"a":[2.50,1e3]}"#) && has(r"\udc00"));
}

#[test]
fn an_export_is_the_header_and_the_branch_as_one_chain() {
    // S30
    let folder = Folder::new();
    let tree = open(&folder.fixture("v3.jsonl"));
    let text = tree.export_jsonl().unwrap();
    assert!(
        text.lines()
            .next()
            .unwrap()
            .ends_with(r#""flavour":"plain"}"#)
    );
    let export = open(&folder.file("export.jsonl", &text));
    assert_eq!(export.entries().len(), tree.path_to_leaf().len());
    assert_eq!(export.id(), tree.id());
    assert_eq!(shown(export.context()), shown(tree.context()));

    // A root whose parent is missing becomes a real root.
    let orphan = open(&folder.fixture("cycle.jsonl"));
    let first: serde_json::Value =
        serde_json::from_str(orphan.export_jsonl().unwrap().lines().nth(1).unwrap()).unwrap();
    assert_eq!(first["parentId"], json!(null));
}
