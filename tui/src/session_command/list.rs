//! `pliant session list`: the stored sessions, the latest first (`kernel.md` S5).

use std::fmt::Write;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::bail;
use clap::Args;
use pliant_kernel::boot::SessionFolders;
use pliant_kernel::tree::{self, Listed, iso_from_ms, one_line};
use serde_json::json;

use super::{first_words, minute, print};
use crate::say::{self, printable};

/// Characters of a name or of first words.
const TITLE: usize = 60;

/// Characters of an id at least: what a person expects to be enough.
const SHORTEST_ID: usize = 8;

/// List the sessions of this directory, the latest first.
#[derive(Args)]
pub struct List {
    /// Those of all directories.
    #[arg(long)]
    all: bool,

    /// As JSON, one object a line.
    #[arg(long)]
    json: bool,
}

impl List {
    pub fn run(&self, folders: &SessionFolders) -> anyhow::Result<u8> {
        let sessions = self.sessions(folders)?;
        if self.json {
            let line = |(session, _): &(Listed, String)| json_line(session, folders);
            return print(&sessions.iter().map(line).collect::<String>());
        }
        if sessions.is_empty() {
            say::note(if self.all {
                "There are no stored sessions."
            } else {
                "There are no stored sessions of this directory. --all lists those of all others."
            });
            return Ok(0);
        }
        print(&table(&sessions, self.all, folders))
    }

    /// The sessions of pliant and pi, each with what of its id is enough to find it: one that is not shown, as
    /// another directory's in a shared folder is not, is looked at as well then.
    fn sessions(&self, folders: &SessionFolders) -> anyhow::Result<Vec<(Listed, String)>> {
        let looked_at = match self.all {
            true => folders.all(),
            false => folders.of_directory(),
        };
        for folder in &looked_at {
            match tell_unreadable(folder) {
                // One of many is passed by.
                Err(error) if self.all || folders.is_of_pi(folder) => say::warning(error),
                told => told?,
            }
        }
        let mut sessions: Vec<_> = looked_at.iter().flat_map(|dir| tree::list(dir)).collect();
        if looked_at.len() > 1 {
            sessions.sort_by_key(|session| std::cmp::Reverse(session.modified_ms));
        }
        let ids: Vec<&str> = sessions.iter().map(|s| s.header.id.as_str()).collect();
        let ids = short_ids(&ids);
        let only_of = folders.only_of().filter(|_| !self.all);
        let mut sessions: Vec<_> = sessions.into_iter().zip(ids).collect();
        let is_ours = |session: &Listed| {
            only_of.is_none_or(|cwd| tree::same_directory(&session.header.cwd, cwd))
        };
        sessions.retain(|(session, _)| is_ours(session));
        Ok(sessions)
    }
}

/// A folder that cannot be read is no empty one, and a damaged session is not gone.
fn tell_unreadable(folder: &Path) -> anyhow::Result<()> {
    if let Err(error) = std::fs::read_dir(folder)
        && error.kind() != ErrorKind::NotFound
    {
        bail!(
            "The sessions in {} cannot be listed: {error}. Check the permissions.",
            folder.display()
        );
    }
    for path in tree::unreadable_since(folder, None) {
        say::warning(format_args!(
            "The header of {} cannot be read. `pliant session doctor` shows what is wrong.",
            path.display()
        ));
    }
    Ok(())
}

fn json_line(session: &Listed, folders: &SessionFolders) -> String {
    let line = json!({
        "id": session.header.id,
        // What is no text is shown as well as it can be.
        "path": session.path.to_string_lossy(),
        "cwd": session.header.cwd.to_string_lossy(),
        "name": session.name,
        "firstMessage": session.first_message,
        "messageCount": session.message_count,
        "created": session.header.timestamp,
        "modified": iso_from_ms(session.modified_ms),
        "agent": if folders.is_of_pi(&session.path) { "pi" } else { "pliant" },
        "parentSession": session.header.parent_session.as_ref().map(|path| path.to_string_lossy()),
    });
    format!("{line}\n")
}

fn table(sessions: &[(Listed, String)], with_directory: bool, folders: &SessionFolders) -> String {
    let widths = sessions.iter().map(|(_, id)| id.chars().count());
    let width = widths.max().unwrap_or(0);
    let mut table = format!(
        "{:16}  {:width$}  messages  session\n",
        "modified (UTC)", "id"
    );
    for (session, id) in sessions {
        let title = session.name.as_ref().or(session.first_message.as_ref());
        let title = title.map_or_else(|| "(empty)".to_owned(), |text| first_words(text, TITLE));
        let (time, count) = (minute(session.modified_ms), session.message_count);
        // A string takes everything.
        let _ = write!(table, "{time}  {id:width$}  {count:8}  {title}");
        if folders.is_of_pi(&session.path) {
            table.push_str("  (pi)");
        }
        if with_directory {
            let cwd = one_line(&session.header.cwd.to_string_lossy());
            let _ = write!(table, "  ({})", printable(&cwd));
        }
        table.push('\n');
    }
    table
}

/// The beginning of each id that tells it from the others; of ids that occur twice, the whole.
fn short_ids(ids: &[&str]) -> Vec<String> {
    let mut sorted: Vec<&str> = ids.to_vec();
    sorted.sort_unstable();
    let short = |id: &&str| {
        let at = sorted.partition_point(|other| other < id);
        let before = at.checked_sub(1).map_or(0, |at| in_common(sorted[at], id));
        let after = sorted.get(at + 1).map_or(0, |other| in_common(other, id));
        let length = (before.max(after) + 1).max(SHORTEST_ID);
        id.chars()
            .filter(|c| !c.is_control())
            .take(length)
            .collect()
    };
    ids.iter().map(short).collect()
}

/// How many characters two texts begin with together.
fn in_common(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_as_long_as_it_takes_to_find_it() {
        let ids = [
            "0199aaaa-1111",
            "0199aaaa-1222",
            "0199bbbb-1",
            "é",
            "0199bbbb-1",
            "",
        ];
        let short = [
            "0199aaaa-11",
            "0199aaaa-12",
            "0199bbbb-1",
            "é",
            "0199bbbb-1",
            "",
        ];
        assert_eq!(short_ids(&ids), short);
    }
}
