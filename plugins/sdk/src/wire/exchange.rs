//! One exchange of a wire with its service. The host sends the request and adds the credential, so no
//! key is ever seen here; the answer is read event by event.

use crate::error::{Error, code};
use crate::host::{FramedRequest, Host, HttpResponse};
use crate::message::AssistantMessage;
use crate::provider::StreamOut;
use crate::sse::Decoder;
use crate::stream::StreamEvent;

use super::failure;

/// Longest body that is read of an answer that is no stream.
const MAX_ERROR_BYTES: usize = 1 << 20;

/// What one event led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// More may come.
    Continue,
    /// The protocol's own end; what follows is not read.
    Done,
}

/// Makes an answer of the events of a service. No I/O.
pub trait Reader: Send + Sized {
    /// Takes one event: its name and its data.
    ///
    /// # Errors
    /// The text of the failure; [`Reader::fail`] follows.
    fn take(
        &mut self,
        event: Option<&str>,
        data: &str,
        sink: &mut Vec<StreamEvent>,
    ) -> Result<Step, String>;

    /// The stream is over. It may have ended too early.
    fn finish(self, sink: &mut Vec<StreamEvent>) -> AssistantMessage;

    /// The answer broke: what arrived stays, with this text.
    fn fail(self, text: String) -> AssistantMessage;

    /// The failure that a JSON body tells which came where a stream was due; `None` when it tells
    /// none.
    fn told(body: &serde_json::Value) -> Option<String>;
}

/// What a service answered a request.
#[derive(Debug)]
pub enum Response {
    /// A success: something to [`read`].
    Stream(HttpResponse),
    /// An error status.
    Refused {
        /// The status.
        status: u16,
        /// Its body, as text.
        body: String,
    },
}

/// Sends a request.
///
/// # Errors
/// When no answer came, or only the beginning of a refusal: see [`broken`].
pub async fn send(request: FramedRequest, host: &Host) -> Result<Response, Error> {
    let mut response = host.http_framed(request).await?;
    let status = response.status;
    if (200..300).contains(&status) {
        return Ok(Response::Stream(response));
    }
    match response.body.read_to_end(MAX_ERROR_BYTES).await {
        Ok(body) => Ok(Response::Refused {
            status,
            body: String::from_utf8_lossy(&body).into_owned(),
        }),
        Err(error) => {
            let message = format!("{status} {}", error.message);
            Err(Error { message, ..error })
        }
    }
}

/// A caller that gave up gets no message; any other failure is one.
///
/// # Errors
/// The caller gave up.
pub fn broken(reader: impl Reader, error: Error) -> Result<AssistantMessage, Error> {
    match error.is(code::CANCELLED) {
        true => Err(error),
        false => Ok(reader.fail(error.message)),
    }
}

/// Reads a stream to its end.
///
/// # Errors
/// The caller gave up; every other failure is a message.
pub async fn read(
    mut response: HttpResponse,
    mut reader: impl Reader,
    out: &StreamOut,
) -> Result<AssistantMessage, Error> {
    let mut events = vec![StreamEvent::Start];
    out.send_all(&mut events).await?;
    let mut decoder = Decoder::new();
    let mut at_end = false;
    // What came before the first event; a service that sends no stream sends nothing else.
    let mut unheard = Some(Vec::new());
    while !at_end {
        let taken = match response.body.next().await {
            Some(Ok(bytes)) => {
                if let Some(unheard) = &mut unheard {
                    let room = MAX_ERROR_BYTES.saturating_sub(unheard.len());
                    unheard.extend_from_slice(&bytes[..bytes.len().min(room)]);
                }
                take(&mut decoder, &bytes, &mut reader, &mut events)
            }
            Some(Err(error)) => return broken(reader, error),
            None => {
                at_end = true;
                // An event without its blank line counts too.
                let (last, _) = decoder.finish_lent();
                last.map(|last| reader.take(last.event, last.data, &mut events))
                    .transpose()
            }
        };
        match taken {
            Ok(None) => {}
            Ok(Some(step)) => {
                unheard = None;
                at_end |= step == Step::Done;
            }
            Err(text) => {
                out.send_all(&mut events).await?;
                return Ok(reader.fail(text));
            }
        }
        out.send_all(&mut events).await?;
    }
    if let Some(text) = no_stream(&reader, unheard.unwrap_or_default()) {
        return Ok(reader.fail(text));
    }
    let message = reader.finish(&mut events);
    out.send_all(&mut events).await?;
    Ok(message)
}

/// Takes the events that some bytes complete, up to the end; answers what the last one led to, if there
/// was one.
fn take(
    decoder: &mut Decoder,
    bytes: &[u8],
    reader: &mut impl Reader,
    events: &mut Vec<StreamEvent>,
) -> Result<Option<Step>, String> {
    let mut frames = decoder.frames(bytes);
    let mut step = None;
    while step != Some(Step::Done)
        && let Some(frame) = frames.next().map_err(|error| error.to_string())?
    {
        step = Some(reader.take(frame.event, frame.data, events)?);
    }
    Ok(step)
}

fn no_stream<R: Reader>(_: &R, body: Vec<u8>) -> Option<String> {
    failure::of_no_stream(&String::from_utf8_lossy(&body), R::told)
}
