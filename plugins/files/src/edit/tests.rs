//! The tool as a model meets it, through a host over the local file system.

use serde_json::{Value, json};

use super::*;
use crate::testing::Dir;

fn one(old: &str, new: &str) -> Value {
    json!({"path": "f", "edits": [{"oldText": old, "newText": new}]})
}

#[test]
fn a_piece_is_replaced_and_the_change_described() {
    // extensions §8.4
    let dir = Dir::with(&[("f", "a\nb\nc\n")]);
    let result = dir.run(&Edit, one("b", "x\ny")).unwrap();
    assert_eq!(dir.get("f"), b"a\nx\ny\nc\n");
    let expected = ToolResult::text("Replaced 1 piece of f.").with_details(json!({
        "diff": " 1 a\n-2 b\n+2 x\n+3 y\n 3 c",
        "patch": "--- f\n+++ f\n@@ -1,3 +1,4 @@\n a\n-b\n+x\n+y\n c\n",
        "firstChangedLine": 2,
    }));
    assert_eq!(result, expected);
}

#[test]
fn the_file_is_locked_from_before_reading_until_after_writing() {
    // extensions §8.1, file mutation queue
    let dir = Dir::with(&[("f", "a")]);
    dir.text(&Edit, one("a", "b"));
    assert_eq!(dir.log(), ["lock f", "read f", "write f", "unlock"]);
}

#[test]
fn a_mistake_leaves_the_file_alone_and_unlocks_it() {
    let dir = Dir::with(&[("f", "a\nb\n")]);
    let edits = json!({"path": "f", "edits": [
        {"oldText": "a", "newText": "x"}, {"oldText": "q", "newText": "y"}]});
    let error = dir.error(&Edit, edits);
    assert!(
        error.starts_with("edits[1].oldText is not in f."),
        "{error}"
    );
    assert_eq!(dir.get("f"), b"a\nb\n");
    assert_eq!(dir.log(), ["lock f", "read f", "unlock"]);
}

#[test]
fn an_abort_at_any_step_before_writing_leaves_the_file_alone() {
    for step in ["lock", "read"] {
        let mut dir = Dir::with(&[("f", "a")]);
        dir.cancel_at = step;
        assert_eq!(dir.run(&Edit, one("a", "b")), Err(Error::cancelled()));
        assert_eq!(dir.get("f"), b"a");
        assert_eq!(dir.log().last().unwrap(), "unlock");
    }
}

#[test]
fn no_change_is_an_error() {
    let dir = Dir::with(&[("f", "a\r\nb\r\n")]);
    for (old, new) in [("a", "a"), ("a\nb", "a\r\nb")] {
        let error = dir.error(&Edit, one(old, new));
        assert!(error.starts_with("The edits leave f as it is"), "{error}");
    }
}

#[test]
fn byte_order_mark_line_breaks_and_broken_bytes_outlive_an_edit() {
    // T06
    let dir = Dir::new();
    dir.put("f", b"\xef\xbb\xbfa\r\n\xff\xe9 b\r\nc\rd\n");
    dir.text(&Edit, one("a\n", "x\ny\n"));
    assert_eq!(dir.get("f"), b"\xef\xbb\xbfx\r\ny\r\n\xff\xe9 b\r\nc\rd\n");
    dir.text(&Edit, one("\u{fffd}\u{fffd} b\n", "z\n"));
    assert_eq!(dir.get("f"), b"\xef\xbb\xbfx\r\ny\r\nz\r\nc\rd\n");
}

#[test]
fn text_that_only_looks_alike_is_found_and_the_rest_kept() {
    // T08
    let dir = Dir::with(&[("f", "a “b” \u{a0}\nlet\u{a0}x = ‘1’; // …\u{a0}?\n")]);
    dir.text(&Edit, one("let x = '1';", "let y = 2;"));
    assert_eq!(
        dir.get("f"),
        "a “b” \u{a0}\nlet y = 2; // …\u{a0}?\n".as_bytes()
    );
}

#[test]
fn what_is_not_found_is_shown_with_its_differences() {
    // T08
    let dir = Dir::with(&[("f", "func f() {\n\treturn nil\n}\n")]);
    assert_eq!(
        dir.error(&Edit, one("    return nil", "    return err")),
        "oldText is not in f. The nearest text differs:\n\
         line 2 : →return nil\n\
         oldText: ····return nil\n\
         (→ tab, · space at an edge, <U+…> other spaces and invisible characters.) Copy oldText \
         from the file as it is there; if it may have changed, read it again."
    );
}

#[test]
fn a_missing_file_is_for_write() {
    let dir = Dir::new();
    let error = dir.run(&Edit, one("a", "b")).unwrap_err();
    assert!(error.is(code::NOT_FOUND));
    assert_eq!(
        error.message,
        "f does not exist. Check the path; new files are for write."
    );
    let error = dir.error(&Edit, json!({"path": "f", "edits": []}));
    assert_eq!(error, "edits is empty. Give at least one.");
}

#[test]
fn old_argument_shapes_become_a_list() {
    let edit = json!({"oldText": "a", "newText": "b"});
    let other = json!({"oldText": "c", "newText": "d"});
    let list = json!({"path": "f", "edits": [edit]});
    for shape in [
        list.clone(),
        json!({"path": "f", "edits": edit}),
        json!({"path": "f", "edits": edit.to_string()}),
        json!({"path": "f", "edits": json!([edit]).to_string()}),
        json!({"path": "f", "oldText": "a", "newText": "b"}),
        json!({"path": "f", "edits": null, "oldText": "a", "newText": "b"}),
        json!({"path": "f", "edits": [], "oldText": "a", "newText": "b"}),
    ] {
        assert_eq!(with_edits_as_list(shape.clone()), list, "{shape}");
    }
    let both = json!({"path": "f", "edits": [other], "oldText": "a", "newText": "b"});
    assert_eq!(with_edits_as_list(both)["edits"], json!([other, edit]));
}

#[test]
fn shapes_that_mean_nothing_are_left_to_validation() {
    for shape in [
        json!(null),
        json!("x"),
        json!({"edits": "not json"}),
        json!({"edits": "3"}),
        json!({"edits": 3, "oldText": "a", "newText": "b"}),
        json!({"oldText": "a"}),
    ] {
        assert_eq!(with_edits_as_list(shape.clone()), shape);
    }
}

#[test]
fn the_schema_asks_for_at_least_one_edit() {
    let schema = pliant_sdk::tool::schema_of::<EditInput>();
    assert_eq!(schema["properties"]["edits"]["minItems"], 1);
    let edit = &schema["properties"]["edits"]["items"];
    assert_eq!(edit["required"], json!(["oldText", "newText"]));
}
