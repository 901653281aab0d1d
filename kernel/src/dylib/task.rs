//! A call on the plugin workers. It is polled by one worker at a time; who waits for its answer may be
//! anywhere, and gives it up by letting go of it. Then the worker drops it, after the poll that may be
//! under way, and before anybody hears that it is over: what it holds is the plugin's.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};

use pliant_sdk::error::code;
use pliant_sdk::{Error, catch};

use super::pulse::{Beat, Pulse};
use super::workers::{Work, Workers};

type Running<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

/// A call, shared by the worker that polls it, what wakes it, and who waits for it.
pub(super) struct Task<T> {
    running: Mutex<Option<Running<T>>>,
    phase: AtomicU8,
    is_given_up: AtomicBool,
    answer: Mutex<Answer<T>>,
    beat: Arc<Beat>,
    pulse: Option<Arc<Pulse>>,
    workers: Weak<Workers>,
}

struct Answer<T> {
    answer: Option<Result<T, Error>>,
    waker: Option<Waker>,
}

/// It waits to be woken.
const ASLEEP: u8 = 0;
/// It is in the queue.
const QUEUED: u8 = 1;
/// A worker has it.
const POLLED: u8 = 2;
/// A worker has it, and it was woken meanwhile.
const WOKEN: u8 = 3;
/// It is over.
const OVER: u8 = 4;

impl<T: Send + 'static> Task<T> {
    /// Puts a call in the queue of the workers. A poll that hangs is a mark in `pulse`.
    pub(super) fn start(
        workers: &Arc<Workers>,
        pulse: Option<Arc<Pulse>>,
        future: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> PluginTask<T> {
        let task = Arc::new(Self {
            running: Mutex::new(Some(Box::pin(future))),
            phase: AtomicU8::new(ASLEEP),
            is_given_up: AtomicBool::new(false),
            answer: Mutex::new(Answer {
                answer: None,
                waker: None,
            }),
            beat: Arc::default(),
            pulse,
            workers: Arc::downgrade(workers),
        });
        task.wake_by_ref();
        PluginTask(Inner::Started(task))
    }

    fn give_it_up(self: &Arc<Self>) {
        self.is_given_up.store(true, SeqCst);
        if let Some(pulse) = &self.pulse {
            pulse.note(&self.beat);
        }
        self.wake_by_ref();
    }

    /// Polls it once; its answer, if it has one.
    fn poll(self: &Arc<Self>) -> Option<Result<T, Error>> {
        let mut running = lock(&self.running);
        let future = running.as_mut()?;
        let polled = if self.is_given_up.load(SeqCst) {
            Poll::Ready(Err(Error::cancelled()))
        } else {
            let waker = Waker::from(Arc::clone(self));
            let polled = catch(|| future.as_mut().poll(&mut Context::from_waker(&waker)));
            polled.unwrap_or_else(|panic| Poll::Ready(Err(outside_its_guard(&panic))))
        };
        match polled {
            Poll::Pending => None,
            Poll::Ready(answer) => {
                // Its code may run once more here.
                let dropped = catch(|| drop(running.take()));
                Some(answer.and_then(|value| match dropped {
                    Ok(()) => Ok(value),
                    Err(panic) => Err(outside_its_guard(&panic)),
                }))
            }
        }
    }

    fn answer(&self, answer: Result<T, Error>) {
        self.phase.store(OVER, SeqCst);
        let waker = {
            let mut place = lock(&self.answer);
            place.answer = Some(answer);
            place.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn queue(self: &Arc<Self>) {
        match self.workers.upgrade() {
            Some(workers) => workers.add(Arc::clone(self) as Arc<dyn Work>),
            None => self.give_up(Error::cancelled()),
        }
    }

    /// Moves from one phase to another, if it is in the one.
    fn moves(&self, from: u8, to: u8) -> bool {
        self.phase
            .compare_exchange(from, to, SeqCst, SeqCst)
            .is_ok()
    }
}

fn outside_its_guard(panic: &Error) -> Error {
    Error::new(
        code::PANIC,
        format!("panicked outside its own guard: {panic}"),
    )
}

impl<T: Send + 'static> Wake for Task<T> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        loop {
            match self.phase.load(SeqCst) {
                ASLEEP if self.moves(ASLEEP, QUEUED) => return self.queue(),
                POLLED if self.moves(POLLED, WOKEN) => return,
                ASLEEP | POLLED => {}
                _ => return,
            }
        }
    }
}

impl<T: Send + 'static> Work for Task<T> {
    fn carry_on(self: Arc<Self>) {
        self.phase.store(POLLED, SeqCst);
        self.beat.begin();
        if self.is_given_up.load(SeqCst)
            && let Some(pulse) = &self.pulse
        {
            pulse.note(&self.beat);
        }
        let answer = self.poll();
        self.beat.end();
        if self.is_given_up.load(SeqCst)
            && let Some(pulse) = &self.pulse
        {
            pulse.clear(&self.beat);
        }
        match answer {
            Some(answer) => self.answer(answer),
            None if self.moves(POLLED, ASLEEP) => {}
            None => {
                self.phase.store(QUEUED, SeqCst);
                self.queue();
            }
        }
    }

    fn give_up(&self, reason: Error) {
        let running = lock(&self.running).take();
        // Its code may run once more here, and nobody is told of what it does.
        let _ = catch(|| drop(running));
        self.answer(Err(reason));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a call on the plugin workers; letting go of it gives the call up.
pub struct PluginTask<T: Send + 'static>(Inner<T>);

enum Inner<T> {
    Started(Arc<Task<T>>),
    Failed(Option<Error>),
}

impl<T: Send + 'static> std::fmt::Debug for PluginTask<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PluginTask")
    }
}

impl<T: Send + 'static> PluginTask<T> {
    /// One that never began.
    pub(super) fn failed(error: Error) -> Self {
        Self(Inner::Failed(Some(error)))
    }
}

impl<T: Send + 'static> Future for PluginTask<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let task = match &mut self.0 {
            Inner::Started(task) => task,
            Inner::Failed(error) => {
                return Poll::Ready(Err(error.take().unwrap_or_else(Error::cancelled)));
            }
        };
        let mut place = lock(&task.answer);
        if let Some(answer) = place.answer.take() {
            return Poll::Ready(answer);
        }
        match &mut place.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => place.waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl<T: Send + 'static> Drop for PluginTask<T> {
    fn drop(&mut self) {
        if let Inner::Started(task) = &self.0
            && task.phase.load(SeqCst) != OVER
        {
            task.give_it_up();
        }
    }
}
