//! The file that a call reads: found by its path, and streamed up to the size it had then.

use pliant_sdk::host::{ByteStream, FileKind, FileStat};
use pliant_sdk::{Error, ToolCtx, error::code};

use crate::paths;

/// Enough of a file's start to tell an image.
const SNIFFED: usize = 64;
/// Where reading ends for what has no size of its own (devices, pipes, `/proc`).
const MAX_UNSIZED: u64 = 64 * 1024 * 1024;

/// A file whose bytes are coming.
pub(crate) struct Source {
    /// As the call names it.
    path: String,
    /// Where it is.
    pub(crate) found: String,
    stream: ByteStream,
    /// What was read already to look at it.
    ahead: Vec<u8>,
    /// Bytes still to come: a file that grows meanwhile ends where it ended when it was opened.
    left: u64,
    /// Running out of `left` is the end of the file, not of our patience.
    sized: bool,
}

impl Source {
    /// Opens the file that a path argument means.
    pub(crate) async fn open(given: &str, ctx: &ToolCtx) -> Result<Self, Error> {
        let (path, stat) = existing(given, ctx).await?;
        if stat.kind == FileKind::Directory {
            return Err(Error::invalid(format!(
                "{given} is a directory. List it with ls or a shell command."
            )));
        }
        let sized = stat.kind == FileKind::File && stat.size > 0;
        let stream = ctx.host().read(&path, 0).await;
        Ok(Self {
            path: given.to_owned(),
            found: path,
            stream: stream.map_err(|e| paths::failure(given, e))?,
            ahead: Vec::new(),
            left: if sized { stat.size } else { MAX_UNSIZED },
            sized,
        })
    }

    /// The first bytes, to tell what it is; they come again.
    pub(crate) async fn sniff(&mut self) -> Result<Vec<u8>, Error> {
        let mut start = Vec::new();
        while start.len() < SNIFFED {
            match self.next().await? {
                Some(chunk) => start.extend_from_slice(&chunk),
                None => break,
            }
        }
        self.ahead.clone_from(&start);
        start.truncate(SNIFFED);
        Ok(start)
    }

    /// The next chunk, nothing at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        if !self.ahead.is_empty() {
            return Ok(Some(std::mem::take(&mut self.ahead)));
        }
        if self.left == 0 && self.sized {
            return Ok(None);
        }
        let Some(chunk) = self.stream.next().await else {
            return Ok(None);
        };
        let mut chunk = chunk.map_err(|e| paths::failure(&self.path, e))?;
        if !self.sized && self.left < chunk.len() as u64 {
            let path = &self.path;
            return Err(Error::failed(format!(
                "{path} gives more bytes than read takes from something that is not a regular file. \
                 Use a shell command that stops by itself."
            )));
        }
        chunk.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= chunk.len() as u64;
        Ok(Some(chunk))
    }
}

/// The first spelling of the path that exists.
async fn existing(given: &str, ctx: &ToolCtx) -> Result<(String, FileStat), Error> {
    let path = paths::resolve(given, ctx);
    let error = match ctx.host().stat(&path).await {
        Ok(stat) => return Ok((path, stat)),
        Err(error) => error,
    };
    if error.is(code::NOT_FOUND) {
        for variant in paths::variants(&path) {
            if let Ok(stat) = ctx.host().stat(&variant).await {
                return Ok((variant, stat));
            }
        }
    }
    Err(paths::failure(given, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_grows_meanwhile_ends_where_it_ended() {
        let source = |left, sized| Source {
            path: "f".to_owned(),
            found: "/f".to_owned(),
            stream: ByteStream::from_chunks(vec![b"ab".to_vec(), b"cd".to_vec(), b"ef".to_vec()]),
            ahead: Vec::new(),
            left,
            sized,
        };
        let drain = |mut source: Source| {
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            let mut all = Vec::new();
            loop {
                let mut next = std::pin::pin!(source.next());
                match next.as_mut().poll(&mut context) {
                    std::task::Poll::Ready(Ok(Some(chunk))) => all.extend(chunk),
                    std::task::Poll::Ready(Ok(None)) => return Ok(all),
                    std::task::Poll::Ready(Err(error)) => return Err(error.message),
                    std::task::Poll::Pending => {}
                }
            }
        };
        assert_eq!(drain(source(3, true)).unwrap(), b"abc");
        assert_eq!(drain(source(9, true)).unwrap(), b"abcdef");
        // Without a size the end must come by itself.
        assert_eq!(drain(source(6, false)).unwrap(), b"abcdef");
        assert!(
            drain(source(5, false))
                .unwrap_err()
                .contains("not a regular file")
        );
    }
}
