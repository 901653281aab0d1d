//! Entries and their tree.

use pliant_tests::{ModelServer, TempHome, reply};
use serde_json::{Value, json};

#[test]
fn entries_come_as_they_are_stored_and_from_one_on() {
    let server = ModelServer::start([reply::text("one")]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    let empty = rpc.ok(json!({"type": "get_entries"}));
    rpc.turn("first");
    let data = rpc.ok(json!({"type": "get_entries"}));
    let entries = data["entries"].as_array().expect("a list");
    assert_eq!(entries, &home.session()[1..]);
    assert_eq!(data["leafId"], entries[entries.len() - 1]["id"]);
    assert!(entries.starts_with(empty["entries"].as_array().expect("a list")));
    for (number, entry) in entries.iter().enumerate() {
        let since = rpc.ok(json!({"type": "get_entries", "since": entry["id"]}));
        assert_eq!(since["entries"], json!(entries[number + 1..]));
        assert_eq!(since["leafId"], data["leafId"]);
    }
    assert_eq!(
        rpc.error(json!({"type": "get_entries", "since": "nope"})),
        "Entry not found: nope"
    );
    rpc.end();
    server.finish();
}

#[test]
fn the_tree_holds_every_branch_and_labels() {
    let server = ModelServer::start([
        reply::text("one"),
        reply::text("two"),
        reply::text("other two"),
    ]);
    server.allow_rewritten_history();
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    rpc.turn("first");
    rpc.turn("second");
    let second = rpc.ok(json!({"type": "get_fork_messages"}))["messages"][1]["entryId"].take();
    rpc.ok(json!({"type": "set_label", "entryId": second, "label": "here"}));
    rpc.error(json!({"type": "set_label", "entryId": "nope", "label": "x"}));
    let arrived = rpc.ok(json!({"type": "navigate_tree", "targetId": second}));
    assert_eq!(arrived["editorText"], "second");
    rpc.error(json!({"type": "navigate_tree", "targetId": "nope"}));
    rpc.turn("another second");
    let data = rpc.ok(json!({"type": "get_tree"}));
    let mut leaves = Vec::new();
    let mut labels = Vec::new();
    let mut count = 0;
    walk(&data["tree"], &Value::Null, &mut |node| {
        count += 1;
        if node["children"] == json!([]) {
            leaves.push(node["entry"]["id"].clone());
        }
        if let Some(label) = node.get("label") {
            assert!(node["labelTimestamp"].is_string(), "{node}");
            labels.push((label.clone(), node["entry"]["id"].clone()));
        }
    });
    assert_eq!(labels, [(json!("here"), second.clone())]);
    assert_eq!(leaves.len(), 2);
    assert!(leaves.contains(&data["leafId"]));
    let entries = rpc.ok(json!({"type": "get_entries"}))["entries"].take();
    assert_eq!(entries.as_array().map(Vec::len), Some(count));
    rpc.ok(json!({"type": "set_label", "entryId": second}));
    assert!(
        !rpc.ok(json!({"type": "get_tree"}))
            .to_string()
            .contains("\"labelTimestamp\"")
    );
    rpc.end();
    server.finish();
}

fn walk(nodes: &Value, parent: &Value, see: &mut impl FnMut(&Value)) {
    for node in nodes.as_array().expect("children are a list") {
        assert_eq!(&node["entry"]["parentId"], parent);
        see(node);
        walk(&node["children"], &node["entry"]["id"], see);
    }
}
