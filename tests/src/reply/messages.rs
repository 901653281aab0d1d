//! A reply in the words of anthropic-messages: blocks that open, grow and close.

use serde_json::{Value, json};

use super::{Finish, Part, Reply, call_id, pieces, signature};

impl Reply {
    pub(super) fn messages(&self, parts: &[Part], model: &str, first_call: usize) -> Vec<String> {
        let mut events = vec![self.beginning(model)];
        let (mut calls, mut thoughts) = (0, 0);
        for (index, part) in parts.iter().enumerate() {
            let (block, deltas) = match part {
                Part::Text(text) => {
                    let deltas =
                        pieces(text).map(|piece| json!({"type": "text_delta", "text": piece}));
                    (
                        json!({"type": "text", "text": ""}),
                        deltas.collect::<Vec<_>>(),
                    )
                }
                Part::Thinking(thought) => {
                    let signed =
                        json!({"type": "signature_delta", "signature": signature(thoughts)});
                    thoughts += 1;
                    let deltas = pieces(thought)
                        .map(|piece| json!({"type": "thinking_delta", "thinking": piece}));
                    let block = json!({"type": "thinking", "thinking": "", "signature": ""});
                    (block, deltas.chain([signed]).collect())
                }
                Part::Call { name, arguments } => {
                    let id = call_id(first_call + calls);
                    calls += 1;
                    let deltas = pieces(arguments)
                        .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
                    let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
                    (block, deltas.collect())
                }
            };
            let opens =
                json!({"type": "content_block_start", "index": index, "content_block": block});
            events.push(event(&opens));
            events.extend(deltas.into_iter().map(|delta| {
                event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
            }));
            events.push(event(
                &json!({"type": "content_block_stop", "index": index}),
            ));
        }
        let usual = if calls > 0 { "tool_use" } else { "end_turn" };
        let (reason, done) = match self.finish {
            Finish::Usual => (usual, true),
            Finish::Reason(reason) => (reason, true),
            Finish::Missing => return events,
            Finish::WithoutDone => (usual, false),
        };
        events.push(self.end(reason));
        events.extend(done.then(|| event(&json!({"type": "message_stop"}))));
        events
    }

    fn beginning(&self, model: &str) -> String {
        let mut message = json!({"id": "msg_scripted", "type": "message", "role": "assistant",
            "model": model, "content": [], "stop_reason": null, "stop_sequence": null});
        if let Some(usage) = self.usage {
            message["usage"] = json!({
                "input_tokens": usage.prompt - usage.cached, "output_tokens": 1,
                "cache_read_input_tokens": usage.cached, "cache_creation_input_tokens": 0,
            });
        }
        event(&json!({"type": "message_start", "message": message}))
    }

    fn end(&self, reason: &str) -> String {
        let mut end = json!({"type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": null}});
        if let Some(usage) = self.usage {
            end["usage"] = json!({"output_tokens": usage.completion,
                "output_tokens_details": {"thinking_tokens": usage.reasoning}});
        }
        event(&end)
    }
}

/// A server-sent event, named by its type.
pub(super) fn event(data: &Value) -> String {
    let name = data["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}
