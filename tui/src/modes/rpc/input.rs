//! Lines from the program. Only LF ends one (`interfaces.md` §8.1); they are read on a thread of their
//! own, which is left behind at the end of the process.

use std::fs::File;
use std::io::{self, Read};

use tokio::sync::mpsc;

/// Longest line. It is far above what a conversation holds, and keeps a program that never ends one from
/// taking all memory.
const LONGEST: usize = 512 << 20;
/// Lines that wait to be looked at.
const WAITING: usize = 4;
const CHUNK: usize = 64 << 10;

/// One line without its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Its bytes.
    Bytes(Vec<u8>),
    /// It was longer than is taken; the rest of it was passed by.
    TooLong,
}

/// The lines that are sent.
#[derive(Debug)]
pub struct Input(mpsc::Receiver<Line>);

impl Input {
    /// Begins to read.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start(source: File) -> io::Result<Self> {
        let (lines, receiver) = mpsc::channel(WAITING);
        let read = move || {
            // Input that cannot be read has ended.
            let _ = split(source, LONGEST, |line| lines.blocking_send(line).is_ok());
        };
        std::thread::Builder::new()
            .name("rpc input".to_owned())
            .spawn(read)?;
        Ok(Self(receiver))
    }

    /// The next line; `None` at the end.
    pub async fn next(&mut self) -> Option<Line> {
        self.0.recv().await
    }
}

/// Gives each line to `take` until that wants no more. One that the end cuts off is a line.
fn split(
    mut source: impl Read,
    longest: usize,
    mut take: impl FnMut(Line) -> bool,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    let mut line = Vec::new();
    let mut is_too_long = false;
    loop {
        let count = match source.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let mut rest = &chunk[..count];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            if !take(ended(&mut line, is_too_long || end > longest, longest)) {
                return Ok(());
            }
            is_too_long = false;
        }
        line.extend_from_slice(rest);
        if line.len() > longest {
            is_too_long = true;
            line = Vec::new();
        }
    }
    if is_too_long || !line.is_empty() {
        take(ended(&mut line, is_too_long, longest));
    }
    Ok(())
}

fn ended(line: &mut Vec<u8>, is_too_long: bool, longest: usize) -> Line {
    let mut bytes = std::mem::take(line);
    if is_too_long || bytes.len() > longest {
        return Line::TooLong;
    }
    // Programs on Windows end lines with CR LF.
    bytes.pop_if(|last| *last == b'\r');
    Line::Bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads one byte at a time.
    struct Drops<'a>(&'a [u8]);

    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(1).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn lines(text: &str) -> Vec<Line> {
        let mut whole = Vec::new();
        let mut by_bytes = Vec::new();
        let keep = |lines: &mut Vec<Line>, line| {
            lines.push(line);
            true
        };
        split(text.as_bytes(), 8, |line| keep(&mut whole, line)).unwrap();
        split(Drops(text.as_bytes()), 8, |line| keep(&mut by_bytes, line)).unwrap();
        assert_eq!(whole, by_bytes);
        whole
    }

    fn line(text: &str) -> Line {
        Line::Bytes(text.as_bytes().to_vec())
    }

    #[test]
    fn only_a_line_feed_ends_a_line_and_one_return_before_it_goes() {
        // R02, interfaces §8.1
        assert_eq!(
            lines("a\u{2028}b\nc\r\n\r\r\n\nd"),
            [
                line("a\u{2028}b"),
                line("c"),
                line("\r"),
                line(""),
                line("d")
            ]
        );
        assert_eq!(lines(""), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_by_and_the_next_one_read() {
        assert_eq!(
            lines("12345678\n123456789\nok\n123456789"),
            [line("12345678"), Line::TooLong, line("ok"), Line::TooLong]
        );
    }
}
