//! What a generation leaves to the next: the old one stops writing, exports, and the new one takes it or
//! refuses it (`plugin-abi.md` §5). Only for what may be lost: what must survive a crash is stored.

use std::sync::Arc;
use std::time::Duration;

use pliant_sdk::error::code;
use pliant_sdk::state::{EXPORT, IMPORT, Imported, LARGEST, QUIESCE, RESUME};
use pliant_sdk::{Error, catch};

use crate::registry::Generation;

/// Longest time for each step.
const LIMIT: Duration = Duration::from_secs(1);

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HandedOver {
    /// There is nothing to hand over.
    Nothing,
    /// The new generation has it.
    Taken,
    /// The new generation starts afresh, and says why.
    Refused(String),
}

/// Hands the state of `old` to `new`. When that fails, `old` is what it was and goes on.
pub(super) async fn hand_over(
    old: &Arc<dyn Generation>,
    new: &Arc<dyn Generation>,
) -> Result<HandedOver, String> {
    match control(old, QUIESCE, b"null".to_vec()).await {
        Ok(_) => {}
        Err(error) if error.is(code::UNSUPPORTED) => {}
        Err(error) => return Err(failed(old, "could not stop for it", &error).await),
    }
    let exported = match control(old, EXPORT, b"null".to_vec()).await {
        Ok(exported) => exported,
        Err(error) if error.is(code::UNSUPPORTED) => return Ok(HandedOver::Nothing),
        Err(error) => return Err(failed(old, "could not export it", &error).await),
    };
    if exported.len() > LARGEST {
        let size = exported.len() >> 10;
        let error = Error::invalid(format!(
            "it has {size} KB, and {} KB may be handed over; store more by the service state.put",
            LARGEST >> 10
        ));
        return Err(failed(old, "exported too much", &error).await);
    }
    let imported = match control(new, IMPORT, exported).await {
        Ok(imported) => serde_json::from_slice::<Imported>(&imported).map_err(Error::from),
        Err(error) if error.is(code::UNSUPPORTED) => {
            return Ok(HandedOver::Refused("it takes no state".to_owned()));
        }
        Err(error) => Err(error),
    };
    match imported {
        Ok(Imported { accepted: true, .. }) => Ok(HandedOver::Taken),
        Ok(Imported { reason, .. }) => Ok(HandedOver::Refused(
            reason.unwrap_or_else(|| "it gave no reason".to_owned()),
        )),
        Err(error) => Err(failed(old, "was not imported", &error).await),
    }
}

/// The old generation goes on; the sentence of the failure.
async fn failed(old: &Arc<dyn Generation>, what: &str, error: &Error) -> String {
    // One that knows nothing of this has nothing to resume.
    let _ = control(old, RESUME, b"null".to_vec()).await;
    format!("its state {what}: {error}")
}

/// Runs an operation and waits no longer than the limit. On a thread of its own: one that never returns
/// must not be waited for at the end of the program, as threads of the runtime are.
pub(super) async fn control(
    generation: &Arc<dyn Generation>,
    op: &'static str,
    payload: Vec<u8>,
) -> Result<Vec<u8>, Error> {
    let generation = Arc::clone(generation);
    let (tell, told) = tokio::sync::oneshot::channel();
    let run = move || {
        let answer = catch(|| generation.control(op, &payload)).and_then(|answer| answer);
        drop(generation);
        // Nobody waits any more when the limit has passed.
        let _ = tell.send(answer);
    };
    let thread = std::thread::Builder::new().name("hand-over".to_owned());
    thread
        .spawn(run)
        .map_err(|error| Error::failed(error.to_string()))?;
    match tokio::time::timeout(LIMIT, told).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Err(Error::failed(format!("{op} ended without an answer"))),
        Err(_) => Err(Error::failed(format!(
            "{op} took longer than {} s",
            LIMIT.as_secs()
        ))),
    }
}
