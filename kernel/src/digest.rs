//! What identifies the content of a file: its SHA-256.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes read at a time.
const PIECE: usize = 64 << 10;

/// The SHA-256 of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Of bytes in memory.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_ring(ring::digest::digest(&ring::digest::SHA256, bytes))
    }

    /// Of a file, which is read piece by piece.
    ///
    /// # Errors
    /// When it cannot be read, or is none: a pipe would wait for its writer.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        if !std::fs::metadata(path)?.is_file() {
            let message = "it is not a regular file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let mut file = File::open(path)?;
        let mut context = ring::digest::Context::new(&ring::digest::SHA256);
        let mut piece = vec![0; PIECE];
        loop {
            match file.read(&mut piece) {
                Ok(0) => return Ok(Self::from_ring(context.finish())),
                Ok(read) => context.update(piece.get(..read).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The first eight digits, enough to tell two versions of a file apart.
    #[must_use]
    pub fn short(&self) -> String {
        self.to_string().chars().take(8).collect()
    }

    fn from_ring(digest: ring::digest::Digest) -> Self {
        let mut bytes = [0; 32];
        for (byte, of_ring) in bytes.iter_mut().zip(digest.as_ref()) {
            *byte = *of_ring;
        }
        Self(bytes)
    }
}

impl fmt::Display for Digest {
    /// Lower-case hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_and_its_bytes_have_the_same_digest_which_is_their_sha_256() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let bytes = vec![b'a'; 3 * PIECE + 1];
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        assert_eq!(Digest::of_file(file.path()).unwrap(), Digest::of(&bytes));
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), empty);
        assert_eq!(Digest::of(b"").short(), "e3b0c442");
    }
}
