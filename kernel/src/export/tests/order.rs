//! Branches: each told once, the active one first, however deep the tree is.

use serde_json::{Value, json};

use super::super::View;
use super::super::order::Order;
use super::{page, read, says, session};
use crate::tree::SessionTree;

/// An entry under another one.
fn under(parent: &str, id: &str) -> Value {
    let mut entry = says("user", id);
    entry["id"] = json!(id);
    entry["parentId"] = match parent {
        "" => Value::Null,
        parent => json!(parent),
    };
    entry
}

/// Branches as ids, and rows as ids with their depth.
fn order(tree: &SessionTree) -> (Vec<String>, Vec<String>) {
    let view = View::of(tree);
    let path: Vec<_> = view.path.iter().map(|entry| entry.id().clone()).collect();
    let order = Order::new(&view.nodes, &path);
    let id = |node: usize| view.nodes.all[node].entry.id().to_string();
    let branch = |branch: &super::super::order::Branch| {
        let nodes: Vec<_> = branch.nodes.iter().map(|node| id(*node)).collect();
        format!(
            "{}:{}",
            branch.from.map(id).unwrap_or_default(),
            nodes.join("")
        )
    };
    let rows = order.rows();
    let rows = rows
        .iter()
        .map(|row| format!("{}{}", id(row.node), row.depth));
    (
        order.branches().iter().map(branch).collect(),
        rows.collect(),
    )
}

#[test]
fn the_active_branch_comes_first_and_others_after_the_one_they_left() {
    // S24
    let mut tree = session(&[
        under("", "a"),
        under("a", "b"),
        under("b", "c"),
        under("b", "d"),
        under("c", "e"),
        under("c", "f"),
        under("", "g"),
        under("a", "h"),
    ]);
    let (branches, rows) = order(&tree);
    assert_eq!(branches, [":ah", "a:bd", "b:cf", "c:e", ":g"]);
    assert_eq!(rows, ["g1", "a0", "b1", "c2", "e3", "f2", "d1", "h0"]);

    // Behind the leaf everything is another branch.
    tree.branch(&"c".into()).unwrap();
    let (branches, _) = order(&tree);
    assert_eq!(branches, [":abc", "c:e", "c:f", "b:d", "a:h", ":g"]);
    let read = read(&tree);
    assert!(read.text.contains("the session stands here"));
}

#[test]
fn a_session_that_stands_nowhere_is_told_whole() {
    let mut tree = session(&[under("", "a"), under("a", "b")]);
    tree.reset_leaf();
    assert!(read(&tree).ids.contains("e-b"));
}

#[test]
fn a_tree_as_deep_as_it_is_long_is_told_in_time() {
    // S24
    let mut entries = vec![under("", "r")];
    for number in 0..3_000 {
        let parent = match number {
            0 => "r".to_owned(),
            number => format!("n{}", number - 1),
        };
        entries.push(under(&parent, &format!("n{number}")));
        entries.push(under(&parent, &format!("s{number}")));
    }
    entries.push(under("r", "last"));
    let tree = session(&entries);
    let html = page(&tree);
    assert_eq!(html.matches("<article").count(), entries.len());
    assert!(html.contains("id=\"e-n2999\"") && html.contains("id=\"e-s2999\""));
}

#[test]
fn cycles_and_repeated_ids_are_told_once() {
    // S20
    let tree = session(&[
        under("c", "a"),
        under("a", "b"),
        under("b", "c"),
        under("", "b"),
    ]);
    let html = page(&tree);
    assert_eq!(html.matches("<article").count(), 3);
    read(&tree);
}
