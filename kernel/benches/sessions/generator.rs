//! Sessions as people have them, in any size: questions, answers with thinking and tool calls,
//! results full of code and logs, and now and then a branch, a compaction, an edit, a label. The
//! same seed writes the same bytes. Lines are put together from prepared pieces without a JSON
//! library, so a file takes about as long as its copy would.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use pliant_kernel::tree::iso_from_ms;

use crate::text::{Dice, Pool};

/// Entries between two compactions, about.
const COMPACT_EVERY: usize = 300;
/// What a compaction keeps, about.
const KEEP_ENTRIES: usize = 40;
/// 2026-01-01.
const FIRST_MS: i64 = 1_767_225_600_000;

const USAGE: &str = r#"{"input":5120,"output":412,"cacheRead":88200,"cacheWrite":1024,"totalTokens":94756,"cost":{"input":0.01536,"output":0.00618,"cacheRead":0.02646,"cacheWrite":0.00384,"total":0.05184}}"#;

/// What was written.
#[derive(Debug)]
pub struct Written {
    /// Of the file.
    pub bytes: usize,
    /// Without the header.
    pub entries: usize,
    /// Leaf of a branch that was left about halfway.
    pub other_leaf: String,
}

/// Writes a session of about this size (at least a few entries) to a new file.
pub fn write_session(path: &Path, bytes: usize, seed: u64) -> io::Result<Written> {
    let mut session = Generator::new(File::create(path)?, bytes, seed);
    session.header()?;
    session.setup()?;
    while session.written < bytes {
        session.turn()?;
        session.between_turns()?;
    }
    session.turn()?;
    session.file.flush()?;
    Ok(Written {
        bytes: session.written,
        entries: session.entries,
        other_leaf: session.other_leaf,
    })
}

struct Generator {
    file: BufWriter<File>,
    line: String,
    pool: Pool,
    dice: Dice,
    aim: usize,
    written: usize,
    entries: usize,
    now_ms: i64,
    /// Root to leaf.
    path: Vec<u32>,
    /// Where on the path a user spoke.
    turns: Vec<usize>,
    since_compaction: usize,
    calls: usize,
    other_leaf: String,
}

impl Generator {
    fn new(file: File, aim: usize, seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        Self {
            file: BufWriter::with_capacity(1 << 20, file),
            line: String::with_capacity(1 << 16),
            pool: Pool::new(&mut dice),
            dice,
            aim,
            written: 0,
            entries: 0,
            now_ms: FIRST_MS,
            path: Vec::new(),
            turns: Vec::new(),
            since_compaction: 0,
            calls: 0,
            other_leaf: String::new(),
        }
    }

    fn header(&mut self) -> io::Result<()> {
        let id = format!("0199aaaa-0000-7000-8000-{:012x}", self.dice.roll() >> 16);
        let time = iso_from_ms(self.now_ms);
        self.line = format!(
            r#"{{"type":"session","version":3,"id":"{id}","timestamp":"{time}","cwd":"/work/demo"}}"#
        );
        self.end_line()
    }

    /// What a session starts with.
    fn setup(&mut self) -> io::Result<()> {
        self.model_change()?;
        self.thinking_level_change()?;
        self.system_message()
    }

    /// A question and everything up to its answer.
    fn turn(&mut self) -> io::Result<()> {
        self.turns.push(self.path.len());
        self.user_message()?;
        for _ in 0..self.dice.between(1, 9) {
            let calls = if self.dice.one_in(5) { 3 } else { 1 };
            self.answer(calls)?;
            for call in self.calls - calls..self.calls {
                self.tool_result(call)?;
            }
        }
        self.answer(0)
    }

    /// What a user and extensions do while the model rests.
    fn between_turns(&mut self) -> io::Result<()> {
        self.now_ms += 60_000;
        if self.since_compaction > COMPACT_EVERY {
            self.compaction()?;
        } else if self.dice.one_in(25) {
            self.go_back()?;
        }
        match self.dice.below(24) {
            0 => self.model_change(),
            1 => self.thinking_level_change(),
            2 => self.label(),
            3 => self.session_name(),
            4 => self.extension_state(),
            5 => self.extension_message(),
            6 => self.context_edit(),
            7 => self.usage(),
            8 => self.command_of_user(),
            _ => Ok(()),
        }
    }

    /// Leaves the branch; mostly for a recent turn, sometimes for one far back.
    fn go_back(&mut self) -> io::Result<()> {
        let turns = self.turns.len();
        let back = if self.dice.one_in(12) { turns } else { 12 };
        let to = turns - 1 - self.dice.below(back.min(turns));
        if to == 0 {
            return Ok(());
        }
        if self.other_leaf.is_empty() || self.written < self.aim / 2 {
            self.other_leaf = self.path.last().map(|id| hex(*id)).unwrap_or_default();
        }
        let from = hex(*self.path.last().unwrap_or(&0));
        self.path.truncate(self.turns[to]);
        self.turns.truncate(to);
        if self.dice.one_in(2) {
            self.begin("branch_summary");
            self.push(&[r#","fromId":""#, &from, r#"","summary":""#]);
            self.pool.prose(&mut self.dice, 900, &mut self.line);
            self.push(&[r#"","fromHook":false,"usage":"#, USAGE, "}"]);
            self.end_entry()?;
        }
        Ok(())
    }
}

/// One kind of entry each.
impl Generator {
    fn system_message(&mut self) -> io::Result<()> {
        self.begin("message");
        self.push(&[r#","message":{"role":"system","content":"","sections":{"preamble":""#]);
        self.pool.prose(&mut self.dice, 6000, &mut self.line);
        self.push(&[r#"","cwd":"/work/demo"},"toolsAdded":["#]);
        for (number, name) in ["read", "write", "edit", "bash", "grep", "find"]
            .iter()
            .enumerate()
        {
            let comma = if number == 0 { "" } else { "," };
            self.push(&[comma, r#"{"name":""#, name, r#"","description":""#]);
            self.pool.prose(&mut self.dice, 400, &mut self.line);
            self.push(&[
                r#"","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}"#,
            ]);
        }
        self.push(&["]"]);
        self.end_message()
    }

    fn user_message(&mut self) -> io::Result<()> {
        let size = self.dice.between(40, 1200);
        self.begin("message");
        self.push(&[r#","message":{"role":"user","content":[{"type":"text","text":""#]);
        self.pool.prose(&mut self.dice, size, &mut self.line);
        self.push(&[r#""}]"#]);
        self.end_message()
    }

    fn answer(&mut self, calls: usize) -> io::Result<()> {
        self.begin("message");
        self.push(&[
            r#","message":{"role":"assistant","content":[{"type":"thinking","thinking":""#,
        ]);
        let size = self.dice.between(60, 1200);
        self.pool.prose(&mut self.dice, size, &mut self.line);
        self.push(&[r#"","thinkingSignature":""#]);
        let size = self.dice.between(200, 900);
        self.pool.signature(&mut self.dice, size, &mut self.line);
        self.push(&[r#""}"#]);
        if calls == 0 || self.dice.one_in(3) {
            self.push(&[r#",{"type":"text","text":""#]);
            let size = if calls == 0 { 1500 } else { 200 };
            self.pool.prose(&mut self.dice, size, &mut self.line);
            self.push(&[r#""}"#]);
        }
        for _ in 0..calls {
            self.call();
        }
        let stop = if calls == 0 { "stop" } else { "toolUse" };
        self.push(&[
            r#"],"api":"anthropic-messages","provider":"anthropic","model":"model-large","usage":"#,
            USAGE,
            r#","stopReason":""#,
            stop,
            r#"""#,
        ]);
        self.end_message()
    }

    fn call(&mut self) {
        let id = call_id(self.calls);
        let path = self.pool.path(&mut self.dice);
        self.push(&[r#",{"type":"toolCall","id":""#, &id]);
        if self.calls.is_multiple_of(4) {
            let (old, new) = (self.dice.between(80, 1500), self.dice.between(80, 2500));
            self.push(&[r#"","name":"edit","arguments":{"path":""#, &path]);
            self.push(&[r#"","oldText":""#]);
            self.pool.code(&mut self.dice, old, &mut self.line);
            self.push(&[r#"","newText":""#]);
            self.pool.code(&mut self.dice, new, &mut self.line);
            self.push(&[r#""}}"#]);
        } else {
            self.push(&[
                r#"","name":"read","arguments":{"path":""#,
                &path,
                r#"","offset":1,"limit":400}}"#,
            ]);
        }
        self.calls += 1;
    }

    fn tool_result(&mut self, call: usize) -> io::Result<()> {
        let size = match self.dice.below(100) {
            0..58 => self.dice.between(150, 1500),
            58..89 => self.dice.between(1500, 6000),
            89..99 => self.dice.between(6000, 16_000),
            _ => self.dice.between(20_000, 50_000),
        };
        let name = if call.is_multiple_of(4) {
            "edit"
        } else {
            "read"
        };
        self.begin("message");
        self.push(&[
            r#","message":{"role":"toolResult","toolCallId":""#,
            &call_id(call),
            r#"","toolName":""#,
            name,
            r#"","content":[{"type":"text","text":""#,
        ]);
        if self.dice.one_in(3) {
            self.pool.log(&mut self.dice, size, &mut self.line);
        } else {
            self.pool.code(&mut self.dice, size, &mut self.line);
        }
        self.push(&[r#""}],"isError":false"#]);
        self.end_message()
    }

    fn command_of_user(&mut self) -> io::Result<()> {
        self.begin("message");
        self.push(&[r#","message":{"role":"bashExecution","command":"cargo test","output":""#]);
        self.pool.log(&mut self.dice, 2000, &mut self.line);
        self.push(&[r#"","exitCode":0,"cancelled":false,"truncated":false"#]);
        self.end_message()
    }

    fn compaction(&mut self) -> io::Result<()> {
        let keep_from = self.path.len().saturating_sub(KEEP_ENTRIES);
        let turn = self.turns.iter().rev().find(|at| **at <= keep_from);
        let kept = hex(self.path[turn.copied().unwrap_or(0)]);
        self.begin("compaction");
        self.push(&[r#","summary":""#]);
        self.pool.prose(&mut self.dice, 4000, &mut self.line);
        self.push(&[
            r#"","firstKeptEntryId":""#,
            &kept,
            r#"","tokensBefore":151200,"details":{"readFiles":[""#,
        ]);
        let path = self.pool.path(&mut self.dice);
        self.push(&[&path, r#""],"modifiedFiles":[]},"usage":"#, USAGE]);
        self.push(&[r#","fromHook":false,"systemMessage":{"role":"system","content":"","sections":{"preamble":""#]);
        self.pool.prose(&mut self.dice, 6000, &mut self.line);
        self.push(&[r#"","cwd":"/work/demo"}"#]);
        self.end_message()?;
        self.since_compaction = 0;
        Ok(())
    }

    fn context_edit(&mut self) -> io::Result<()> {
        let Some(question) = self.turns.last() else {
            return Ok(());
        };
        let target = hex(self.path[*question]);
        self.begin("context_edit");
        self.push(&[r#","targetId":""#, &target, r#"","replacement":"#]);
        if self.dice.one_in(2) {
            self.push(&["null}"]);
        } else {
            self.push(&[r#"{"content":[{"type":"text","text":"left out"}]}}"#]);
        }
        self.end_entry()
    }

    fn model_change(&mut self) -> io::Result<()> {
        let model = ["model-large", "model-small"][self.dice.below(2)];
        self.begin("model_change");
        self.push(&[r#","provider":"anthropic","modelId":""#, model, r#""}"#]);
        self.end_entry()
    }

    fn thinking_level_change(&mut self) -> io::Result<()> {
        let level = ["off", "low", "high"][self.dice.below(3)];
        self.begin("thinking_level_change");
        self.push(&[r#","thinkingLevel":""#, level, r#""}"#]);
        self.end_entry()
    }

    fn label(&mut self) -> io::Result<()> {
        let target = hex(self.path[self.dice.below(self.path.len())]);
        self.begin("label");
        self.push(&[
            r#","targetId":""#,
            &target,
            r#"","label":"before the change"}"#,
        ]);
        self.end_entry()
    }

    fn session_name(&mut self) -> io::Result<()> {
        let number = self.entries.to_string();
        self.begin("session_info");
        self.push(&[r#","name":"Größere Änderung "#, &number, r#""}"#]);
        self.end_entry()
    }

    fn extension_state(&mut self) -> io::Result<()> {
        let path = self.pool.path(&mut self.dice);
        self.begin("custom");
        self.push(&[r#","customType":"todo-list","data":{"items":["#]);
        self.push(&[r#"{"done":true,"text":""#, &path, r#""}]}}"#]);
        self.end_entry()
    }

    fn extension_message(&mut self) -> io::Result<()> {
        self.begin("custom_message");
        self.push(&[r#","customType":"reminder","content":""#]);
        self.pool.prose(&mut self.dice, 500, &mut self.line);
        self.push(&[r#"","display":true}"#]);
        self.end_entry()
    }

    fn usage(&mut self) -> io::Result<()> {
        self.begin("usage");
        self.push(&[
            r#","kind":"title","provider":"anthropic","model":"model-small","usage":"#,
            USAGE,
            "}",
        ]);
        self.end_entry()
    }
}

/// Lines.
impl Generator {
    /// The four fields of every entry, in pi's order.
    fn begin(&mut self, kind: &str) {
        self.now_ms += 700;
        let time = iso_from_ms(self.now_ms);
        let id = hex(self.next_id());
        self.line.clear();
        self.push(&[r#"{"type":""#, kind, r#"","id":""#, &id]);
        match self.path.last().copied() {
            Some(parent) => self.push(&[r#"","parentId":""#, &hex(parent), r#"","#]),
            None => self.push(&[r#"","parentId":null,"#]),
        }
        self.push(&[r#""timestamp":""#, &time, r#"""#]);
    }

    /// Numbers that look drawn and never repeat: an odd factor is a permutation.
    fn next_id(&self) -> u32 {
        let number = u32::try_from(self.entries).unwrap_or(u32::MAX);
        number.wrapping_add(1).wrapping_mul(0x9e37_79b1)
    }

    fn push(&mut self, parts: &[&str]) {
        parts.iter().for_each(|part| self.line.push_str(part));
    }

    fn end_message(&mut self) -> io::Result<()> {
        let time = self.now_ms.to_string();
        self.push(&[r#","timestamp":"#, &time, "}}"]);
        self.end_entry()
    }

    fn end_entry(&mut self) -> io::Result<()> {
        self.path.push(self.next_id());
        self.entries += 1;
        self.since_compaction += 1;
        self.end_line()
    }

    fn end_line(&mut self) -> io::Result<()> {
        self.line.push('\n');
        self.written += self.line.len();
        self.file.write_all(self.line.as_bytes())
    }
}

fn hex(id: u32) -> String {
    format!("{id:08x}")
}

fn call_id(number: usize) -> String {
    format!("toolu_01{number:018}")
}
