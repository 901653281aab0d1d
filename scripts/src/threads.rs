//! Threads that scripts run on.
//!
//! The runtime's blocking pool would do but for two things. Its stacks (2 MiB) do not hold the 64
//! calls a script may nest, and an overflow ends the process: in a debug build of Rhai 1.27, 60 calls
//! of a plain function take 2.1 MiB, and of one with expressions as deep as the limits allow 26 MiB.
//! And a script may wait long, for a dialog or a process, which must not use up the pool that file
//! access needs. Threads are made when all are busy and end after some idle time.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pliant_sdk::Error;
use pliant_sdk::error::code;

/// Reserved, not used: only pages that are touched take memory.
const STACK_SIZE: usize = 64 << 20;
/// Where [`crate::call::Call::tick`] ends a script. What is left is for host functions and for
/// what Rhai does between two ticks.
pub(crate) const STACK_LIMIT: usize = 48 << 20;
const IDLE_TIME: Duration = Duration::from_secs(10);

/// How long somebody stays awake for what comes soon.
const AWAKE: Duration = Duration::from_micros(40);
const LOOKS_PER_TIME: u32 = 16;

static MANY_PROCESSORS: LazyLock<bool> =
    LazyLock::new(|| std::thread::available_parallelism().is_ok_and(|count| count.get() > 1));

type Job = Box<dyn FnOnce() + Send>;

static IDLE: Mutex<Vec<Idle>> = Mutex::new(Vec::new());

struct Idle {
    thread: std::thread::ThreadId,
    jobs: SyncSender<Job>,
}

/// Runs a job on a thread of its own. The job catches its panics.
///
/// # Errors
/// When the system has no thread to give.
pub(crate) fn spawn(mut job: Job) -> Result<(), Error> {
    while let Some(idle) = take_idle() {
        match idle.jobs.send(job) {
            Ok(()) => return Ok(()),
            Err(refused) => job = refused.0,
        }
    }
    std::thread::Builder::new()
        .name("script".to_owned())
        .stack_size(STACK_SIZE)
        .spawn(move || work(job))
        .map(drop)
        .map_err(|error| {
            Error::new(
                code::IO,
                format!("no thread could be started for a script: {error}"),
            )
        })
}

fn work(first: Job) {
    let (jobs, queue) = sync_channel(1);
    first();
    loop {
        put_idle(Idle {
            thread: std::thread::current().id(),
            jobs: jobs.clone(),
        });
        match next(&queue) {
            Some(job) => job(),
            None => return,
        }
    }
}

fn next(queue: &Receiver<Job>) -> Option<Job> {
    // Handlers come in rows, one right after another.
    if let Some(job) = soon(|| queue.try_recv().ok()) {
        return Some(job);
    }
    match queue.recv_timeout(IDLE_TIME) {
        Ok(job) => Some(job),
        // Taken from the list already: somebody is about to send.
        Err(RecvTimeoutError::Timeout) if !withdraw() => queue.recv().ok(),
        Err(_) => None,
    }
}

/// Looks again and again for a few microseconds. To sleep and to be woken takes longer than most handlers
/// do, and a row of them would be nothing but that. With a single processor who is waited for needs it.
pub(crate) fn soon<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    if !*MANY_PROCESSORS {
        return look();
    }
    let begun = Instant::now();
    loop {
        for _ in 0..LOOKS_PER_TIME {
            if let Some(found) = look() {
                return Some(found);
            }
            std::hint::spin_loop();
        }
        if begun.elapsed() > AWAKE {
            return None;
        }
    }
}

fn take_idle() -> Option<Idle> {
    idle().pop()
}

fn put_idle(entry: Idle) {
    idle().push(entry);
}

/// Takes the current thread from the list; false if it is not there any more.
fn withdraw() -> bool {
    let this = std::thread::current().id();
    let mut list = idle();
    let before = list.len();
    list.retain(|entry| entry.thread != this);
    list.len() < before
}

fn idle() -> std::sync::MutexGuard<'static, Vec<Idle>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}
