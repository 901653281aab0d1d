//! What services that speak anthropic-messages accept (`providers.md` §3.1).

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{is_base64, is_name, list};

/// Places of a request that may be marked for the cache.
const MAX_MARKERS: usize = 4;

const IMAGE_KINDS: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// The least that may be thought with.
const MIN_BUDGET: u64 = 1024;

/// What is wrong with a request body.
pub fn check(body: &Value) -> Vec<String> {
    let mut checker = Checker { wrong: Vec::new() };
    let Some(fields) = body.as_object() else {
        return vec!["the body is no JSON object".to_owned()];
    };
    checker.head(fields);
    checker.system(fields.get("system"));
    match fields.get("messages").and_then(Value::as_array) {
        Some(messages) if !messages.is_empty() => checker.messages(messages),
        _ => checker.say("there are no messages"),
    }
    checker.tools(fields);
    let markers = body.to_string().matches("\"cache_control\"").count();
    if markers > MAX_MARKERS {
        checker.say(format!("{markers} places are marked for the cache"));
    }
    checker.wrong
}

/// What is wrong with the order of a conversation that was never damaged: one answer follows the other.
pub fn alternation(body: &Value) -> Option<String> {
    let spoken = list(&body["messages"]).iter().enumerate();
    let mut spoken = spoken.filter(|(_, message)| message["role"] != "system");
    let mut before = "";
    let (at, _) = spoken.find(|(_, message)| {
        let role = message["role"].as_str().unwrap_or_default();
        std::mem::replace(&mut before, role) == "assistant" && role == "assistant"
    })?;
    Some(format!("message {at} is a second answer in a row"))
}

/// The messages as chat-completions would have them, for rules that hold for all wires: prompt first,
/// a message per result, no thinking, no markers.
pub fn as_chat(body: &Value) -> Vec<Value> {
    let mut chat = Vec::new();
    let prompt = texts(&body["system"]);
    if !prompt.is_empty() {
        chat.push(json!({"role": "system", "content": prompt}));
    }
    for message in list(&body["messages"]) {
        let content = &message["content"];
        match message["role"].as_str() {
            Some("assistant") => {
                let calls = list(content)
                    .iter()
                    .filter(|block| kind(block) == "tool_use");
                let calls: Vec<Value> = calls.map(as_call).collect();
                let mut answer = json!({"role": "assistant", "content": texts(content)});
                if !calls.is_empty() {
                    answer["tool_calls"] = Value::Array(calls);
                }
                chat.push(answer);
            }
            Some("user") => {
                let results = list(content)
                    .iter()
                    .filter(|block| kind(block) == "tool_result");
                chat.extend(results.map(as_result));
                let others = list(content)
                    .iter()
                    .filter(|block| kind(block) != "tool_result");
                let others: Vec<Value> = others.map(as_part).collect();
                match (content.as_str(), others.as_slice()) {
                    (Some(text), _) => chat.push(json!({"role": "user", "content": text})),
                    (None, []) => {}
                    (None, [only]) if kind(only) == "text" => {
                        chat.push(json!({"role": "user", "content": only["text"]}));
                    }
                    (None, _) => chat.push(json!({"role": "user", "content": others})),
                }
            }
            _ => chat.push(json!({"role": "system", "content": texts(content)})),
        }
    }
    chat
}

fn as_call(block: &Value) -> Value {
    let arguments = block["input"].to_string();
    json!({"id": block["id"], "type": "function",
        "function": {"name": block["name"], "arguments": arguments}})
}

fn as_result(block: &Value) -> Value {
    json!({"role": "tool", "tool_call_id": block["tool_use_id"], "content": texts(&block["content"])})
}

fn as_part(block: &Value) -> Value {
    let mut part = block.clone();
    if let Some(part) = part.as_object_mut() {
        part.shift_remove("cache_control");
    }
    part
}

/// A text, or the texts of blocks.
fn texts(content: &Value) -> String {
    let blocks = list(content)
        .iter()
        .filter_map(|block| block["text"].as_str());
    match content {
        Value::String(text) => text.clone(),
        _ => blocks.collect(),
    }
}

struct Checker {
    wrong: Vec<String>,
}

impl Checker {
    fn say(&mut self, wrong: impl Into<String>) {
        self.wrong.push(wrong.into());
    }

    fn head(&mut self, body: &Map<String, Value>) {
        const KNOWN: [&str; 13] = [
            "model",
            "messages",
            "max_tokens",
            "stream",
            "system",
            "temperature",
            "tools",
            "thinking",
            "output_config",
            "metadata",
            "tool_choice",
            "fallbacks",
            "thread",
        ];
        for name in body.keys().filter(|name| !KNOWN.contains(&name.as_str())) {
            self.say(format!("the body has the field {name:?}"));
        }
        if body.get("model").is_none_or(is_blank) {
            self.say("no model is named");
        }
        if body
            .get("stream")
            .is_some_and(|stream| !stream.is_boolean())
        {
            self.say("`stream` is neither true nor false");
        }
        let limit = body.get("max_tokens").and_then(Value::as_u64).unwrap_or(0);
        if limit == 0 {
            self.say("`max_tokens` is no positive number");
        }
        let Some(thinking) = body.get("thinking") else {
            return;
        };
        let budget = thinking["budget_tokens"].as_u64();
        match (kind(thinking), budget) {
            ("enabled", Some(budget)) if budget < MIN_BUDGET || budget >= limit => {
                self.say(format!("{budget} tokens to think with, of {limit}"));
            }
            ("enabled", Some(_)) | ("disabled" | "adaptive", None) => {}
            _ => self.say(format!("thinking is asked for as {thinking}")),
        }
        if kind(thinking) != "disabled" && body.contains_key("temperature") {
            self.say("there is a temperature beside thinking");
        }
    }

    fn system(&mut self, system: Option<&Value>) {
        match system {
            None => {}
            Some(Value::String(text)) if !text.trim().is_empty() => {}
            Some(Value::Array(blocks)) if !blocks.is_empty() => {
                for block in blocks {
                    self.block("the prompt", block, &["text"]);
                }
            }
            Some(_) => self.say("the prompt is empty"),
        }
    }

    /// Roles and order: the user begins and ends, and every call is answered in the next message.
    /// Turns of one role in a row are joined by services.
    fn messages(&mut self, messages: &[Value]) {
        let mut open: Vec<&str> = Vec::new();
        let mut ids = HashSet::new();
        let mut before = "";
        for (at, message) in messages.iter().enumerate() {
            let role = message["role"].as_str().unwrap_or_default();
            self.fields(at, role, message);
            if role != "user" && !open.is_empty() {
                self.say(format!(
                    "message {at} ({role}) precedes the results of {open:?}"
                ));
                open.clear();
            }
            match role {
                "user" => self.user(at, &message["content"], &mut open),
                "assistant" => {
                    self.assistant(at, &message["content"], &mut open, &mut ids);
                }
                "system" if before.is_empty() => {
                    self.say("the first message is one of the system");
                }
                "system" => {
                    self.system_in_place(at, message);
                    continue;
                }
                other => self.say(format!("message {at} has the role {other:?}")),
            }
            if before.is_empty() && role == "assistant" {
                self.say("the first message is an answer");
            }
            before = role;
        }
        if before == "assistant" {
            self.say("the last message is an answer");
        }
        if !open.is_empty() {
            self.say(format!("the calls {open:?} have no result"));
        }
    }

    /// Services refuse fields they do not know.
    fn fields(&mut self, at: usize, role: &str, message: &Value) {
        let known: &[&str] = match role {
            "system" => &["role", "content", "output_config"],
            _ => &["role", "content"],
        };
        let names = message.as_object().into_iter().flat_map(Map::keys);
        for name in names.filter(|name| !known.contains(&name.as_str())) {
            self.say(format!("message {at} ({role}) has the field {name:?}"));
        }
    }

    fn user<'a>(&mut self, at: usize, content: &'a Value, open: &mut Vec<&'a str>) {
        let of = format!("message {at} (user)");
        let blocks = list(content);
        if is_blank(content) && blocks.is_empty() {
            self.say(format!("{of} has no content"));
        }
        let mut others = false;
        for block in blocks {
            if kind(block) != "tool_result" {
                others = true;
                self.block(&of, block, &["text", "image"]);
                continue;
            }
            if others {
                self.say(format!("{of} has a result behind something else"));
            }
            let id = block["tool_use_id"].as_str().unwrap_or_default();
            match open.iter().position(|call| *call == id) {
                Some(found) => drop(open.swap_remove(found)),
                None => self.say(format!("{of} has a result of no open call: {id:?}")),
            }
            self.result(&of, block);
        }
        if !open.is_empty() {
            self.say(format!("{of} lacks the results of {open:?}"));
            open.clear();
        }
    }

    fn result(&mut self, of: &str, block: &Value) {
        self.known_fields(
            of,
            block,
            &[
                "type",
                "tool_use_id",
                "content",
                "is_error",
                "cache_control",
            ],
        );
        let is_error = block["is_error"].as_bool();
        if block.get("is_error").is_some() && is_error.is_none() {
            self.say(format!("{of} has a result that neither failed nor not"));
        }
        match &block["content"] {
            Value::String(_) => {}
            Value::Array(parts) if !parts.is_empty() => {
                let kinds: &[&str] = match is_error {
                    Some(true) => &["text"],
                    _ => &["text", "image"],
                };
                for part in parts {
                    self.block(&format!("a result of {of}"), part, kinds);
                }
            }
            _ => self.say(format!("{of} has a result without content")),
        }
    }

    fn assistant<'a>(
        &mut self,
        at: usize,
        content: &'a Value,
        open: &mut Vec<&'a str>,
        ids: &mut HashSet<&'a str>,
    ) {
        let of = format!("message {at} (assistant)");
        if list(content).is_empty() {
            self.say(format!("{of} has no content"));
        }
        for block in list(content) {
            match kind(block) {
                "thinking" => {
                    self.known_fields(&of, block, &["type", "thinking", "signature"]);
                    if !(block["thinking"].is_string() && block["signature"].is_string()) {
                        self.say(format!("{of} has thinking without text or signature"));
                    }
                }
                "redacted_thinking" => {
                    self.known_fields(&of, block, &["type", "data"]);
                    if is_blank(&block["data"]) {
                        self.say(format!("{of} has redacted thinking without data"));
                    }
                }
                "tool_use" => {
                    self.known_fields(&of, block, &["type", "id", "name", "input"]);
                    let id = block["id"].as_str().unwrap_or_default();
                    if !is_name(id) {
                        self.say(format!("{of} has a call with the id {}", block["id"]));
                    }
                    if !is_name(block["name"].as_str().unwrap_or_default()) {
                        self.say(format!("{of} calls the tool {}", block["name"]));
                    }
                    if !block["input"].is_object() {
                        self.say(format!("call {id} has arguments that are no object"));
                    }
                    if !ids.insert(id) {
                        self.say(format!("{of} has a second call with the id {id:?}"));
                    }
                    open.push(id);
                }
                _ => self.block(&of, block, &["text"]),
            }
        }
    }

    fn system_in_place(&mut self, at: usize, message: &Value) {
        let of = format!("message {at} (system)");
        let blocks = list(&message["content"]);
        match message.get("output_config") {
            None if blocks.is_empty() => self.say(format!("{of} has no content")),
            Some(config) if !EFFORTS.contains(&config["effort"].as_str().unwrap_or_default()) => {
                self.say(format!("{of} sets the effort {}", config["effort"]));
            }
            _ => {}
        }
        for block in blocks {
            match kind(block) {
                "tool_removal" if !is_blank(&block["tool"]["name"]) => {}
                "tool_addition" => self.declaration(&block["tool"]["definition"]),
                _ => self.block(&of, block, &["text"]),
            }
        }
    }

    fn block(&mut self, of: &str, block: &Value, kinds: &[&str]) {
        let found = kind(block);
        if !kinds.contains(&found) {
            return self.say(format!("{of} has a block of the type {}", block["type"]));
        }
        if found == "text" {
            self.known_fields(of, block, &["type", "text", "cache_control"]);
            if is_blank(&block["text"]) {
                self.say(format!("{of} has an empty text"));
            }
            return;
        }
        self.known_fields(of, block, &["type", "source", "cache_control"]);
        let source = &block["source"];
        let is_known = IMAGE_KINDS.contains(&source["media_type"].as_str().unwrap_or_default());
        let data = source["data"].as_str().unwrap_or_default();
        if kind(source) != "base64" || !is_known || !is_base64(data) {
            self.say(format!("{of} has an image that cannot be read"));
        }
    }

    fn known_fields(&mut self, of: &str, block: &Value, known: &[&str]) {
        let names = block.as_object().into_iter().flat_map(Map::keys);
        for name in names.filter(|name| !known.contains(&name.as_str())) {
            self.say(format!("{of} has a block with the field {name:?}"));
        }
    }

    fn tools(&mut self, body: &Map<String, Value>) {
        let tools = body.get("tools").map(list);
        if tools.is_some_and(<[Value]>::is_empty) {
            self.say("there is an empty list of tools");
        }
        let tools = tools.unwrap_or_default();
        if body.contains_key("tool_choice") && tools.is_empty() {
            self.say("there is a tool choice without tools");
        }
        let is_deferred = |tool: &Value| tool["defer_loading"] == true;
        if !tools.is_empty() && tools.iter().all(is_deferred) {
            self.say("every tool comes later");
        }
        let mut names = HashSet::new();
        for tool in tools {
            self.declaration(tool);
            if !names.insert(&tool["name"]) {
                self.say(format!("the tool {} is declared twice", tool["name"]));
            }
        }
    }

    fn declaration(&mut self, tool: &Value) {
        let name = &tool["name"];
        if !is_name(name.as_str().unwrap_or_default()) {
            self.say(format!("a tool is declared with the name {name}"));
        }
        if !tool["description"].is_string() {
            self.say(format!("the tool {name} has no description"));
        }
        let schema = &tool["input_schema"];
        let unions = ["anyOf", "oneOf", "allOf"];
        if schema["type"] != "object" || unions.iter().any(|name| schema.get(name).is_some()) {
            self.say(format!("the parameters of {name} are no object schema"));
        }
        if !(schema["properties"].is_object() && schema["required"].is_array()) {
            self.say(format!("the parameters of {name} are ill-formed"));
        }
    }
}

/// The `type` of a block.
fn kind(block: &Value) -> &str {
    block["type"].as_str().unwrap_or_default()
}

fn is_blank(value: &Value) -> bool {
    value.as_str().is_none_or(|text| text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user() -> Value {
        json!({"role": "user", "content": "u"})
    }
    fn says(text: &str) -> Value {
        json!({"role": "assistant", "content": [{"type": "text", "text": text}]})
    }
    fn calls(ids: &[&str]) -> Value {
        let call = |id: &&str| json!({"type": "tool_use", "id": id, "name": "read", "input": {}});
        json!({"role": "assistant", "content": ids.iter().map(call).collect::<Vec<_>>()})
    }
    fn results(ids: &[&str]) -> Value {
        let result = |id: &&str| json!({"type": "tool_result", "tool_use_id": id, "content": "r", "is_error": false});
        blocks(ids.iter().map(result).collect())
    }
    fn blocks(blocks: Value) -> Value {
        json!({"role": "user", "content": blocks})
    }
    fn body(messages: &[Value]) -> Value {
        json!({"model": "m", "max_tokens": 9, "messages": messages})
    }

    #[track_caller]
    fn check_body(body: &Value, wanted: &[&str]) {
        let wrong = check(body);
        assert_eq!(wrong.len(), wanted.len(), "{wrong:?}");
        for (wrong, wanted) in wrong.iter().zip(wanted) {
            assert!(wrong.contains(wanted), "{wrong:?} does not say {wanted:?}");
        }
    }

    #[track_caller]
    fn check_messages(messages: &[Value], wanted: &[&str]) {
        check_body(&body(messages), wanted);
    }

    #[test]
    fn a_sound_conversation_has_nothing_wrong() {
        let thinks = json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "", "signature": "s"},
            {"type": "redacted_thinking", "data": "d"},
            {"type": "tool_use", "id": "c", "name": "read", "input": {}}]});
        let effort = json!({"role": "system", "content": [], "output_config": {"effort": "low"}});
        check_messages(
            &[
                user(),
                calls(&["a", "b"]),
                results(&["b", "a"]),
                user(),
                effort,
                thinks,
                results(&["c"]),
            ],
            &[],
        );
    }

    #[test]
    fn every_call_has_its_result_in_the_next_message() {
        let lacks = [user(), calls(&["a", "b"]), results(&["a"])];
        check_messages(&lacks, &["lacks the results of [\"b\"]"]);
        check_messages(&[user(), calls(&["a"]), user()], &["lacks the results"]);
        check_messages(
            &[user(), calls(&["a"])],
            &["is an answer", "have no result"],
        );
        check_messages(&[user(), results(&["a"])], &["no open call"]);
        let late = [user(), calls(&["a"]), results(&["a"]), results(&["a"])];
        check_messages(&late, &["no open call"]);
        let between = json!({"role": "system", "content": [{"type": "text", "text": "x"}]});
        let parted = [user(), calls(&["a"]), between, results(&["a"])];
        check_messages(&parted, &["precedes the results", "no open call"]);
        let twice = [user(), calls(&["a", "a"]), results(&["a", "a"])];
        check_messages(&twice, &["second call with the id"]);
        let behind = blocks(json!([{"type": "text", "text": "x"},
            {"type": "tool_result", "tool_use_id": "a", "content": "r"}]));
        check_messages(&[user(), calls(&["a"]), behind], &["behind something else"]);
    }

    #[test]
    fn the_user_begins_and_ends_and_answers_alternate() {
        check_messages(&[says("x"), user()], &["first message is an answer"]);
        check_messages(&[user(), says("x")], &["last message is an answer"]);
        check_messages(
            &[json!({"role": "tool", "content": "x"})],
            &["role \"tool\""],
        );
        let twice = [user(), says("x"), says("y"), user()];
        check_messages(&twice, &[]);
        assert!(alternation(&body(&twice)).is_some());
        assert_eq!(
            alternation(&body(&[user(), says("x"), user(), user()])),
            None
        );
        check_messages(&[], &["no messages"]);
    }

    #[test]
    fn contents_are_there_and_of_known_blocks() {
        check_messages(&[json!({"role": "user", "content": " "})], &["no content"]);
        check_messages(&[blocks(json!([]))], &["no content"]);
        check_messages(
            &[blocks(json!([{"type": "text", "text": ""}]))],
            &["empty text"],
        );
        check_messages(&[blocks(json!([{"type": "audio"}]))], &["type \"audio\""]);
        let image = |source: Value| blocks(json!([{"type": "image", "source": source}]));
        let source =
            |kind: &str, data: &str| json!({"type": "base64", "media_type": kind, "data": data});
        check_messages(&[image(source("image/png", "QQ=="))], &[]);
        check_messages(&[image(source("image/bmp", "QQ=="))], &["cannot be read"]);
        check_messages(&[image(source("image/png", "Q"))], &["cannot be read"]);
        let failed = blocks(
            json!([{"type": "tool_result", "tool_use_id": "a", "is_error": true,
            "content": [{"type": "image", "source": source("image/png", "QQ==")}]}]),
        );
        check_messages(&[user(), calls(&["a"]), failed], &["type \"image\""]);
        let unsigned =
            json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]});
        check_messages(&[user(), unsigned, user()], &["without text or signature"]);
    }

    #[test]
    fn the_rest_of_the_body_is_in_order() {
        let with = |patch: Value| {
            let mut body = body(&[user()]);
            for (name, value) in patch.as_object().expect("a patch is an object") {
                body[name] = value.clone();
            }
            body
        };
        check_body(&with(json!({"max_tokens": 0})), &["max_tokens"]);
        check_body(&with(json!({"betas": []})), &["the field \"betas\""]);
        check_body(&with(json!({"system": []})), &["prompt is empty"]);
        let budget = json!({"type": "enabled", "budget_tokens": 1024});
        check_body(
            &with(json!({"thinking": budget})),
            &["1024 tokens to think with, of 9"],
        );
        let warm = json!({"thinking": {"type": "adaptive"}, "temperature": 1});
        check_body(&with(warm), &["temperature beside thinking"]);
        check_body(
            &with(json!({"tool_choice": {"type": "auto"}})),
            &["without tools"],
        );
        check_body(&with(json!({"tools": []})), &["empty list"]);
        let tool = json!({"name": "a b", "description": "", "input_schema": {"type": "object",
            "properties": {}, "required": [], "anyOf": []}});
        check_body(
            &with(json!({"tools": [tool]})),
            &["with the name", "no object schema"],
        );
        let marked = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
        let marked = vec![marked; 5];
        check_body(&with(json!({"system": marked})), &["5 places"]);
    }

    #[test]
    fn a_body_reads_as_a_chat() {
        let mut body = body(&[user(), calls(&["a"]), results(&["a"])]);
        body["system"] = json!([{"type": "text", "text": "s"}]);
        let chat = as_chat(&body);
        let roles: Vec<&Value> = chat.iter().map(|message| &message["role"]).collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool"]);
        assert_eq!(chat[2]["tool_calls"][0]["function"]["arguments"], "{}");
        assert_eq!(
            chat[3],
            json!({"role": "tool", "tool_call_id": "a", "content": "r"})
        );
    }
}
