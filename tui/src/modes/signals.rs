//! Signals that ask the process to end. One thread listens to them from the session's beginning to the
//! end of the process, so that none is lost, and whatever hangs (a reader of stdout, a plugin), the
//! process ends: first the mode gets time to store what it has, then it is over.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Sleep, sleep, timeout};

/// The exit status that Ctrl-C means.
pub const INTERRUPT: u8 = 130;

/// How long a run that was told to stop may take to store what it has.
const ORDERLY: Duration = Duration::from_secs(3);

/// What is left after another signal, or when the time is over, to drop what still runs. A terminal
/// that closes sends its signal twice, so the second is not yet the end.
const LAST: Duration = Duration::from_millis(500);

/// What SIGINT asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnInterrupt {
    /// The end, as the other signals do.
    End,
    /// What the mode makes of it: somebody types Ctrl-C to stop an answer.
    Tell,
}

/// The signals of the process, each as the exit status that it means.
#[derive(Debug)]
pub struct Signals(mpsc::Receiver<u8>);

impl Signals {
    /// From now on SIGINT, SIGTERM and SIGHUP are told here; once this is dropped, they end the
    /// process at once.
    ///
    /// # Errors
    /// When the system refuses the thread or a handler.
    pub fn listen(on_interrupt: OnInterrupt) -> io::Result<Self> {
        let (asked, receiver) = mpsc::channel(1);
        let (ready, listening) = std::sync::mpsc::sync_channel(1);
        let guard = move || {
            // A loop of its own: the main one may be what hangs.
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let streams = runtime.and_then(|runtime| {
                let _inside = runtime.enter();
                Ok((Streams::new()?, runtime))
            });
            match streams {
                Ok((streams, runtime)) => {
                    let _ = ready.send(Ok(()));
                    let status = runtime.block_on(watch(streams, asked, on_interrupt));
                    std::process::exit(status.into());
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        };
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(guard)?;
        listening.recv().map_err(io::Error::other)??;
        Ok(Self(receiver))
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> u8 {
        match self.0.recv().await {
            Some(status) => status,
            // The thread lives as long as the process.
            None => std::future::pending().await,
        }
    }
}

/// Returns when the process is to end, with the status.
async fn watch(mut streams: Streams, asked: mpsc::Sender<u8>, on_interrupt: OnInterrupt) -> u8 {
    loop {
        let status = streams.next().await;
        // Nobody takes it: the mode is done, or hangs since the last one.
        if asked.try_send(status).is_err() {
            return status;
        }
        if status == INTERRUPT && on_interrupt == OnInterrupt::Tell {
            continue;
        }
        let _ = timeout(ORDERLY, streams.next()).await;
        let _ = timeout(LAST, streams.next()).await;
        return status;
    }
}

/// Lets something that was told to stop come to its end, but not for ever.
pub async fn orderly<T>(ending: impl Future<Output = T>) -> Option<T> {
    timeout(ORDERLY, ending).await.ok()
}

/// The time that [`orderly`] gives.
pub fn patience() -> Sleep {
    sleep(ORDERLY)
}

struct Streams {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Streams {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => INTERRUPT,
            _ = self.terminate.recv() => 143,
            _ = self.hangup.recv() => 129,
        }
    }
}
