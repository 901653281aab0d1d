//! Everything a process started, and the end of it. Groups alone are not enough: a descendant may lead
//! one of its own. What is not here: waiting for the dead.

use std::collections::HashSet;
use std::fs;
use std::io;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Everything a process started.
pub(super) struct Tree {
    /// Pid of the first one, and id of the group it leads.
    pub(super) leader: Option<u32>,
    /// The output pipe, as links in `/proc/<pid>/fd` name it.
    pub(super) pipe: Option<String>,
}

impl Tree {
    /// Sends SIGKILL to the group, to the descendants that moved to groups of their own, and to
    /// orphans that still write to the pipe. Without `/proc` only the group is reached.
    pub(super) fn kill(&self) {
        let Some(leader) = self.leader.and_then(pid) else {
            return;
        };
        let mut members = HashSet::new();
        // Stopped processes cannot fork; a second look finds children born during the first.
        for _ in 0..4 {
            let born: Vec<u32> = self.look(&members);
            if born.is_empty() {
                break;
            }
            for member in born.iter().copied().filter_map(pid) {
                let _ = kill_process(member, Signal::STOP);
            }
            members.extend(born);
        }
        let _ = kill_process_group(leader, Signal::KILL);
        for member in members.into_iter().filter_map(pid) {
            let _ = kill_process(member, Signal::KILL);
        }
    }

    /// Members of the tree that are not among the known ones.
    fn look(&self, known: &HashSet<u32>) -> Vec<u32> {
        let all: Vec<Entry> = processes();
        let mut members: HashSet<u32> = known.clone();
        let belongs = |entry: &Entry| {
            Some(entry.pid) == self.leader
                || Some(entry.group) == self.leader
                || self.writes_to_pipe(entry.pid)
        };
        members.extend(all.iter().filter(|e| belongs(e)).map(|e| e.pid));
        loop {
            let before = members.len();
            for entry in &all {
                if members.contains(&entry.parent) {
                    members.insert(entry.pid);
                }
            }
            if members.len() == before {
                break;
            }
        }
        members.difference(known).copied().collect()
    }

    fn writes_to_pipe(&self, pid: u32) -> bool {
        let is_pipe = |fd: u32| {
            fs::read_link(format!("/proc/{pid}/fd/{fd}"))
                .is_ok_and(|target| self.pipe.as_deref().is_some_and(|name| target == *name))
        };
        is_pipe(1) || is_pipe(2)
    }
}

/// A line of the process table.
struct Entry {
    pid: u32,
    parent: u32,
    group: u32,
}

/// The process table, without this process and the first one; empty where there is no `/proc`.
fn processes() -> Vec<Entry> {
    let Ok(folder) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    folder
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != 1 && *pid != std::process::id())
        .filter_map(entry_of)
        .collect()
}

fn entry_of(pid: u32) -> Option<Entry> {
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // `pid (name) state parent group …`; the name may hold blanks and brackets.
    let after_name = line.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = std::str::from_utf8(line.get(after_name..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace().skip(1);
    Some(Entry {
        pid,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
    })
}

/// How links in `/proc/<pid>/fd` name a pipe.
pub(super) fn pipe_name(reader: &io::PipeReader) -> Option<String> {
    let stat = rustix::fs::fstat(reader).ok()?;
    Some(format!("pipe:[{}]", stat.st_ino))
}

fn pid(raw: u32) -> Option<Pid> {
    i32::try_from(raw).ok().and_then(Pid::from_raw)
}
