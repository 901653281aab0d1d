//! A response as the stream that callers read: the head as JSON, then the body as it arrives, each
//! wait limited.
//!
//! The HTTP library hands over one chunk at a time and prepares the next only then, so whoever polls
//! it never sees a burst as one. A task per response therefore reads ahead, a bounded way, and joins
//! what belongs together: each chunk that leaves the kernel wakes threads.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, Stream, StreamExt};
use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::PollBytes;
use reqwest::Response;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{deepest, timed_out};

/// Body chunks that arrive together are joined up to this size.
const CHUNK_BYTES: usize = 64 * 1024;

/// Joined chunks that may wait for the reader; beside them the task holds one.
const CHUNKS_AHEAD: usize = 2;

/// How often the other tasks get their turn, among them the connection's, before what has arrived
/// goes on without more.
const QUIET_YIELDS: usize = 2;

/// A server that never pauses is heard this often all the same.
const BURST_LIMIT: Duration = Duration::from_millis(10);

/// A response as a stream: its head, then its body.
pub(super) struct Body {
    head: Option<Vec<u8>>,
    /// `None` when the body is over. Dropping it ends the task that reads.
    pieces: Option<mpsc::Receiver<Piece<reqwest::Error>>>,
    idle: Option<Idle>,
    target: String,
}

/// Part of a body.
#[derive(Debug, PartialEq, Eq)]
enum Piece<E> {
    Data(Vec<u8>),
    Failed(E),
    /// Told, so that a task which was stopped in the middle does not look like the end.
    End,
}

/// A time limit for each wait.
struct Idle {
    limit: Duration,
    timer: Pin<Box<Sleep>>,
    waiting: bool,
}

impl Body {
    /// Begins to read the body; needs the runtime.
    pub(super) fn new(response: Response, idle: Option<Duration>, target: String) -> Self {
        Self {
            head: Some(head_of(&response)),
            pieces: Some(read(response.bytes_stream())),
            idle: idle.map(|limit| Idle {
                limit,
                timer: Box::pin(sleep_until(Instant::now())),
                waiting: false,
            }),
            target,
        }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
        let Some(pieces) = &mut self.pieces else {
            return Poll::Ready(None);
        };
        let cause = match ready!(pieces.poll_recv(cx)) {
            Some(Piece::Data(data)) => return Poll::Ready(Some(Ok(data))),
            Some(Piece::End) => None,
            Some(Piece::Failed(cause)) => Some(deepest(cause)),
            None => Some("reading was stopped".to_owned()),
        };
        self.pieces = None;
        Poll::Ready(cause.map(|cause| {
            let lost = format!("Connection lost: {cause} ({})", self.target);
            Err(Error::new(code::NETWORK, lost))
        }))
    }
}

impl PollBytes for Body {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
        if let Some(head) = self.head.take() {
            return Poll::Ready(Some(Ok(head)));
        }
        let piece = self.poll_piece(cx);
        let Some(idle) = &mut self.idle else {
            return piece;
        };
        if piece.is_ready() {
            idle.waiting = false;
            return piece;
        }
        if idle.is_over(cx) {
            self.pieces = None;
            let ms = idle.limit.as_millis();
            let what = format!(
                "{} sent nothing for {ms} ms (httpIdleTimeoutMs).",
                self.target
            );
            return Poll::Ready(Some(Err(timed_out(&what))));
        }
        Poll::Pending
    }
}

impl Idle {
    /// Starts the timer at the first look of a wait, so that a slow reader is not held against the
    /// server.
    fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.waiting {
            self.timer.as_mut().reset(Instant::now() + self.limit);
            self.waiting = true;
        }
        self.timer.as_mut().poll(cx).is_ready()
    }
}

/// Reads chunks in a task until they end or nobody listens, which drops them at once.
fn read<S, E>(chunks: S) -> mpsc::Receiver<Piece<E>>
where
    S: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: Send + 'static,
{
    let (tx, rx) = mpsc::channel(CHUNKS_AHEAD);
    tokio::spawn(async move {
        tokio::select! {
            biased;
            () = tx.closed() => {}
            () = send_all(Box::pin(chunks), &tx) => {}
        }
    });
    rx
}

async fn send_all<S, E>(mut chunks: Pin<Box<S>>, tx: &mpsc::Sender<Piece<E>>)
where
    S: Stream<Item = Result<Bytes, E>>,
{
    loop {
        let (data, last) = burst(&mut chunks).await;
        if !data.is_empty() && tx.send(Piece::Data(data)).await.is_err() {
            return;
        }
        if let Some(last) = last {
            // Nobody there means nobody to tell.
            let _ = tx.send(last).await;
            return;
        }
    }
}

/// Waits for a chunk and joins those that follow without a pause. Answers the last piece too, if it
/// was reached.
async fn burst<S, E>(chunks: &mut Pin<Box<S>>) -> (Vec<u8>, Option<Piece<E>>)
where
    S: Stream<Item = Result<Bytes, E>>,
{
    let mut data = Vec::new();
    let mut next = Some(chunks.next().await);
    let started = Instant::now();
    while let Some(chunk) = next {
        match chunk {
            Some(Ok(bytes)) => {
                // Where one chunk follows another, many do.
                if !data.is_empty() && data.capacity() < CHUNK_BYTES {
                    data.reserve_exact(CHUNK_BYTES + bytes.len());
                }
                data.extend_from_slice(&bytes);
            }
            Some(Err(cause)) => return (data, Some(Piece::Failed(cause))),
            None => return (data, Some(Piece::End)),
        }
        if data.len() >= CHUNK_BYTES || started.elapsed() >= BURST_LIMIT {
            break;
        }
        next = soon(chunks).await;
    }
    (data, None)
}

/// The next chunk, or the end, if it is there after a few turns of the other tasks. It is waited for
/// meanwhile: a turn of the runtime asks the system for events, which costs more than a chunk.
async fn soon<S: Stream>(chunks: &mut Pin<Box<S>>) -> Option<Option<S::Item>> {
    for _ in 0..QUIET_YIELDS {
        tokio::select! {
            biased;
            next = chunks.next() => return Some(next),
            () = yield_now() => {}
        }
    }
    chunks.next().now_or_never()
}

fn head_of(response: &Response) -> Vec<u8> {
    let headers: Vec<(&str, String)> = response
        .headers()
        .iter()
        .map(|(name, value)| {
            (
                name.as_str(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .collect();
    let head = json!({"status": response.status().as_u16(), "headers": headers});
    head.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::future::poll_fn;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::stream;

    type Chunk = Result<Bytes, &'static str>;

    fn chunk(text: &'static str) -> Chunk {
        Ok(Bytes::from_static(text.as_bytes()))
    }

    fn data(text: &str) -> Option<Piece<&'static str>> {
        Some(Piece::Data(text.as_bytes().to_vec()))
    }

    /// As the HTTP library does it: the next chunk is prepared when the one before it was taken.
    fn connection() -> (mpsc::Sender<Chunk>, mpsc::Receiver<Piece<&'static str>>) {
        let (tx, mut rx) = mpsc::channel(1);
        (tx, read(stream::poll_fn(move |cx| rx.poll_recv(cx))))
    }

    /// Sends each text as a chunk of its own, and then what is `last`; without one it stays open.
    fn server(
        texts: &'static [&str],
        last: Option<Chunk>,
    ) -> (mpsc::Sender<Chunk>, mpsc::Receiver<Piece<&'static str>>) {
        let (tx, pieces) = connection();
        let sender = tx.clone();
        tokio::spawn(async move {
            for text in texts {
                sender.send(chunk(text)).await.expect("somebody reads");
            }
            if let Some(last) = last {
                sender.send(last).await.expect("somebody reads");
            }
        });
        (tx, pieces)
    }

    /// The other tasks get a few turns.
    async fn let_run() {
        for _ in 0..8 {
            yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_burst_of_single_chunks_is_one_piece() {
        let (tx, mut pieces) = server(&["a", "b", "c", "d"], None);
        assert_eq!(pieces.recv().await, data("abcd"));
        tx.send(chunk("later")).await.expect("somebody reads");
        assert_eq!(pieces.recv().await, data("later"));
    }

    #[tokio::test]
    async fn a_single_chunk_waits_for_no_clock_and_no_successor() {
        let (tx, mut pieces) = server(&[], None);
        for text in ["a", "b", "c"] {
            tx.send(chunk(text)).await.expect("somebody reads");
            assert_eq!(pieces.recv().await, data(text));
        }
        let_run().await;
        tx.send(chunk("d")).await.expect("somebody reads");
        let mut turns = 0;
        while pieces.is_empty() {
            yield_now().await;
            turns += 1;
        }
        assert!(turns <= QUIET_YIELDS + 1, "{turns} turns");
    }

    #[tokio::test]
    async fn the_end_and_a_failure_come_after_what_arrived() {
        let (tx, mut pieces) = server(&["a", "b"], Some(Err("cut")));
        assert_eq!(pieces.recv().await, data("ab"));
        assert_eq!(pieces.recv().await, Some(Piece::Failed("cut")));
        assert_eq!(pieces.recv().await, None);
        assert!(tx.is_closed(), "the connection is gone");

        let (tx, mut pieces) = server(&["a"], None);
        drop(tx);
        assert_eq!(pieces.recv().await, data("a"));
        assert_eq!(pieces.recv().await, Some(Piece::End));
        assert_eq!(pieces.recv().await, None);
    }

    #[tokio::test]
    async fn nothing_is_read_ahead_beyond_the_bound() {
        let taken = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&taken);
        let kib = Bytes::from(vec![b'x'; 1024]);
        let mut pieces = read(stream::poll_fn(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            Poll::Ready(Some(Ok::<_, &str>(kib.clone())))
        }));
        let_run().await;
        let bound = CHUNK_BYTES / 1024 * (CHUNKS_AHEAD + 1);
        assert!(taken.load(Ordering::Relaxed) <= bound, "{taken:?}");
        for _ in 0..10 {
            let Some(Piece::Data(data)) = pieces.recv().await else {
                panic!("the stream has no end");
            };
            assert!(data.len() <= CHUNK_BYTES, "{}", data.len());
        }
    }

    #[tokio::test]
    async fn a_server_that_never_pauses_is_heard_in_time() {
        let mut pieces = read(stream::poll_fn(|_| {
            std::thread::sleep(Duration::from_millis(2));
            Poll::Ready(Some(chunk("x")))
        }));
        let Some(Piece::Data(first)) = pieces.recv().await else {
            panic!("the stream has no end");
        };
        assert!(first.len() <= 6, "{} chunks of 2 ms", first.len());
    }

    #[tokio::test]
    async fn dropping_the_reader_drops_the_connection_in_any_state() {
        let (silent, pieces) = server(&[], None);
        let_run().await;
        assert!(!silent.is_closed());
        drop(pieces);
        let_run().await;
        assert!(silent.is_closed(), "while it waits for the server");

        let (busy, pieces) = connection();
        let mut sent = 0;
        let full = Bytes::from(vec![b'x'; CHUNK_BYTES]);
        while busy.try_send(Ok(full.clone())).is_ok() {
            sent += 1;
            let_run().await;
        }
        assert!(sent > CHUNKS_AHEAD && !busy.is_closed());
        drop(pieces);
        let_run().await;
        assert!(busy.is_closed(), "while it waits for the reader");
    }

    #[tokio::test]
    async fn a_task_that_was_stopped_is_not_the_end_of_the_body() {
        let (tx, rx) = mpsc::channel(CHUNKS_AHEAD);
        let mut body = Body {
            head: None,
            pieces: Some(rx),
            idle: None,
            target: "http://a.test".to_owned(),
        };
        tx.try_send(Piece::Data(b"part".to_vec())).expect("room");
        drop(tx);
        let part = poll_fn(|cx| body.poll_next(cx)).await;
        assert_eq!(part, Some(Ok(b"part".to_vec())));
        let failure = poll_fn(|cx| body.poll_next(cx)).await;
        let failure = failure.expect("an error").expect_err("an error");
        assert!(failure.is(code::NETWORK), "{failure}");
        assert_eq!(poll_fn(|cx| body.poll_next(cx)).await, None);
    }

    #[tokio::test]
    async fn the_idle_limit_ends_the_task_and_starts_again_with_every_piece() {
        let limit = Duration::from_millis(200);
        let (tx, mut chunks) = mpsc::channel::<reqwest::Result<Bytes>>(1);
        let mut body = Body {
            head: None,
            pieces: Some(read(stream::poll_fn(move |cx| chunks.poll_recv(cx)))),
            idle: Some(Idle {
                limit,
                timer: Box::pin(sleep_until(Instant::now())),
                waiting: false,
            }),
            target: "http://a.test".to_owned(),
        };
        let sender = tx.clone();
        tokio::spawn(async move {
            for _ in 0..3 {
                tokio::time::sleep(limit * 2 / 5).await;
                let sent = sender.send(Ok(Bytes::from_static(b"x"))).await;
                sent.expect("somebody reads");
            }
        });
        for _ in 0..3 {
            let part = poll_fn(|cx| body.poll_next(cx)).await;
            assert_eq!(part, Some(Ok(b"x".to_vec())));
        }
        // The reader is slow, not the server.
        tokio::time::sleep(limit * 2).await;
        let waiting = Instant::now();
        let failure = poll_fn(|cx| body.poll_next(cx)).await;
        let failure = failure.expect("an error").expect_err("an error");
        assert!(failure.is(code::TIMEOUT), "{failure}");
        assert!(waiting.elapsed() >= limit, "{:?}", waiting.elapsed());
        let_run().await;
        assert!(tx.is_closed(), "the connection is gone");
        assert_eq!(poll_fn(|cx| body.poll_next(cx)).await, None);
    }
}
