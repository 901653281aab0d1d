//! What a model sees of a file, through a host over the local file system.

use serde_json::{Value, json};

use super::*;
use crate::testing::Dir;
use pliant_sdk::error::code;

fn lines(count: usize) -> String {
    (1..=count).map(|n| format!("line {n}\n")).collect()
}

/// The text of file `f`, read with more arguments.
fn read(content: &str, more: Value) -> String {
    let dir = Dir::with(&[("f", content)]);
    dir.text(&Read, arguments(more))
}

fn arguments(more: Value) -> Value {
    let mut arguments = json!({"path": "f"});
    if let (Some(all), Value::Object(more)) = (arguments.as_object_mut(), more) {
        all.extend(more);
    }
    arguments
}

#[test]
fn a_file_is_shown_as_it_is() {
    // extensions §8.2
    for text in ["", "a", "a\n", "\u{feff}a\r\nb\rc\n\n", "é\0x"] {
        assert_eq!(read(text, json!({})), text);
    }
}

#[test]
fn chunk_edges_and_broken_bytes_do_not_show() {
    // T07
    let mut dir = Dir::new();
    let bytes = ["👩‍👩‍👧 é\n".as_bytes(), b"\xff\xc3\n"].concat();
    dir.put("f", &bytes);
    for chunk in 1..20 {
        dir.chunk = chunk;
        let text = dir.text(&Read, json!({"path": "f"}));
        assert_eq!(text, "👩‍👩‍👧 é\n\u{fffd}\u{fffd}\n");
    }
}

#[test]
fn exactly_2000_lines_are_whole_and_one_more_is_cut() {
    assert_eq!(read(&lines(2000), json!({})), lines(2000));
    let cut = read(&lines(2001), json!({}));
    let expected = lines(2000) + "\n[Lines 1-2000 of 2001. Read on with offset=2001.]";
    assert_eq!(cut, expected);
    assert_eq!(read(&lines(2001), json!({"offset": 2001})), "line 2001\n");
}

#[test]
fn exactly_50_kib_are_whole_and_one_byte_more_is_cut_before_its_line() {
    // T07: the limit falls on each byte of a character in turn
    for shift in 0..4 {
        let first = format!("{}\n", "x".repeat(shift));
        let rest = MAX_BYTES - first.len();
        let second = "🦀".repeat(rest / 4) + &"y".repeat(rest % 4);
        let exact = first.clone() + &second;
        assert_eq!(exact.len(), MAX_BYTES);
        assert_eq!(read(&exact, json!({})), exact);
        let note = "\n[Lines 1-1 of 2, as many as fit into 50.0KB. Read on with offset=2.]";
        let expected = if shift == 0 {
            note.trim_start().to_owned()
        } else {
            first + note
        };
        assert_eq!(read(&(exact + "z"), json!({})), expected);
    }
}

#[test]
fn a_first_line_over_the_limit_has_a_shell_command_for_it() {
    let long = format!("a\n{}\nb\n", "x".repeat(MAX_BYTES + 1));
    let dir = Dir::with(&[("it's", &long), ("f", &long)]);
    let text = dir.text(&Read, json!({"path": "it's", "offset": 2}));
    let quoted = format!(r"'{}/it'\''s'", dir.path.display());
    let expected = format!(
        "[Line 2 has 50.0KB, more than the 50.0KB that fit. See a part of it with a shell: \
         sed -n '2p' {quoted} | head -c 51200]"
    );
    assert_eq!(text, expected);
    let details = dir.details(&Read, json!({"path": "f", "offset": 2}));
    assert_eq!(details["truncation"]["firstLineExceedsLimit"], true);
    assert_eq!(details["truncation"]["content"], "");
}

#[test]
fn the_selection_counts_lines_from_one() {
    let show = |more| read("a\nb\nc\nd\n", more);
    assert_eq!(show(json!({"offset": 3})), "c\nd\n");
    assert_eq!(show(json!({"offset": 3, "limit": 2})), "c\nd\n");
    assert_eq!(show(json!({"offset": 0, "limit": 4})), "a\nb\nc\nd\n");
    assert_eq!(
        show(json!({"offset": 2, "limit": 1})),
        "b\n\n[2 more lines. Read on with offset=3.]"
    );
    assert_eq!(
        show(json!({"limit": 3})),
        "a\nb\nc\n\n[1 more line. Read on with offset=4.]"
    );
    assert_eq!(
        show(json!({"limit": 0})),
        "[4 more lines. Read on with offset=1.]"
    );
}

#[test]
fn odd_limits_are_those_of_a_slice() {
    let show = |more| read("a\nb\nc\nd\n", more);
    assert_eq!(
        show(json!({"limit": -1})),
        "a\nb\nc\n\n[1 more line. Read on with offset=4.]"
    );
    assert_eq!(
        show(json!({"limit": -9})),
        "[4 more lines. Read on with offset=1.]"
    );
    assert_eq!(
        show(json!({"offset": 2.5, "limit": 1.5})),
        "b\nc\n\n[1 more line. Read on with offset=4.]"
    );
    assert_eq!(show(json!({"offset": -3})), "a\nb\nc\nd\n");
}

#[test]
fn an_offset_past_the_end_is_an_error_with_the_total() {
    let dir = Dir::with(&[("f", "a\nb\n"), ("empty", "")]);
    let error = dir.error(&Read, json!({"path": "f", "offset": 3}));
    assert_eq!(error, "offset 3 is past the end of f, which has 2 lines.");
    let error = dir.error(&Read, json!({"path": "empty", "offset": 2}));
    assert_eq!(
        error,
        "offset 2 is past the end of empty, which has 0 lines."
    );
    assert_eq!(dir.text(&Read, json!({"path": "empty", "offset": 1})), "");
}

#[test]
fn the_truncation_record_is_about_the_selection() {
    let dir = Dir::with(&[("f", &lines(3000))]);
    let details = dir.details(&Read, json!({"path": "f", "offset": 501}));
    let cut = &details["truncation"];
    assert_eq!(
        (&cut["totalLines"], &cut["outputLines"]),
        (&json!(2500), &json!(2000))
    );
    assert_eq!(cut["truncatedBy"], "lines");
    assert_eq!(
        dir.details(&Read, json!({"path": "f", "limit": 9})),
        Value::Null
    );
}

#[test]
fn programs_get_the_text() {
    let dir = Dir::with(&[("f", "a\nb\n")]);
    let result = dir.run(&Read, json!({"path": "f", "limit": 1})).unwrap();
    let text = "a\n\n[1 more line. Read on with offset=2.]";
    assert_eq!(result, ToolResult::text(text).with_structured(json!(text)));
}

#[test]
fn names_that_macos_gives_are_found() {
    // extensions §8.1
    for (on_disk, asked) in [
        ("Shot 9.41\u{202f}AM.txt", "Shot 9.41 AM.txt"),
        ("e\u{301}.txt", "\u{e9}.txt"),
        ("it\u{2019}s", "it's"),
        ("it\u{2019}s e\u{301}", "it's \u{e9}"),
    ] {
        let dir = Dir::with(&[(on_disk, "found")]);
        assert_eq!(dir.text(&Read, json!({"path": asked})), "found", "{asked}");
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    let dir = Dir::with(&[("d/x", "")]);
    let error = dir.error(&Read, json!({"path": "d"}));
    assert_eq!(
        error,
        "d is a directory. List it with ls or a shell command."
    );
    let error = dir.run(&Read, json!({"path": "x"})).unwrap_err();
    assert!(error.is(code::NOT_FOUND) && error.message.starts_with("x does not exist."));
}

#[test]
fn an_abort_ends_the_reading() {
    let mut dir = Dir::with(&[("f", &lines(100))]);
    dir.cancel_at = "read";
    assert_eq!(
        dir.run(&Read, json!({"path": "f"})),
        Err(Error::cancelled())
    );
}

#[test]
fn one_file_costs_two_calls_of_the_host() {
    let dir = Dir::with(&[("f", &lines(100))]);
    dir.text(&Read, json!({"path": "f"}));
    assert_eq!(dir.log(), ["stat f", "read f"]);
}

/// A 2x1 picture.
fn png() -> Vec<u8> {
    let picture = ::image::RgbImage::from_pixel(2, 1, ::image::Rgb([1, 2, 3]));
    let mut bytes = std::io::Cursor::new(Vec::new());
    picture
        .write_to(&mut bytes, ::image::ImageFormat::Png)
        .unwrap();
    bytes.into_inner()
}

#[test]
fn an_image_is_a_note_and_a_picture() {
    let dir = Dir::new();
    dir.put("f", &png());
    let result = dir.run(&Read, json!({"path": "f", "offset": 7})).unwrap();
    let data = BASE64.encode(png());
    let note = "Image file (image/png), 2x1.";
    let picture = Image {
        data: data.clone(),
        mime_type: "image/png".to_owned(),
        ..Image::default()
    };
    assert_eq!(
        result.content,
        [Content::text(note), Content::Image(picture)]
    );
    assert_eq!(result.details, None);
    let structured = json!({"type": "image", "data": data, "mimeType": "image/png", "note": note});
    assert_eq!(result.structured_content, Some(structured));
}

#[test]
fn a_model_without_images_is_told_in_the_details() {
    let mut dir = Dir::new();
    dir.put("f", &png());
    dir.scene.images = false;
    let details = dir.details(&Read, json!({"path": "f"}));
    assert_eq!(details, json!({"imageUnsupportedByModel": true}));
}

#[test]
fn an_image_obeys_the_limits_of_the_model() {
    let mut dir = Dir::new();
    dir.put("f", &png());
    dir.scene.image_limits = json!({"resize": {"maxWidth": 1}});
    let result = dir.run(&Read, json!({"path": "f"})).unwrap();
    let note = result.structured_content.unwrap()["note"].clone();
    assert!(note.as_str().unwrap().contains("Shown at 1x1"), "{note}");
}

#[test]
fn a_broken_image_is_a_note_only() {
    let dir = Dir::new();
    dir.put("f", &png()[..50]);
    let text = dir.text(&Read, json!({"path": "f"}));
    assert!(
        text.starts_with("Image file (image/png), left out: it cannot be decoded"),
        "{text}"
    );
}
