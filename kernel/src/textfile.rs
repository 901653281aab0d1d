//! Reading small files that a person writes. A pipe or a device in their place would block or never
//! end, so only regular files of a sensible size are read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Larger files are not what a person wrote by hand.
const LIMIT: u64 = 16 << 20;

/// The text of a regular file; a byte order mark is left out.
///
/// # Errors
/// As `std::fs::read_to_string`; also for what is no regular file, and for one that is too large.
pub fn read(path: &Path) -> io::Result<String> {
    read_at_most(path, LIMIT)
}

/// The same with another limit, in bytes.
///
/// # Errors
/// As [`read`].
pub fn read_at_most(path: &Path, limit: u64) -> io::Result<String> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        ));
    }
    if metadata.len() > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is larger than {}", shown(limit)),
        ));
    }
    let mut text = String::new();
    File::open(path)?.take(limit).read_to_string(&mut text)?;
    match text.strip_prefix('\u{feff}') {
        Some(rest) => Ok(rest.to_owned()),
        None => Ok(text),
    }
}

fn shown(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{} KB", bytes >> 10),
        mega => format!("{mega} MB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_regular_file_is_refused_instead_of_read_for_ever() {
        for path in ["/dev/zero", "/"] {
            assert_eq!(
                read(Path::new(path)).unwrap_err().kind(),
                io::ErrorKind::InvalidInput
            );
        }
    }

    #[test]
    fn a_byte_order_mark_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, "\u{feff}{}").unwrap();
        assert_eq!(read(&path).unwrap(), "{}");
    }
}
