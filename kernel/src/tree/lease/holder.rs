//! Who has a session: what the sidecar of a lease says about its owner, and whether that process
//! still lives.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, Write};

use serde::{Deserialize, Serialize};

use crate::tree::iso_from_ms;

/// What an owner writes is shorter by far; the rest of a longer file was not written by one.
const LIMIT: u64 = 4096;

/// Who has a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseHolder {
    /// The process.
    pub pid: u32,
    /// Its machine.
    pub host: String,
    /// When it took the lease, Unix milliseconds.
    pub since_ms: i64,
    /// When the process started, as its system tells it: another process that got the same number
    /// later started at another time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
}

impl LeaseHolder {
    pub(super) fn this_process(since_ms: i64) -> Self {
        let pid = std::process::id();
        Self {
            pid,
            host: host(),
            since_ms,
            started: started(pid),
        }
    }

    /// The first line of a sidecar, if an owner wrote it.
    pub(super) fn read(mut file: &File) -> Option<Self> {
        let mut text = Vec::new();
        file.rewind().ok()?;
        file.take(LIMIT).read_to_end(&mut text).ok()?;
        let line = text.split(|byte| *byte == b'\n').next()?;
        let mut holder: Self = serde_json::from_slice(line).ok()?;
        holder.host.retain(|c| !c.is_control());
        Some(holder)
    }

    /// Replaces the content of a sidecar. What cannot be written whole is not left in part.
    pub(super) fn write(&self, mut file: &File) -> io::Result<()> {
        let mut line = serde_json::to_string(self)?;
        line.push('\n');
        file.rewind()?;
        // Cut afterwards, so that a reader finds a whole first line at any time.
        match file.write_all(line.as_bytes()) {
            Ok(()) => file.set_len(line.len() as u64),
            Err(error) => {
                file.set_len(0)?;
                Err(error)
            }
        }
    }

    fn is_on_this_machine(&self) -> bool {
        self.host == host()
    }

    /// The process that asks is the holder.
    #[must_use]
    pub fn is_this_process(&self) -> bool {
        let pid = std::process::id();
        self.pid == pid && self.is_on_this_machine() && self.started == started(pid)
    }

    /// `false` when the process has certainly ended; of other machines nothing is known.
    pub(super) fn may_live(&self) -> bool {
        if !self.is_on_this_machine() {
            return true;
        }
        let same = match (&self.started, started(self.pid)) {
            (Some(then), Some(now)) => *then == now,
            _ => true,
        };
        same && exists(self.pid)
    }
}

impl fmt::Display for LeaseHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_this_process() {
            f.write_str("this process")?;
        } else if self.is_on_this_machine() {
            write!(f, "process {} on this machine", self.pid)?;
        } else {
            write!(f, "process {} on host {}", self.pid, self.host)?;
        }
        let time = iso_from_ms(self.since_ms);
        let (date, clock) = time.split_at(10);
        write!(f, " (since {date} {} UTC)", &clock[1..6])
    }
}

#[cfg(unix)]
fn host() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

#[cfg(unix)]
fn exists(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok();
    let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) else {
        return false;
    };
    rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
}

#[cfg(not(unix))]
fn exists(_: u32) -> bool {
    true
}

/// The boot and the clock tick within it. `None` where there is no `/proc`, and for a process that
/// is not there or hidden.
fn started(pid: u32) -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let line = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // `pid (name) state …`; the name may hold blanks and brackets, the start is the 22nd field.
    let after_name = line.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = std::str::from_utf8(line.get(after_name..)?).ok()?;
    let tick = rest.split_ascii_whitespace().nth(19)?;
    Some(format!("{}/{tick}", boot.trim()))
}
