//! A writer of a session is killed with SIGKILL at random moments, again and again on the same file:
//! nothing that was acknowledged is lost, and the session goes on (`kernel.md` S12, S13, S16,
//! invariants 2, 3 and 7).
//!
//! The writer is this test program run again. `PLIANT_KILLS=200` sets how often it is killed.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "test code")]

use std::collections::HashMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pliant_kernel::tree::{
    BranchSummary, Compaction, CustomEntry, CustomMessageEntry, Entry, EntryBody, EntryId, Ids,
    ModelChange, OtherEntry, Replacement, SessionTree,
};
use pliant_sdk::message::{AssistantMessage, Content, Message, MessageContent, StopReason};
use serde_json::json;

const FILE: &str = "PLIANT_KILL_FILE";
const SEED: &str = "PLIANT_KILL_SEED";
/// A file that has grown to this is put aside, because every round reads the whole of it.
const LARGEST: u64 = 1 << 20;

#[test]
fn nothing_acknowledged_is_lost_when_the_writer_is_killed() {
    let rounds = std::env::var("PLIANT_KILLS").map_or(20, |kills| kills.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let mut dice = Dice(1);
    let mut session = Session::new(folder.path().join("0.jsonl"));
    let (mut acknowledged, mut torn) = (0, 0);
    for round in 0..rounds {
        let before = session.torn;
        acknowledged += session.round(round, &mut dice);
        torn += session.torn - before;
        if session.size() > LARGEST {
            session = Session::new(folder.path().join(format!("{round}.jsonl")));
        }
    }
    println!("{rounds} kills, {acknowledged} acknowledged entries, {torn} torn lines");
    assert!(acknowledged > rounds, "the writer was killed too early");
}

/// The writer; does nothing unless it is asked for.
#[test]
fn writer() {
    if let Ok(path) = std::env::var(FILE) {
        let seed = std::env::var(SEED).unwrap().parse().unwrap();
        write_until_killed(Path::new(&path), Dice(seed));
    }
}

/// One file and what its writers acknowledged so far.
struct Session {
    path: PathBuf,
    /// Hashes of the lines by id.
    acknowledged: HashMap<String, u64>,
    torn: usize,
}

impl Session {
    fn new(path: PathBuf) -> Self {
        Self {
            path,
            acknowledged: HashMap::new(),
            torn: 0,
        }
    }

    fn size(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }

    /// Lets a writer write, kills it and looks at what is there. Answers how many entries it
    /// acknowledged.
    fn round(&mut self, round: u64, dice: &mut Dice) -> u64 {
        let (mut writer, mut said) = self.start_writer(round);
        // Mostly in the middle of its work, sometimes while it opens the file.
        let after = if dice.one_in(8) { 0 } else { dice.below(25) };
        let mut count = self.note(&mut said, after);
        let pause = dice.below(if after == 0 { 6000 } else { 400 });
        thread::sleep(Duration::from_micros(pause as u64));
        writer.kill().unwrap();
        writer.wait().unwrap();
        count += self.note(&mut said, usize::MAX);
        if self.path.exists() {
            self.check(round);
        } else {
            assert_eq!(count, 0, "round {round}");
        }
        count
    }

    fn start_writer(&self, seed: u64) -> (Child, BufReader<ChildStdout>) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writer", "--nocapture", "--test-threads=1"])
            .env(FILE, &self.path)
            .env(SEED, seed.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        (child, said)
    }

    /// Notes so many acknowledgements, or all until the end. A half one is none.
    fn note(&mut self, said: &mut impl BufRead, at_most: usize) -> u64 {
        let mut count = 0;
        while count < at_most {
            let mut line = String::new();
            if said.read_line(&mut line).unwrap() == 0 || !line.ends_with('\n') {
                break;
            }
            if let ["ack", id, hash] = line.split_whitespace().collect::<Vec<_>>()[..] {
                let hash = hash.parse().unwrap();
                assert_eq!(self.acknowledged.insert(id.to_owned(), hash), None);
                count += 1;
            }
        }
        count as u64
    }

    fn check(&mut self, round: u64) {
        let mut tree = open(&self.path);
        let torn = tree.damage().len();
        assert!(
            torn <= self.torn + 1,
            "round {round}: {:?}",
            tree.damage().last()
        );
        self.torn = torn;
        let mut seen = HashMap::new();
        for entry in tree.entries() {
            let parent = entry.parent();
            assert!(
                parent.is_none_or(|parent| seen.contains_key(parent.as_str())),
                "round {round}: {entry:?}"
            );
            let again = seen.insert(entry.id().to_string(), hash(entry));
            assert_eq!(again, None, "round {round}: {}", entry.id());
        }
        for (id, hash) in &self.acknowledged {
            assert_eq!(seen.get(id), Some(hash), "round {round}: {id} is lost");
        }
        self.goes_on(&mut tree, round);
    }

    /// The next append follows the leaf, and a fresh reader sees it.
    fn goes_on(&mut self, tree: &mut SessionTree, round: u64) {
        let leaf = tree.leaf().cloned();
        let message = Arc::new(Message::user(format!("after kill {round}"), 1));
        let entry = Arc::clone(tree.append_message(message).unwrap());
        let again = SessionTree::read(&self.path, Ids::system()).unwrap();
        assert_eq!(again.leaf(), Some(entry.id()), "round {round}");
        let read = again.entry(entry.id()).unwrap();
        assert_eq!(read.parent(), leaf.as_ref(), "round {round}");
        assert_eq!(read.body(), entry.body(), "round {round}");
        assert_eq!(again.damage().len(), self.torn, "round {round}");
        let id = entry.id().to_string();
        self.acknowledged.insert(id, hash(&entry));
    }
}

fn write_until_killed(path: &Path, mut dice: Dice) {
    let mut out = std::io::stdout().lock();
    // The harness has begun a line.
    out.write_all(b"\n").unwrap();
    let mut tree = open(path);
    // Nothing is in a file before the first message (S11).
    let first = tree.append(user("go on")).unwrap();
    acknowledge(&mut out, first);
    loop {
        let entry = Arc::clone(step(&mut tree, &mut dice));
        acknowledge(&mut out, &entry);
    }
}

fn acknowledge(out: &mut impl Write, entry: &Entry) {
    let line = format!("ack {} {}\n", entry.id(), hash(entry));
    out.write_all(line.as_bytes()).unwrap();
    out.flush().unwrap();
}

fn hash(entry: &Entry) -> u64 {
    let mut hasher = DefaultHasher::new();
    entry.raw().hash(&mut hasher);
    hasher.finish()
}

/// One append of some kind, now and then somewhere else in the tree.
fn step<'a>(tree: &'a mut SessionTree, dice: &mut Dice) -> &'a Arc<Entry> {
    let text = dice.text();
    let some_entry = |tree: &SessionTree, dice: &mut Dice| -> EntryId {
        let entries = tree.entries();
        entries[dice.below(entries.len())].id().clone()
    };
    let body = match dice.below(16) {
        0 => {
            let to = some_entry(tree, dice);
            tree.branch(&to).unwrap();
            user(&text)
        }
        1 => {
            tree.reset_leaf();
            user(&text)
        }
        2 => {
            let to = some_entry(tree, dice);
            let summary = BranchSummary {
                summary: text,
                ..BranchSummary::default()
            };
            return tree.branch_with_summary(Some(&to), summary).unwrap();
        }
        3 => {
            let target = some_entry(tree, dice);
            return tree.set_label(&target, Some("here")).unwrap();
        }
        4 => return tree.set_name(&text).unwrap(),
        5 => {
            let message = Arc::new(Message::user(text, 1));
            let target = tree.append_message(message).unwrap().id().clone();
            return tree.edit_context(&target, Replacement::Omit).unwrap();
        }
        6 => EntryBody::Compaction(Compaction {
            summary: text,
            first_kept_entry_id: Some(some_entry(tree, dice)),
            ..Compaction::default()
        }),
        7 => EntryBody::CustomMessage(CustomMessageEntry {
            content: MessageContent::Text(text),
            ..CustomMessageEntry::default()
        }),
        8 => EntryBody::Custom(CustomEntry {
            custom_type: "ext".into(),
            data: Some(json!({"text": text})),
        }),
        9 => EntryBody::ModelChange(ModelChange {
            provider: "oai".into(),
            model_id: "plain".into(),
        }),
        10 => EntryBody::Other(OtherEntry {
            type_name: "from_later".into(),
            fields: json!({"text": text}).as_object().unwrap().clone(),
        }),
        11..14 => EntryBody::Message(Arc::new(Message::Assistant(AssistantMessage {
            content: vec![Content::text(text)],
            stop_reason: StopReason::Stop,
            ..AssistantMessage::default()
        }))),
        _ => user(&text),
    };
    tree.append(body).unwrap()
}

fn open(path: &Path) -> SessionTree {
    SessionTree::open(path, Path::new("/work/demo"), Ids::system()).unwrap()
}

fn user(text: &str) -> EntryBody {
    EntryBody::Message(Arc::new(Message::user(text, 1)))
}

/// Splitmix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((x ^ (x >> 31)) % end as u64).unwrap()
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Mostly short, one in twenty up to 200 KB.
    fn text(&mut self) -> String {
        let size = if self.one_in(20) { 200_000 } else { 2_000 };
        let words = self.below(size) / 8;
        "wörd\t\"s\n".repeat(words)
    }
}
