//! New bytes of a file from its old bytes and the pieces to put in.

use super::matching::Piece;
use super::source::Source;

/// Puts the pieces in. They are in the order of the file and do not overlap; what lies between them
/// keeps its bytes, and line breaks of a piece become those of the line where it is put.
pub(crate) fn apply(source: &Source<'_>, pieces: &[Piece]) -> Vec<u8> {
    let mut new = Vec::with_capacity(source.bytes.len());
    let mut done = 0;
    for piece in pieces {
        join(&mut new, &source.bytes[done..piece.bytes.start]);
        let line_break = source.line_break_at(piece.bytes.start);
        join(&mut new, piece.text.replace('\n', line_break).as_bytes());
        done = piece.bytes.end;
    }
    join(&mut new, &source.bytes[done..]);
    new
}

/// Appends bytes. A CR before and an LF after the seam are two line breaks and stay two.
fn join(new: &mut Vec<u8>, bytes: &[u8]) {
    if new.last() == Some(&b'\r') && bytes.first() == Some(&b'\n') {
        new.push(b'\r');
    }
    new.extend_from_slice(bytes);
}
