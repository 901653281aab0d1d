//! Calls inside calls as services offer them: what the agent's lane runs, in the shapes of the SDK.

use std::task::{Context, Poll, ready};

use pliant_sdk::Error;
use pliant_sdk::host::{BoxFuture, ByteStream, PollBytes};
use pliant_sdk::session::{CallPiece, CalledTool};
use serde_json::Value;

use crate::agent::{NestedCall, NestedCalls, NestedEnd};
use crate::host::actions::{ToolCallMade, ToolCalls};

impl ToolCalls for NestedCalls {
    fn call(&self, name: &str, arguments: Value) -> Result<Box<dyn ToolCallMade>, Error> {
        Ok(Box::new(NestedCalls::call(self, name, arguments)?))
    }
}

impl ToolCallMade for NestedCall {
    fn leave(self: Box<Self>) -> String {
        let id = self.id().to_owned();
        NestedCall::leave(*self);
        id
    }

    fn end(self: Box<Self>) -> BoxFuture<'static, CalledTool> {
        Box::pin(async move { called(NestedCall::end(*self).await) })
    }

    fn watch(self: Box<Self>) -> ByteStream {
        ByteStream::new(Watch(next(*self)))
    }
}

fn called(end: NestedEnd) -> CalledTool {
    CalledTool {
        tool_call: end.call,
        is_error: end.result.is_error,
        result: end.result,
        duration_ms: end.duration_ms,
    }
}

/// Answers the next piece, and the call while more can come.
type Next = BoxFuture<'static, (CallPiece, Option<NestedCall>)>;

fn next(call: NestedCall) -> Option<Next> {
    Some(Box::pin(async move {
        match call.update().await {
            Some(partial) => (CallPiece::Update(Box::new(partial)), Some(call)),
            None => (CallPiece::End(Box::new(called(call.end().await))), None),
        }
    }))
}

/// A call as the stream of its pieces.
struct Watch(Option<Next>);

impl PollBytes for Watch {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
        let Some(waiting) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let (piece, call) = ready!(waiting.as_mut().poll(cx));
        self.0 = call.and_then(next);
        Poll::Ready(Some(serde_json::to_vec(&piece).map_err(Error::from)))
    }
}
