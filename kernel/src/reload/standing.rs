//! How the sources are doing, for whoever looks after them: what serves, what went wrong, and what of
//! earlier versions is still there (`plugin-abi.md` §5 "Why no unloading").

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::Reloader;
use super::loaded::Loaded;
use crate::digest::Digest;
use crate::registry::{Kind, Rank, Source, Vitals};

/// Old versions of libraries in one process from which on a restart is advised.
const MANY_COPIES: u32 = 200;

/// Memory of libraries and their old versions from which on it is, bytes.
const MUCH_MEMORY: u64 = 256 << 20;

/// One source.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// Its name.
    pub name: String,
    /// Its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Where it stands in the load order.
    pub rank: Rank,
    /// Number of the generation that serves, from 1; nothing for what was never loaded from a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    /// What identifies its content, in short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// What it contributes: kind and name.
    pub contributes: Vec<(Kind, String)>,
    /// Earlier versions whose code stays mapped in this process.
    pub retired: u32,
    /// Resident memory of its code in every version, or of the process it runs in, bytes; on systems that
    /// tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Calls and faults.
    #[serde(flatten)]
    pub vitals: Vitals,
}

/// What is known of a source from its loads.
#[derive(Debug, Clone)]
pub(super) struct Known {
    generation: u32,
    digest: Option<Digest>,
    replaced: u32,
}

/// The sources by name, as they were after the last load. Kept apart from what a transaction works on:
/// that may have to wait for the end of a turn, and whoever asks must not.
pub(super) type View = Mutex<HashMap<String, Known>>;

impl Reloader {
    /// Shows what is loaded to whoever asks.
    pub(super) fn show(&self, loaded: &[Loaded]) {
        let known = |known: &Loaded| {
            let shown = Known {
                generation: known.generation,
                digest: known.digest,
                replaced: known.replaced,
            };
            (known.source.name.clone(), shown)
        };
        let shown = loaded.iter().map(known).collect();
        *self.view.lock().unwrap_or_else(PoisonError::into_inner) = shown;
    }

    /// How every source is doing, in load order. Answers at once, also while a reload waits.
    #[must_use]
    pub fn standing(&self) -> Vec<Standing> {
        let view = self.view.lock();
        let view = view.unwrap_or_else(PoisonError::into_inner).clone();
        let snapshot = self.registry.snapshot();
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        let standing = |generation: &crate::registry::Served| {
            let source = generation.source();
            let known = view.get(&source.name);
            let vitals = generation.vitals();
            let memory = match vitals.pid {
                Some(pid) => resident_of_process(pid),
                None => source
                    .path
                    .as_deref()
                    .and_then(|path| resident(&maps, path)),
            };
            let contributions = generation.contributions();
            Standing {
                name: source.name.clone(),
                path: source.path.as_ref().map(|path| path.display().to_string()),
                rank: source.rank,
                generation: known.map(|known| known.generation),
                content: known
                    .and_then(|known| known.digest)
                    .map(|digest| digest.short()),
                contributes: contributions
                    .iter()
                    .map(|item| (item.kind, item.name.clone()))
                    .collect(),
                retired: match vitals.pid {
                    None if is_library(source) => known.map_or(0, |known| known.replaced),
                    // Of scripts and ended processes nothing stays.
                    _ => 0,
                },
                memory,
                vitals,
            }
        };
        snapshot.sources().iter().map(standing).collect()
    }
}

/// Advises a restart, once, when old versions of libraries have become many.
pub(super) fn advice(loaded: &[Loaded], before: u32) -> Option<String> {
    let copies = copies(loaded);
    let crossed = before < MANY_COPIES && copies >= MANY_COPIES;
    crossed.then(|| {
        format!(
            "{copies} earlier versions of plugins stay in memory, because native code cannot be unloaded safely. \
             Start pliant again when it suits you (--continue takes up the session), or let plugins that you write run in processes of their own (--isolate)."
        )
    })
}

/// How many versions of libraries were replaced.
pub(super) fn copies(loaded: &[Loaded]) -> u32 {
    let libraries = loaded.iter().filter(|known| is_library(&known.source));
    libraries.map(|known| known.replaced).sum()
}

fn is_library(source: &Source) -> bool {
    let ending = std::env::consts::DLL_EXTENSION;
    let path = source.path.as_deref();
    path.is_some_and(|path| path.extension().is_some_and(|found| found == ending))
}

/// Whether so much memory is worth a word.
#[must_use]
pub fn is_much(memory: u64) -> bool {
    memory >= MUCH_MEMORY
}

/// Resident memory of the mappings of a library's copies: their names hold that of the library.
fn resident(maps: &str, library: &Path) -> Option<u64> {
    let name = library.file_name()?.to_str()?;
    let (mut total, mut counts) = (None, false);
    for line in maps.lines() {
        if let Some(rest) = line.strip_prefix("Rss:") {
            if counts {
                let kb: u64 = rest.trim().strip_suffix(" kB")?.trim().parse().ok()?;
                *total.get_or_insert(0) += kb << 10;
            }
        } else if line
            .split_whitespace()
            .next()
            .is_some_and(|first| first.contains('-'))
        {
            counts = line.contains(name);
        }
    }
    total
}

fn resident_of_process(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kb: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kb << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mappings_of_every_copy_of_a_library_count_and_no_others() {
        let maps = "7f00-7f10 r-xp 00000000 fe:00 1 /c/libx.so-00ff.so\nSize: 64 kB\nRss:   40 kB\n\
            7f20-7f30 r--p 00000000 fe:00 2 /tmp/pliant-1-0/3-libx.so (deleted)\nRss:   8 kB\n\
            7f40-7f50 r--p 00000000 fe:00 3 /c/libother.so-00ff.so\nRss:   100 kB\n";
        assert_eq!(resident(maps, Path::new("/a/libx.so")), Some(48 << 10));
        assert_eq!(resident(maps, Path::new("/a/liby.so")), None);
    }
}
