//! One end of the link: frames out, in order, and frames in. Who sends something small while nothing
//! waits writes it at once, on his own thread: waking another one would take longer than the write.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::Notify;

use super::frame::Frame;

/// How long pieces of an answer are held back, so that several cross as one (`plugin-abi.md` §7).
const TOGETHER: Duration = Duration::from_millis(1);

/// Bytes that are sent at once, however young they are.
const ENOUGH: usize = 64 << 10;

/// One end.
#[derive(Debug)]
pub(super) struct Link {
    socket: UnixStream,
    out: Mutex<Out>,
    more: Notify,
}

#[derive(Debug, Default)]
struct Out {
    bytes: Vec<u8>,
    /// How many of them the system has.
    sent: usize,
    /// There is more than pieces that can wait.
    is_urgent: bool,
}

impl Link {
    /// Over a socket that does not block. To be called on the runtime that writes.
    pub(super) fn new(socket: std::os::unix::net::UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket: UnixStream::from_std(socket)?,
            out: Mutex::default(),
            more: Notify::new(),
        })
    }

    /// Sends a frame. What became of it when the other end is gone, the reader learns.
    pub(super) fn send(&self, frame: &Frame) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        frame.write(&mut out.bytes);
        out.is_urgent = true;
        if !out.flush(&self.socket) {
            self.more.notify_one();
        }
    }

    /// Sends a piece of an answer, with those that follow it shortly.
    pub(super) fn send_soon(&self, frame: &Frame) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = out.bytes.is_empty();
        frame.write(&mut out.bytes);
        if out.bytes.len() >= ENOUGH {
            out.is_urgent = true;
        }
        if is_first || out.is_urgent {
            self.more.notify_one();
        }
    }

    /// Writes what could not be written at once, until the other end is gone.
    pub(super) async fn write_on(self: Arc<Self>) {
        loop {
            self.more.notified().await;
            if !self.is_urgent() {
                tokio::time::sleep(TOGETHER).await;
            }
            while !self.flush() {
                if self.socket.writable().await.is_err() {
                    return;
                }
            }
        }
    }

    fn is_urgent(&self) -> bool {
        let out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.is_urgent
    }

    /// Whether everything is written.
    fn flush(&self) -> bool {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.is_urgent = true;
        out.flush(&self.socket)
    }

    /// Reads more into `inbox`; `false` at the end.
    pub(super) async fn read_more(&self, inbox: &mut Inbox) -> io::Result<bool> {
        loop {
            self.socket.readable().await?;
            match self.socket.try_read(inbox.room()) {
                Ok(0) => return Ok(false),
                Ok(read) => {
                    inbox.filled += read;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Out {
    /// Gives the system what it takes; whether that was all. A broken link is over: nothing waits then.
    fn flush(&mut self, socket: &UnixStream) -> bool {
        while self.sent < self.bytes.len() {
            match socket.try_write(&self.bytes[self.sent..]) {
                Ok(written) => self.sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.bytes.clear();
        self.bytes.shrink_to(ENOUGH);
        self.sent = 0;
        self.is_urgent = false;
        true
    }
}

/// Bytes that arrived.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    filled: usize,
    taken: usize,
}

impl Inbox {
    fn room(&mut self) -> &mut [u8] {
        const ROOM: usize = 64 << 10;
        if self.taken > 0 {
            self.bytes.copy_within(self.taken..self.filled, 0);
            self.filled -= self.taken;
            self.taken = 0;
        }
        if self.filled == 0 {
            self.bytes.truncate(ROOM);
            self.bytes.shrink_to(ROOM);
        }
        // A large frame is read in as few pieces as there are.
        let room = ROOM.max(self.filled);
        self.bytes.resize(self.filled + room, 0);
        &mut self.bytes[self.filled..]
    }

    /// The next frame that is whole.
    ///
    /// # Errors
    /// When there is something else.
    pub(super) fn next(&mut self) -> io::Result<Option<Frame>> {
        let rest = &self.bytes[self.taken..self.filled];
        Ok(Frame::read(rest)?.map(|(frame, len)| {
            self.taken += len;
            frame
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::Kind;
    use super::*;

    #[tokio::test]
    async fn frames_of_every_size_arrive_whole_and_in_order_however_they_were_sent() {
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        let (one, other) = (Arc::new(Link::new(one).unwrap()), Link::new(other).unwrap());
        let writing = tokio::spawn(Arc::clone(&one).write_on());
        let sizes = [0, 1, 100, 5_000_000, 3, 70_000, 2, 0];
        for (number, size) in (0..).zip(sizes) {
            let frame = Frame::with(Kind::Emit, number, vec![7; size]);
            match number % 2 {
                0 => one.send(&frame),
                _ => one.send_soon(&frame),
            }
        }
        let (mut inbox, mut arrived) = (Inbox::default(), Vec::new());
        while arrived.len() < sizes.len() {
            assert!(other.read_more(&mut inbox).await.unwrap());
            while let Some(frame) = inbox.next().unwrap() {
                assert_eq!(frame.id, u64::try_from(arrived.len()).unwrap());
                assert!(frame.payload.iter().all(|byte| *byte == 7));
                arrived.push(frame.payload.len());
            }
        }
        assert_eq!(arrived, sizes);
        writing.abort();
        drop(one);
    }
}
