//! Calls start, end and are answered.

use pliant_sdk::{Event, Message};

use super::{Broken, require};

/// Invariants 16 and 17: every call of an answer that did not fail starts once, ends once, and has one
/// result, in the order of the calls.
#[derive(Default)]
pub struct Calls(Vec<Call>);

struct Call {
    id: String,
    started: bool,
    ended: bool,
    answered: bool,
}

impl Calls {
    pub fn see(&mut self, event: &Event) -> Broken {
        match event {
            Event::MessageEnd { message } => self.message(message),
            Event::ToolExecutionStart {
                tool_call_id,
                parent_tool_call_id: None,
                ..
            } => {
                let next = self.0.iter_mut().find(|call| !call.started);
                let next = next.ok_or("a call starts that nobody made")?;
                next.started = true;
                require(next.id == *tool_call_id, "calls start in another order")
            }
            Event::ToolExecutionUpdate {
                tool_call_id,
                parent_tool_call_id: None,
                ..
            } => {
                let running = |call: &&Call| call.started && !call.ended;
                let mut running = self.0.iter().filter(running);
                require(
                    running.any(|call| call.id == *tool_call_id),
                    "a call is updated that does not run",
                )
            }
            Event::ToolExecutionEnd {
                tool_call_id,
                parent_tool_call_id: None,
                ..
            } => {
                // Two calls may have one id (then only the first of them runs).
                let running = |call: &&mut Call| call.started && !call.ended;
                let mut running = self.0.iter_mut().filter(running);
                let call = running.find(|call| call.id == *tool_call_id);
                call.ok_or("a call ends that does not run")?.ended = true;
                Ok(())
            }
            Event::TurnEnd { tool_results, .. } => {
                require(
                    self.0.iter().all(|call| call.ended && call.answered),
                    "a turn ends and a call has no end or no result",
                )?;
                require(
                    tool_results.len() == self.0.len(),
                    "a turn ends with more or fewer results than calls",
                )?;
                self.0.clear();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn message(&mut self, message: &Message) -> Broken {
        match message {
            Message::Assistant(answer) if !answer.stop_reason.is_failure() => {
                self.0.extend(answer.tool_calls().map(|call| Call {
                    id: call.id.clone(),
                    started: false,
                    ended: false,
                    answered: false,
                }));
                Ok(())
            }
            Message::ToolResult(result) => {
                let next = self.0.iter_mut().find(|call| !call.answered);
                let next = next.ok_or("a result answers no call")?;
                next.answered = true;
                require(
                    next.id == result.tool_call_id,
                    "results come in another order than the calls",
                )?;
                require(next.ended, "a result comes before its call has ended")
            }
            _ => Ok(()),
        }
    }
}
