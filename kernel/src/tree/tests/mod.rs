//! Behaviour of the session tree at its border: what goes in, what the file holds, what a request
//! would see.

mod append;
mod branches;
mod context;
mod damage;
mod doctor;
mod forks;
mod others;
mod reading;
mod shelf;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use pliant_sdk::message::{AssistantMessage, Content, Message, StopReason, Usage};

use super::*;

/// A folder of its own for one test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("pliant-tree-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A file with this content.
    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(name), content).unwrap();
        self.path(name)
    }

    /// A copy of a session that lies in the repository.
    fn fixture(&self, name: &str) -> PathBuf {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/sessions");
        self.file(name, fs::read(fixtures.join(name)).unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A clock that ticks a second per look from 2026 on, and dice that repeat in every test.
fn ids() -> Ids {
    let (clock, dice) = (AtomicI64::new(1_767_225_600_000), Dice::new(7));
    Ids::new(
        move || clock.fetch_add(1000, Ordering::Relaxed),
        move || u128::from(dice.roll()) << 64 | u128::from(dice.roll()),
    )
}

/// Splitmix64.
struct Dice(AtomicU64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    fn roll(&self) -> u64 {
        let mut x = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&self, end: usize) -> usize {
        usize::try_from(self.roll() % end as u64).unwrap()
    }
}

fn cwd() -> &'static Path {
    Path::new("/work/demo")
}

fn memory() -> SessionTree {
    SessionTree::in_memory(cwd(), None, ids())
}

fn open(path: &Path) -> SessionTree {
    SessionTree::open(path, cwd(), ids()).unwrap()
}

/// What somebody else who reads the file sees of it.
fn again(path: &Path) -> SessionTree {
    SessionTree::read(path, ids()).unwrap()
}

fn user(text: &str) -> EntryBody {
    EntryBody::Message(Arc::new(Message::user(text, 1_767_225_600_000)))
}

fn assistant(text: &str) -> EntryBody {
    EntryBody::Message(Arc::new(Message::Assistant(AssistantMessage {
        content: vec![Content::text(text)],
        api: "openai-completions".into(),
        provider: "oai".into(),
        model: "plain".into(),
        usage: Usage {
            input: 10,
            output: 1,
            total_tokens: 11,
            ..Usage::default()
        },
        stop_reason: StopReason::Stop,
        timestamp: 1_767_225_600_000,
        ..AssistantMessage::default()
    })))
}

fn system(json: serde_json::Value) -> EntryBody {
    let mut message = serde_json::json!({"role": "system", "content": "", "timestamp": 5});
    message
        .as_object_mut()
        .unwrap()
        .extend(json.as_object().unwrap().clone());
    EntryBody::Message(Arc::new(Message::from(message)))
}

fn custom_message(text: &str) -> EntryBody {
    EntryBody::CustomMessage(CustomMessageEntry {
        custom_type: "ext".into(),
        content: pliant_sdk::message::MessageContent::Text(text.into()),
        display: true,
        details: None,
    })
}

fn compaction(summary: &str, first_kept: Option<&EntryId>) -> EntryBody {
    EntryBody::Compaction(Compaction {
        summary: summary.into(),
        first_kept_entry_id: first_kept.cloned(),
        tokens_before: 100,
        ..Compaction::default()
    })
}

fn add(tree: &mut SessionTree, body: EntryBody) -> EntryId {
    tree.append(body).unwrap().id().clone()
}

/// A session of entries `1`, `2` … each under the one before.
fn chain(count: usize) -> Vec<String> {
    let mut lines = vec![
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/work/demo"}"#
            .to_owned(),
    ];
    for number in 1..=count {
        let parent = if number == 1 {
            "null".to_owned()
        } else {
            format!("\"{}\"", number - 1)
        };
        lines.push(format!(
            r#"{{"type":"message","id":"{number}","parentId":{parent},"timestamp":"t","message":{{"role":"user","content":"{number}"}}}}"#
        ));
    }
    lines
}

/// A session on disk with one exchange.
fn stored(folder: &Folder) -> (SessionTree, PathBuf) {
    let mut tree = SessionTree::create(&folder.0, cwd(), None, ids());
    add(&mut tree, user("hi"));
    add(&mut tree, assistant("hello"));
    let path = tree.path().unwrap().to_owned();
    (tree, path)
}

fn ids_of(tree: &SessionTree) -> Vec<&str> {
    tree.entries()
        .iter()
        .map(|entry| entry.id().as_str())
        .collect()
}

/// A context as text: role and content of each message.
fn shown(messages: &[Arc<Message>]) -> Vec<String> {
    messages
        .iter()
        .map(|message| format!("{}: {}", message.role(), text_of(message)))
        .collect()
}

fn text_of(message: &Message) -> String {
    use pliant_sdk::message::joined_text;
    match message {
        Message::System(m) => {
            let sections = m.sections.iter().flatten().map(|(k, v)| format!("{k}={v}"));
            sections.collect::<Vec<_>>().join(" ")
        }
        Message::User(m) => m.content.joined_text(""),
        Message::Custom(m) => m.content.joined_text(""),
        Message::Assistant(m) => joined_text(&m.content, ""),
        Message::ToolResult(m) => joined_text(&m.content, ""),
        Message::CompactionSummary(m) => m.summary.clone(),
        Message::BranchSummary(m) => m.summary.clone(),
        _ => String::new(),
    }
}

fn raw_lines(tree: &SessionTree) -> Vec<String> {
    tree.entries()
        .iter()
        .map(|entry| entry.raw().into_owned())
        .collect()
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Everything a caller can see of a tree, for "as before" and "the same again".
fn snapshot(tree: &SessionTree) -> String {
    let mut labels: Vec<_> = tree.labels.iter().collect();
    labels.sort_by_key(|(id, _)| id.as_str());
    format!(
        "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
        raw_lines(tree),
        tree.leaf(),
        labels,
        tree.name(),
        tree.context(),
        tree.settings(),
        tree.usage_totals(),
    )
}
