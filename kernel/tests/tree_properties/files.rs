//! Files as they were written by others, cut off, or damaged: what is readable is read, what is
//! there stays, and the session goes on.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use pliant_kernel::tree::{EntryBody, Position, SessionTree};
use pliant_sdk::message::Message;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::session::line;
use crate::{cases, cwd, ids, open, read_session, values};

const HEADER: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/work/demo"}"#;

proptest! {
    #![proptest_config(cases(96))]

    /// Invariants 6 and 7
    #[test]
    fn a_file_cut_anywhere_loses_the_torn_line_and_goes_on(
        bodies in vec(values::body(), 1..8),
        cuts in vec(any::<Index>(), 8),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("whole.jsonl");
        let mut tree = open(&path, 1);
        tree.append_message(Arc::new(Message::user("first", 1))).unwrap();
        for body in bodies {
            tree.append(body).unwrap();
        }
        drop(tree);
        let bytes = fs::read(&path).unwrap();
        let ends: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').collect();
        let cuts = cuts.iter().map(|cut| cut.index(bytes.len() + 1));
        // The places where off by one hurts.
        let edges = ends.iter().flat_map(|end| [end - 1, *end, end + 1]);
        for cut in cuts.chain(edges).chain([0]) {
            check_cut(&bytes, &ends, cut, folder.path());
        }
    }

    /// Invariant 7, S15, S16
    #[test]
    fn a_damaged_file_is_read_as_far_as_it_can_be_and_goes_on(
        bodies in vec(values::body(), 0..6),
        wounds in vec(wound(), 1..5),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("whole.jsonl");
        let mut tree = open(&path, 1);
        tree.append_message(Arc::new(Message::user("first", 1))).unwrap();
        for body in bodies {
            tree.append(body).unwrap();
        }
        drop(tree);
        let mut bytes = fs::read(&path).unwrap();
        for wound in &wounds {
            wound.inflict(&mut bytes);
        }
        read_session::check(&bytes, folder.path());
    }

    /// S18: another process wrote to the file meanwhile, perhaps half a line.
    #[test]
    fn an_append_behind_somebody_elses_bytes_is_readable(
        theirs in prop_oneof![
            vec(values::body(), 1..3).prop_map(Theirs::Entries),
            "[ -~]{1,20}\n?".prop_map(Theirs::Bytes),
            Just(Theirs::Bytes(r#"{"type":"mess"#.to_owned())),
        ],
        mine in vec(values::body(), 1..4),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shared.jsonl");
        let mut tree = open(&path, 1);
        tree.append_message(Arc::new(Message::user("first", 1))).unwrap();
        let mut lines: Vec<String> = tree.entries().iter().map(line).collect();
        match theirs {
            Theirs::Entries(bodies) => {
                let copy = folder.path().join("copy.jsonl");
                fs::copy(&path, &copy).unwrap();
                let mut other = open(&copy, 2);
                for body in bodies {
                    lines.push(line(other.append(body).unwrap()));
                }
                append_to(&path, &fs::read(&copy).unwrap()[fs::read(&path).unwrap().len()..]);
            }
            Theirs::Bytes(bytes) => append_to(&path, bytes.as_bytes()),
        }
        let shared = fs::read(&path).unwrap();
        for body in mine {
            lines.push(line(tree.append(body).unwrap()));
        }
        drop(tree);
        let file = fs::read(&path).unwrap();
        let added = file.strip_prefix(&*shared).unwrap();
        assert_eq!(added.starts_with(b"\n"), !shared.ends_with(b"\n"));
        let again = open(&path, 3);
        assert_eq!(again.entries().iter().map(line).collect::<Vec<_>>(), lines);
        assert!(again.damage().len() <= 1);
    }

    /// Invariant 6: what others wrote stays byte for byte, also in copies.
    #[test]
    fn unknown_types_fields_and_spellings_are_kept(lines in vec(foreign_line(), 1..6)) {
        let lines: Vec<String> = lines
            .iter()
            .enumerate()
            .map(|(at, line)| line.chained(at))
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("foreign.jsonl");
        let text = format!("{HEADER}\n{}\n", lines.join("\n"));
        fs::write(&path, &text).unwrap();
        let mut tree = open(&path, 2);
        let raw = |tree: &SessionTree| tree.entries().iter().map(line).collect::<Vec<_>>();
        assert_eq!(raw(&tree), lines);
        assert!(tree.damage().is_empty());
        assert_eq!(tree.export_jsonl().unwrap(), text);
        let leaf = tree.leaf().unwrap().clone();
        let clone = tree.fork(&leaf, Position::At).unwrap().tree;
        assert_eq!(raw(&clone), lines);
        drop(clone);
        let elsewhere = folder.path().join("elsewhere");
        let copy = SessionTree::copy_into(&path, &elsewhere, cwd(), None, ids(3)).unwrap();
        assert_eq!(raw(&copy), lines);
        tree.append_message(Arc::new(Message::user("mine", 1))).unwrap();
        assert!(fs::read_to_string(&path).unwrap().starts_with(&text));
    }

    /// Invariant 6, S19
    #[test]
    fn a_migrated_file_is_not_migrated_again(
        version in prop_oneof![Just(""), Just(r#""version":1,"#), Just(r#""version":2,"#)],
        lines in vec(old_line(), 0..8),
        torn in any::<Option<Index>>(),
    ) {
        let mut lines: Vec<String> = lines
            .iter()
            .enumerate()
            .map(|(at, line)| line.numbered(at, version.contains('2')))
            .collect();
        if let Some(torn) = torn {
            let at = torn.index(lines.len() + 1);
            lines.insert(at, r#"{"type":"mess"#.to_owned());
        }
        let header = format!(r#"{{"type":"session",{version}"id":"old","x-more":1.50,"cwd":"/w"}}"#);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.jsonl");
        fs::write(&path, format!("{header}\n{}\n", lines.join("\n"))).unwrap();
        let first = open(&path, 4);
        let migrated = fs::read_to_string(&path).unwrap();
        assert_eq!(first.entries().len(), lines.len() - usize::from(torn.is_some()));
        assert_eq!(first.damage().len(), usize::from(torn.is_some()));
        let numbers = |text: &str| text.matches("1.50").count();
        assert_eq!(numbers(&migrated), lines.len() - usize::from(torn.is_some()) + 1);
        assert!(!migrated.contains("hookMessage") && !migrated.contains("firstKeptEntryIndex"));
        for (at, entry) in first.entries().iter().enumerate() {
            let parent = at.checked_sub(1).map(|at| first.entries()[at].id());
            assert_eq!(entry.parent(), parent);
        }
        let lines: Vec<String> = first.entries().iter().map(line).collect();
        drop(first);
        let second = open(&path, 5);
        assert_eq!(fs::read_to_string(&path).unwrap(), migrated);
        assert_eq!(second.entries().iter().map(line).collect::<Vec<_>>(), lines);
        drop(second);
        read_session::check(migrated.as_bytes(), folder.path());
    }

    /// S20: the later of two lines with one id wins, missing parents and circles end the path.
    #[test]
    fn any_graph_of_parents_is_a_tree(
        links in vec((0..6_u8, proptest::option::of(0..8_u8)), 1..12),
    ) {
        let text = |at: usize, id: u8, parent: Option<u8>| {
            let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}\""));
            format!(
                r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-01-01T00:00:0{}.000Z","message":{{"role":"user","content":"{at}","timestamp":1}}}}"#,
                9 - at % 10
            )
        };
        let lines = links.iter().enumerate().map(|(at, (id, parent))| text(at, *id, *parent));
        let lines: Vec<String> = lines.collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph.jsonl");
        let file = format!("{HEADER}\n{}\n", lines.join("\n"));
        fs::write(&path, &file).unwrap();
        let tree = open(&path, 6);
        assert_eq!(tree.entries().iter().map(line).collect::<Vec<_>>(), lines);
        let last: HashMap<u8, usize> =
            links.iter().enumerate().map(|(at, (id, _))| (*id, at)).collect();
        for (id, at) in &last {
            let entry = tree.entry(&id.to_string().into()).unwrap();
            assert_eq!(line(entry), lines[*at]);
            let (mut path, mut next) = (Vec::new(), Some(*at));
            while let Some(at) = next.filter(|at| !path.contains(at)) {
                path.push(at);
                next = links[at].1.and_then(|parent| last.get(&parent).copied());
            }
            let path = path.iter().rev().map(|at| lines[*at].clone());
            assert!(tree.get_branch(entry.id()).iter().map(line).eq(path));
        }
        let nodes = tree.nodes();
        for node in &nodes.all {
            let times: Vec<&str> =
                node.children.iter().map(|child| nodes.all[*child].entry.timestamp()).collect();
            assert!(times.is_sorted());
        }
        drop(tree);
        read_session::check(file.as_bytes(), folder.path());
    }
}

fn check_cut(bytes: &[u8], ends: &[usize], cut: usize, folder: &Path) {
    let left = &bytes[..cut];
    read_session::check(left, folder);
    let path = folder.join("cut.jsonl");
    fs::write(&path, left).unwrap();
    // A line without its line feed is whole all the same.
    let whole = ends.iter().filter(|end| **end <= cut).count();
    let opened = SessionTree::open(&path, cwd(), ids(2));
    match (opened, cut, whole) {
        (Ok(tree), 0, _) => assert!(tree.entries().is_empty()),
        (Ok(tree), _, 1..) => {
            assert_eq!(tree.entries().len(), whole - 1);
            let torn = !ends.contains(&cut) && !ends.contains(&(cut - 1));
            assert_eq!(tree.damage().len(), usize::from(torn));
        }
        (Err(_), 1.., 0) => assert_eq!(fs::read(&path).unwrap(), left),
        (opened, ..) => panic!("cut at {cut}: {:?}", opened.map(drop)),
    }
}

#[derive(Debug, Clone)]
enum Theirs {
    Entries(Vec<EntryBody>),
    Bytes(String),
}

fn append_to(path: &Path, bytes: &[u8]) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

/// Something that happens to bytes.
#[derive(Debug, Clone)]
enum Wound {
    Change(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    /// A stretch is there once more, somewhere else.
    Repeat(Index, usize, Index),
    Cut(Index),
}

fn wound() -> impl Strategy<Value = Wound> {
    let at = any::<Index>;
    let byte = prop_oneof![
        any::<u8>(),
        proptest::sample::select(b"\n\r\"\\{}[]:,0\0\xff".to_vec()),
    ];
    prop_oneof![
        (at(), byte.clone()).prop_map(|(at, byte)| Wound::Change(at, byte)),
        (at(), vec(byte, 1..9)).prop_map(|(at, bytes)| Wound::Insert(at, bytes)),
        (at(), 1..300_usize).prop_map(|(at, length)| Wound::Remove(at, length)),
        (at(), 1..300_usize, at()).prop_map(|(at, length, to)| Wound::Repeat(at, length, to)),
        at().prop_map(Wound::Cut),
    ]
}

impl Wound {
    fn inflict(&self, bytes: &mut Vec<u8>) {
        let size = bytes.len();
        let at = |index: &Index| index.index(size + 1);
        match self {
            Self::Change(index, byte) => {
                if let Some(place) = bytes.get_mut(at(index)) {
                    *place = *byte;
                }
            }
            Self::Insert(index, new) => {
                bytes.splice(at(index)..at(index), new.iter().copied());
            }
            Self::Remove(index, length) => {
                bytes.drain(at(index)..size.min(at(index) + length));
            }
            Self::Repeat(index, length, to) => {
                let piece = bytes[at(index)..size.min(at(index) + length)].to_vec();
                bytes.splice(at(to)..at(to), piece);
            }
            Self::Cut(index) => bytes.truncate(at(index)),
        }
    }
}

/// A line that another program wrote, in its own order and spelling.
#[derive(Debug, Clone)]
struct ForeignLine {
    kind: String,
    space: &'static str,
    fields: Vec<(String, String)>,
    head_at: Index,
}

impl ForeignLine {
    fn chained(&self, at: usize) -> String {
        let parent = at
            .checked_sub(1)
            .map_or("null".into(), |at| format!("\"e{at}\""));
        let mut fields: Vec<String> = self
            .fields
            .iter()
            .map(|(name, value)| format!("\"{name}\":{value}"))
            .collect();
        let head = [
            format!(r#""type":"{}""#, self.kind),
            format!(r#""id":"e{at}""#),
            format!(r#""parentId":{parent}"#),
            r#""timestamp":"2026-01-01T00:00:00.000Z""#.to_owned(),
        ];
        let place = self.head_at.index(fields.len() + 1);
        fields.splice(place..place, head);
        let space = self.space;
        format!("{{{space}{}}}", fields.join(&format!("{space},{space}")))
    }
}

fn foreign_line() -> impl Strategy<Value = ForeignLine> {
    let spelling = prop_oneof![
        Just("1.50".to_owned()),
        Just("-0".to_owned()),
        Just("1E5".to_owned()),
        Just("123456789012345678901234567890".to_owned()),
        Just(r#""\ud800 \u0041 \/""#.to_owned()),
        Just(r#"{"a":1,"a":2, "b" : [ ]}"#.to_owned()),
        values::value().prop_map(|value| value.to_string()),
    ];
    let message = values::message().prop_map(|m| serde_json::to_string(&m).unwrap());
    let fields = (message, vec(("x-[a-z]{1,2}", spelling), 0..4)).prop_map(|(message, extra)| {
        let mut fields = vec![("message".to_owned(), message)];
        fields.extend(extra);
        fields
    });
    let kind = prop_oneof![
        2 => Just("message".to_owned()),
        1 => "later-[a-z]{0,3}",
    ];
    let space = proptest::sample::select(vec!["", " ", "\t"]);
    (kind, space, fields, any::<Index>()).prop_map(|(kind, space, fields, head_at)| ForeignLine {
        kind,
        space,
        fields,
        head_at,
    })
}

/// A record of version 1 or 2.
#[derive(Debug, Clone)]
enum OldLine {
    User(String),
    Hook(String),
    Compaction(usize),
}

impl OldLine {
    fn numbered(&self, at: usize, chained: bool) -> String {
        let parent = at
            .checked_sub(1)
            .map_or("null".into(), |at| format!("\"e{at}\""));
        let chain = if chained {
            format!(r#""id":"e{at}","parentId":{parent},"#)
        } else {
            String::new()
        };
        let message = |role: &str, text: &str| {
            let text = serde_json::to_string(text).unwrap();
            format!(r#""type":"message","message":{{"role":"{role}","content":{text}}}"#)
        };
        let fields = match self {
            Self::User(text) => message("user", text),
            Self::Hook(text) => message("hookMessage", text),
            Self::Compaction(_) if chained => {
                r#""type":"compaction","summary":"s","firstKeptEntryId":"e0""#.to_owned()
            }
            Self::Compaction(index) => {
                format!(r#""type":"compaction","summary":"s","firstKeptEntryIndex":{index}"#)
            }
        };
        format!(r#"{{{chain}"timestamp":"2025-01-01T00:00:00.000Z","x-more":1.50,{fields}}}"#)
    }
}

fn old_line() -> impl Strategy<Value = OldLine> {
    let plain = "[a-z \"\\\\é]{0,8}";
    prop_oneof![
        plain.prop_map(OldLine::User),
        plain.prop_map(OldLine::Hook),
        (0..12_usize).prop_map(OldLine::Compaction),
    ]
}
