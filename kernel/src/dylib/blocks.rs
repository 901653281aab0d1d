//! A file that is read block by block. The names of a library's symbols lie beside each other, and
//! each of them asked for alone would be two calls of the system: a hundred and more for a plugin
//! that is only looked at.

use std::fs::File;
use std::ops::Range;

use object::read::{ReadCache, ReadRef};

/// Longer than most names, and not much longer than most tables of them.
const BLOCK: u64 = 4096;

/// Reads of the same places, from blocks that are kept.
#[derive(Clone, Copy)]
pub(super) struct Blocks<'a>(pub(super) &'a ReadCache<File>);

impl<'a> ReadRef<'a> for Blocks<'a> {
    fn len(self) -> Result<u64, ()> {
        self.0.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        self.0.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        let found = self.within_blocks(&range, delimiter);
        match found {
            Some(bytes) => Ok(bytes),
            None => self.0.read_bytes_at_until(range, delimiter),
        }
    }
}

impl<'a> Blocks<'a> {
    /// What is asked for, if it ends within its block or the next.
    fn within_blocks(self, range: &Range<u64>, delimiter: u8) -> Option<&'a [u8]> {
        let start = range.start / BLOCK * BLOCK;
        let end = start.saturating_add(2 * BLOCK).min(self.len().ok()?);
        let block = self.0.read_bytes_at(start, end.checked_sub(start)?).ok()?;
        let from = usize::try_from(range.start - start).ok()?;
        let to = usize::try_from(range.end.min(end).checked_sub(start)?).ok()?;
        let rest = block.get(from..to)?;
        rest.get(..memchr::memchr(delimiter, rest)?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn names_are_those_of_the_file_wherever_the_blocks_end() {
        let mut file = tempfile::tempfile().unwrap();
        let names: Vec<String> = (0..3000).map(|number| format!("name_{number}")).collect();
        let long = "x".repeat(4000);
        let text = format!("{}\0{long}\0end", names.join("\0"));
        file.write_all(text.as_bytes()).unwrap();
        let cache = ReadCache::new(file);
        let blocks = Blocks(&cache);
        let all = text.len() as u64;
        let mut at = 0;
        for name in names.iter().chain([&long]) {
            let read = blocks.read_bytes_at_until(at..all, 0).unwrap();
            assert_eq!(read, name.as_bytes());
            at += name.len() as u64 + 1;
        }
        assert!(blocks.read_bytes_at_until(at..all, 0).is_err(), "no end");
        assert!(blocks.read_bytes_at_until(0..3, 0).is_err(), "outside");
        assert!(blocks.read_bytes_at_until(all + 1..all + 9, 0).is_err());
    }
}
