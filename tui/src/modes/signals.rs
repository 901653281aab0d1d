//! Signals that ask the process to end, and the exit status each means.

use std::future::Future;
use std::time::Duration;

use pliant_kernel::session::Session;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A request to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupt {
    /// Exit status after an orderly end.
    pub status: u8,
}

/// Waits for SIGINT, SIGTERM or SIGHUP.
pub async fn interrupt() -> Interrupt {
    let status = tokio::select! {
        () = next(SignalKind::interrupt()) => 130,
        () = next(SignalKind::terminate()) => 143,
        () = next(SignalKind::hangup()) => 129,
    };
    Interrupt { status }
}

/// How long an aborted run may take to store what it has.
const ORDERLY: Duration = Duration::from_secs(3);

/// Runs to the end, unless a signal asks to stop: then the session's run is aborted, its end awaited
/// so that it is stored, and the signal's status answered. A second signal ends the wait.
pub async fn unless_interrupted<T>(
    session: &Session,
    running: impl Future<Output = T>,
) -> Result<T, u8> {
    tokio::pin!(running);
    let Interrupt { status } = tokio::select! {
        done = &mut running => return Ok(done),
        interrupt = interrupt() => interrupt,
    };
    session.cancel();
    tokio::select! {
        _ = running => {}
        _ = interrupt() => {}
        () = tokio::time::sleep(ORDERLY) => {}
    }
    Err(status)
}

async fn next(kind: SignalKind) {
    let received = signal(kind).map(|mut signal: Signal| async move { signal.recv().await });
    match received {
        Ok(received) => drop(received.await),
        // Without the handler the signal does what it does by default.
        Err(_) => std::future::pending().await,
    }
}
