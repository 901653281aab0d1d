//! Rules that the event stream of every run must satisfy (`interfaces.md` §7, "Ordering guarantees").
//! Lines of the JSON mode come in; the first line that breaks a rule makes the check panic.

use serde_json::Value;

/// Checks a whole stream: the session header, then every event up to the settled one.
///
/// # Panics
/// At the first event that breaks a rule.
pub(crate) fn check(lines: &[Value]) {
    let mut order = Order::default();
    for (at, line) in lines.iter().enumerate() {
        if let Err(rule) = order.see(at, line) {
            panic!(
                "line {at} of the event stream: {rule}\n{line}\nbefore it: {:#?}",
                &lines[..at]
            );
        }
    }
    assert!(
        order.settled,
        "the event stream does not end with agent_settled: {lines:#?}"
    );
}

/// Checks one run, without a header: what a client sees from a prompt to its settled event.
///
/// # Panics
/// As [`check`].
#[track_caller]
pub(crate) fn check_run(events: &[Value]) {
    let header = serde_json::json!({"type": "session", "version": 3});
    let lines: Vec<Value> = std::iter::once(header)
        .chain(events.iter().cloned())
        .collect();
    check(&lines);
}

type Broken = Result<(), String>;

#[derive(Default)]
struct Order {
    run: bool,
    turn: bool,
    settled: bool,
    /// Role of the message that has started and not ended.
    message: Option<String>,
    /// Open content blocks of it: index and kind.
    blocks: Vec<(u64, String)>,
    /// The calls of the turn's reply, in their order.
    calls: Vec<Call>,
}

struct Call {
    id: String,
    started: bool,
    ended: bool,
    answered: bool,
}

impl Order {
    fn see(&mut self, at: usize, event: &Value) -> Broken {
        let kind = event["type"].as_str().ok_or("an event has a type")?;
        require(
            (kind == "session") == (at == 0),
            "the header is the first line, and only that",
        )?;
        require(!self.settled, "agent_settled is the last event")?;
        // Calls inside calls have no place in the transcript (T19).
        if event.get("parentToolCallId").is_some() {
            return Ok(());
        }
        match kind {
            "session" => require(event["version"] == 3, "the header has version 3"),
            "agent_start" => enter(&mut self.run, "a run starts once"),
            "turn_start" => {
                require(self.run, "a turn is part of a run")?;
                enter(&mut self.turn, "turns do not nest")
            }
            "message_start" => self.message_start(&event["message"]),
            "message_update" => self.update(&event["assistantMessageEvent"]),
            "message_end" => self.message_end(&event["message"]),
            "tool_execution_start" => self.tool_start(event),
            "tool_execution_update" => {
                let call = self.call(event)?;
                require(
                    call.started && !call.ended,
                    "a call is updated while it runs",
                )
            }
            "tool_execution_end" => {
                let call = self.call(event)?;
                require(
                    call.started && !call.ended,
                    "a call ends once, after its start",
                )?;
                call.ended = true;
                Ok(())
            }
            "turn_end" => {
                let results = event["toolResults"].as_array().map_or(0, Vec::len);
                require(
                    results == self.calls.len(),
                    "a turn ends with a result for each call",
                )?;
                require(
                    self.calls.iter().all(|call| call.answered),
                    "every call is answered",
                )?;
                self.calls.clear();
                leave(&mut self.turn, "a turn ends once")
            }
            "agent_end" => {
                require(!self.turn, "a run ends after its turns")?;
                leave(&mut self.run, "a run ends once")
            }
            "agent_settled" => {
                require(!self.run, "a session settles after its runs")?;
                self.settled = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn message_start(&mut self, message: &Value) -> Broken {
        let role = message["role"].as_str().ok_or("a message has a role")?;
        require(self.message.is_none(), "messages do not nest")?;
        if matches!(role, "user" | "assistant" | "toolResult") {
            require(self.turn, "a message is part of a turn")?;
        }
        if role == "assistant" && message["stopReason"] != "error" {
            let empty = message["content"].as_array().is_some_and(Vec::is_empty);
            let pending = message["stopReason"] == "pending";
            require(empty && pending, "a reply starts empty and pending")?;
        }
        self.message = Some(role.to_owned());
        Ok(())
    }

    fn update(&mut self, event: &Value) -> Broken {
        require(
            self.message.as_deref() == Some("assistant"),
            "only an open reply is updated",
        )?;
        require(
            event.get("partial").is_none(),
            "no event repeats what came before",
        )?;
        let kind = event["type"].as_str().ok_or("an update has a type")?;
        let index = event["contentIndex"]
            .as_u64()
            .ok_or("an update has a content index")?;
        let (block, step) = kind
            .split_once('_')
            .ok_or("an update names block and step")?;
        let open = self
            .blocks
            .iter()
            .position(|known| *known == (index, block.to_owned()));
        match (step, open) {
            ("start", None) => self.blocks.push((index, block.to_owned())),
            ("delta", Some(_)) => {}
            ("end", Some(open)) => drop(self.blocks.remove(open)),
            _ => return Err("a block has a start, deltas and an end".to_owned()),
        }
        Ok(())
    }

    fn message_end(&mut self, message: &Value) -> Broken {
        let role = message["role"].as_str().unwrap_or_default();
        require(
            self.message.take().as_deref() == Some(role),
            "a message ends after its start",
        )?;
        match role {
            "assistant" => self.reply_end(message),
            "toolResult" => {
                let next = self.calls.iter_mut().find(|call| !call.answered);
                let next = next.ok_or("a result belongs to a call of the turn's reply")?;
                require(
                    message["toolCallId"] == *next.id,
                    "results come in the order of the calls",
                )?;
                require(next.ended, "a result comes after the end of its call")?;
                next.answered = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn reply_end(&mut self, message: &Value) -> Broken {
        let reason = message["stopReason"].as_str().unwrap_or_default();
        require(reason != "pending", "a finished reply is not pending")?;
        let failed = matches!(reason, "error" | "aborted");
        // A call that broke off is none.
        let is_over = |(_, kind): &(u64, String)| failed && kind == "toolcall";
        require(
            self.blocks.iter().all(is_over),
            "the blocks end before their message",
        )?;
        self.blocks.clear();
        let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
        let calls = blocks
            .iter()
            .filter(|block| block["type"] == "toolCall" && !failed);
        self.calls.extend(calls.map(|call| Call {
            id: call["id"].as_str().unwrap_or_default().to_owned(),
            started: false,
            ended: false,
            answered: false,
        }));
        Ok(())
    }

    fn tool_start(&mut self, event: &Value) -> Broken {
        require(
            self.message.is_none(),
            "calls start after the end of their reply",
        )?;
        let next = self.calls.iter_mut().find(|call| !call.started);
        let next = next.ok_or("a call that starts belongs to the turn's reply")?;
        require(
            event["toolCallId"] == *next.id,
            "calls start in their order",
        )?;
        next.started = true;
        Ok(())
    }

    fn call(&mut self, event: &Value) -> Result<&mut Call, String> {
        let found = self
            .calls
            .iter_mut()
            .find(|call| event["toolCallId"] == *call.id);
        found.ok_or_else(|| "the call belongs to the turn's reply".to_owned())
    }
}

fn require(holds: bool, rule: &str) -> Broken {
    if holds { Ok(()) } else { Err(rule.to_owned()) }
}

fn enter(inside: &mut bool, rule: &str) -> Broken {
    require(!*inside, rule)?;
    *inside = true;
    Ok(())
}

fn leave(inside: &mut bool, rule: &str) -> Broken {
    require(*inside, rule)?;
    *inside = false;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::panic;

    use serde_json::json;

    use super::*;

    /// One turn with two calls, as short as the rules allow.
    fn stream() -> Vec<Value> {
        let reply = |reason: &str, content: Value| json!({"role": "assistant", "stopReason": reason, "content": content});
        let call = |id: &str| json!({"type": "toolCall", "id": id});
        let update =
            |event: Value| json!({"type": "message_update", "assistantMessageEvent": event});
        let tool = |step: &str, id: &str| json!({"type": format!("tool_execution_{step}"), "toolCallId": id});
        let result = |step: &str, id: &str| {
            let message = json!({"role": "toolResult", "toolCallId": id});
            json!({"type": format!("message_{step}"), "message": message})
        };
        vec![
            json!({"type": "session", "version": 3}),
            json!({"type": "agent_start"}),
            json!({"type": "turn_start"}),
            json!({"type": "message_start", "message": reply("pending", json!([]))}),
            update(json!({"type": "text_start", "contentIndex": 0})),
            update(json!({"type": "text_delta", "contentIndex": 0, "delta": "x"})),
            update(json!({"type": "text_end", "contentIndex": 0, "content": "x"})),
            json!({"type": "message_end", "message": reply("toolUse", json!([call("a"), call("b")]))}),
            tool("start", "a"),
            tool("start", "b"),
            tool("end", "b"),
            tool("end", "a"),
            result("start", "a"),
            result("end", "a"),
            result("start", "b"),
            result("end", "b"),
            json!({"type": "turn_end", "toolResults": [1, 2]}),
            json!({"type": "agent_end"}),
            json!({"type": "agent_settled"}),
        ]
    }

    #[test]
    fn a_good_stream_passes_and_no_line_of_it_can_be_missing_or_come_twice() {
        check(&stream());
        // A delta is the one thing a block can do without, and can have twice.
        let delta = 5;
        for at in (0..stream().len()).filter(|at| *at != delta) {
            let mut without = stream();
            let line = without.remove(at);
            let mut twice = stream();
            twice.insert(at, line.clone());
            for broken in [without, twice] {
                assert!(panic::catch_unwind(|| check(&broken)).is_err(), "{line}");
            }
        }
    }

    #[test]
    fn calls_start_and_are_answered_in_their_order() {
        for (one, other) in [(8, 9), (13, 15)] {
            let mut swapped = stream();
            swapped.swap(one, other);
            assert!(
                panic::catch_unwind(|| check(&swapped)).is_err(),
                "{one} and {other}"
            );
        }
    }
}
