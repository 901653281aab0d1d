//! What services that speak chat-completions accept (`providers.md` §3.2).

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{is_base64, is_name, list};

/// Where services differ.
#[derive(Debug, Clone, Copy)]
pub struct Service {
    /// Longest id of a call.
    pub max_id_chars: usize,
}

impl Service {
    /// What all services but the first one take.
    pub const ANY: Self = Self { max_id_chars: 64 };
    /// OpenAI itself.
    pub const OPENAI: Self = Self { max_id_chars: 40 };
}

/// Part of ids in which a gateway carries a signature; such an id has any length.
const DATA_IN_ID: &str = "__thought__";

const IMAGE_KINDS: [&str; 5] = ["png", "jpeg", "jpg", "gif", "webp"];

/// What is wrong with a request body.
pub fn check(body: &Value, service: Service) -> Vec<String> {
    let mut checker = Checker {
        service,
        wrong: Vec::new(),
    };
    let Some(fields) = body.as_object() else {
        return vec!["the body is no JSON object".to_owned()];
    };
    checker.head(fields);
    match fields.get("messages").and_then(Value::as_array) {
        Some(messages) if !messages.is_empty() => checker.messages(messages),
        _ => checker.say("there are no messages"),
    }
    checker.tools(fields);
    checker.wrong
}

struct Checker {
    service: Service,
    wrong: Vec<String>,
}

impl Checker {
    fn say(&mut self, wrong: impl Into<String>) {
        self.wrong.push(wrong.into());
    }

    fn head(&mut self, body: &Map<String, Value>) {
        if !is_words(body.get("model")) {
            self.say("no model is named");
        }
        let no_stream = body
            .get("stream")
            .is_some_and(|stream| !stream.is_boolean());
        if no_stream {
            self.say("`stream` is neither true nor false");
        }
        let count = |name: &str| body.get(name).map(|limit| limit.as_u64().unwrap_or(0));
        for name in ["max_tokens", "max_completion_tokens"] {
            if count(name) == Some(0) {
                self.say(format!("`{name}` is no positive number"));
            }
        }
    }

    /// Roles and order: every call is answered directly behind its message, once.
    fn messages(&mut self, messages: &[Value]) {
        let mut open: Vec<&str> = Vec::new();
        let mut ids = HashSet::new();
        for (at, message) in messages.iter().enumerate() {
            let role = message["role"].as_str().unwrap_or_default();
            if role != "tool" && !open.is_empty() {
                self.say(format!(
                    "message {at} ({role}) precedes the results of {open:?}"
                ));
                open.clear();
            }
            self.fields(at, role, message);
            match role {
                "system" | "developer" => self.system(at, role, message),
                "user" => self.user(at, message),
                "assistant" => {
                    self.assistant(at, message);
                    for call in list(&message["tool_calls"]) {
                        self.call(at, call);
                        let id = call["id"].as_str().unwrap_or_default();
                        if !ids.insert(id) {
                            self.say(format!("message {at} has a second call with the id {id:?}"));
                        }
                        open.push(id);
                    }
                }
                "tool" => {
                    self.result(at, message);
                    let id = message["tool_call_id"].as_str().unwrap_or_default();
                    match open.iter().position(|call| *call == id) {
                        Some(found) => drop(open.swap_remove(found)),
                        None => {
                            self.say(format!("message {at} is a result of no open call: {id:?}"))
                        }
                    }
                }
                other => self.say(format!("message {at} has the role {other:?}")),
            }
        }
        if !open.is_empty() {
            self.say(format!("the calls {open:?} have no result"));
        }
    }

    /// Services refuse fields they do not know.
    fn fields(&mut self, at: usize, role: &str, message: &Value) {
        let known: &[&str] = match role {
            "assistant" => &[
                "role",
                "content",
                "name",
                "tool_calls",
                "reasoning_content",
                "reasoning",
                "reasoning_text",
                "reasoning_details",
            ],
            "tool" => &["role", "content", "name", "tool_call_id"],
            "system" => &["role", "content", "name", "tools"],
            _ => &["role", "content", "name"],
        };
        let names = message.as_object().into_iter().flat_map(Map::keys);
        for name in names.filter(|name| !known.contains(&name.as_str())) {
            self.say(format!("message {at} ({role}) has the field {name:?}"));
        }
    }

    fn system(&mut self, at: usize, role: &str, message: &Value) {
        match (message.get("content"), message.get("tools")) {
            // Tools that are added in place come without a text.
            (None, Some(tools)) if role == "system" => {
                self.declarations(&format!("message {at} declares"), list(tools));
            }
            (Some(content), None) => self.content(at, role, content, &["text"]),
            _ => self.say(format!("message {at} ({role}) has no content")),
        }
    }

    fn user(&mut self, at: usize, message: &Value) {
        // A blank string is passed on as the user wrote it.
        if !message["content"].is_string() {
            self.content(at, "user", &message["content"], &["text", "image_url"]);
        }
    }

    fn assistant(&mut self, at: usize, message: &Value) {
        let has_calls = !list(&message["tool_calls"]).is_empty();
        if message.get("tool_calls").is_some() && !has_calls {
            self.say(format!(
                "message {at} (assistant) has an empty list of calls"
            ));
        }
        match message.get("content") {
            Some(Value::Null) if has_calls => {}
            Some(Value::String(text)) if has_calls || !text.is_empty() => {}
            Some(Value::Array(parts)) if has_calls && parts.is_empty() => {}
            Some(content @ Value::Array(_)) => self.content(at, "assistant", content, &["text"]),
            Some(Value::Null | Value::String(_)) => {
                self.say(format!("message {at} (assistant) says and calls nothing"));
            }
            _ => self.say(format!("message {at} (assistant) has no content")),
        }
        for name in ["reasoning_content", "reasoning", "reasoning_text"] {
            if message.get(name).is_some_and(|text| !text.is_string()) {
                self.say(format!("message {at} has a {name:?} that is no text"));
            }
        }
        if message
            .get("reasoning_details")
            .is_some_and(|list| !list.is_array())
        {
            self.say(format!(
                "message {at} has reasoning details that are no list"
            ));
        }
    }

    fn call(&mut self, at: usize, call: &Value) {
        let id = call["id"].as_str().unwrap_or_default();
        if !self.is_id(id) {
            self.say(format!(
                "message {at} has a call with the id {:?}",
                call["id"]
            ));
        }
        let body = match call["type"].as_str() {
            Some("function") => {
                let arguments = call["function"]["arguments"].as_str();
                let read = arguments.and_then(|text| serde_json::from_str::<Value>(text).ok());
                if !read.is_some_and(|read| read.is_object()) {
                    self.say(format!(
                        "call {id} has arguments that are no JSON object: {}",
                        arguments.unwrap_or_default()
                    ));
                }
                &call["function"]
            }
            Some("custom") => {
                if !call["custom"]["input"].is_string() {
                    self.say(format!("call {id} has an input that is no text"));
                }
                &call["custom"]
            }
            kind => {
                self.say(format!("call {id} is of the type {kind:?}"));
                return;
            }
        };
        if !is_name(body["name"].as_str().unwrap_or_default()) {
            self.say(format!("call {id} names the tool {}", body["name"]));
        }
    }

    fn is_id(&self, id: &str) -> bool {
        let fits = id.len() <= self.service.max_id_chars || id.contains(DATA_IN_ID);
        fits && !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic())
    }

    fn result(&mut self, at: usize, message: &Value) {
        match &message["content"] {
            Value::String(text) if text.is_empty() => {
                self.say(format!("message {at} (tool) has an empty result"));
            }
            Value::String(_) => {}
            content => self.content(at, "tool", content, &["text"]),
        }
        let name = message.get("name");
        if name.is_some_and(|name| !is_name(name.as_str().unwrap_or_default())) {
            self.say(format!(
                "message {at} (tool) has the name {}",
                message["name"]
            ));
        }
    }

    fn content(&mut self, at: usize, role: &str, content: &Value, kinds: &[&str]) {
        match content {
            Value::String(text) if !text.is_empty() => {}
            Value::Array(parts) if !parts.is_empty() => {
                for part in parts {
                    self.part(&format!("message {at} ({role})"), part, kinds);
                }
            }
            _ => self.say(format!("message {at} ({role}) has no content")),
        }
    }

    fn part(&mut self, of: &str, part: &Value, kinds: &[&str]) {
        let kind = part["type"].as_str().unwrap_or_default();
        if !kinds.contains(&kind) {
            return self.say(format!("{of} has a part of the type {}", part["type"]));
        }
        let known = ["type", kind, "cache_control"];
        let names = part.as_object().into_iter().flat_map(Map::keys);
        for name in names.filter(|name| !known.contains(&name.as_str())) {
            self.say(format!("{of} has a part with the field {name:?}"));
        }
        if kind == "text" && !is_words(part.get("text")) {
            self.say(format!("{of} has an empty text part"));
        }
        if kind == "image_url" && !is_image(part["image_url"]["url"].as_str().unwrap_or_default()) {
            self.say(format!("{of} has an image that cannot be read"));
        }
    }

    fn tools(&mut self, body: &Map<String, Value>) {
        let tools = body.get("tools").map(list);
        if body.get("tools").is_some_and(|tools| !tools.is_array()) {
            self.say("`tools` is no list");
        }
        self.declarations("the request declares", tools.unwrap_or_default());
        let messages = body.get("messages").map(list).unwrap_or_default();
        let in_place = messages
            .iter()
            .any(|message| message.get("tools").is_some());
        let has_tools = in_place || tools.is_some_and(|tools| !tools.is_empty());
        if body.contains_key("tool_choice") && !has_tools {
            self.say("there is a tool choice without tools");
        }
        let is_history = |message: &Value| message["role"] == "tool";
        // Gateways want a list where history has calls, even an empty one.
        if tools.is_some_and(<[Value]>::is_empty) && !messages.iter().any(is_history) {
            self.say("there is an empty list of tools");
        }
        let in_place = messages.iter().flat_map(|message| list(&message["tools"]));
        let all = tools.unwrap_or_default().iter().chain(in_place);
        let mut names = HashSet::new();
        for name in all.map(tool_name) {
            if !names.insert(name) {
                self.say(format!("the tool {name:?} is declared twice"));
            }
        }
    }

    fn declarations(&mut self, place: &str, tools: &[Value]) {
        for tool in tools {
            let name = tool_name(tool);
            if !is_name(name) {
                self.say(format!("{place} a tool with the name {name:?}"));
            }
            match tool["type"].as_str() {
                Some("function") => {
                    let function = &tool["function"];
                    if !function["description"].is_string() {
                        self.say(format!("{place} {name} without a description"));
                    }
                    if function["parameters"]["type"] != "object" {
                        self.say(format!(
                            "{place} {name} with parameters that are no object schema"
                        ));
                    }
                    if function
                        .get("strict")
                        .is_some_and(|strict| !strict.is_boolean())
                    {
                        self.say(format!("{place} {name} neither strict nor not"));
                    }
                }
                Some("custom") => {
                    if !tool["custom"]["format"]["grammar"]["definition"].is_string() {
                        self.say(format!("{place} {name} without a grammar"));
                    }
                }
                kind => self.say(format!("{place} {name} of the type {kind:?}")),
            }
        }
    }
}

fn tool_name(tool: &Value) -> &str {
    let body = match tool["type"].as_str() {
        Some("custom") => &tool["custom"],
        _ => &tool["function"],
    };
    body["name"].as_str().unwrap_or_default()
}

fn is_words(value: Option<&Value>) -> bool {
    value
        .and_then(Value::as_str)
        .is_some_and(|text| !text.is_empty())
}

/// A data URL of a kind that models see, with whole base64; or an address.
fn is_image(url: &str) -> bool {
    if url.starts_with("https://") {
        return true;
    }
    let parts = url
        .strip_prefix("data:image/")
        .and_then(|rest| rest.split_once(";base64,"));
    let Some((kind, data)) = parts else {
        return false;
    };
    IMAGE_KINDS.contains(&kind) && is_base64(data)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn system() -> Value {
        json!({"role": "system", "content": "s"})
    }
    fn user() -> Value {
        json!({"role": "user", "content": "u"})
    }
    fn calls(ids: &[&str], arguments: &str) -> Value {
        let call = |id: &&str| {
            json!({"id": id, "type": "function",
                "function": {"name": "read", "arguments": arguments}})
        };
        json!({"role": "assistant", "content": null,
            "tool_calls": ids.iter().map(call).collect::<Vec<_>>()})
    }
    fn result(id: &str) -> Value {
        json!({"role": "tool", "tool_call_id": id, "content": "r"})
    }
    fn parts(parts: Value) -> Value {
        json!({"role": "user", "content": parts})
    }

    #[track_caller]
    fn check_body(body: &Value, wanted: &[&str]) {
        let wrong = check(body, Service::ANY);
        assert_eq!(wrong.len(), wanted.len(), "{wrong:?}");
        for (wrong, wanted) in wrong.iter().zip(wanted) {
            assert!(wrong.contains(wanted), "{wrong:?} does not say {wanted:?}");
        }
    }

    #[track_caller]
    fn check_messages(messages: &[Value], wanted: &[&str]) {
        check_body(&json!({"model": "m", "messages": messages}), wanted);
    }

    #[test]
    fn a_good_request_passes() {
        let image =
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}});
        let text = json!({"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}});
        let messages = [
            system(),
            user(),
            calls(&["a", "b"], "{}"),
            result("b"),
            result("a"),
            parts(json!([text, image])),
            json!({"role": "assistant", "content": "x", "reasoning_content": ""}),
        ];
        let tool = json!({"type": "function", "function": {"name": "read", "description": "",
            "parameters": {"type": "object"}, "strict": false}});
        check_body(
            &json!({"model": "m", "messages": messages, "stream": true, "max_tokens": 5,
                "tools": [tool], "tool_choice": "auto"}),
            &[],
        );
    }

    #[test]
    fn every_call_has_its_result_directly_behind_it() {
        check_messages(&[user(), calls(&["a"], "{}")], &["[\"a\"] have no result"]);
        check_messages(
            &[calls(&["a"], "{}"), user()],
            &["precedes the results of [\"a\"]"],
        );
        check_messages(&[user(), result("a")], &["no open call: \"a\""]);
        let twice = [calls(&["a"], "{}"), result("a"), result("a")];
        check_messages(&twice, &["no open call"]);
    }

    #[test]
    fn calls_are_well_formed() {
        let answered = |id: &str| [calls(&[id], "{}"), result(id)];
        for id in ["", "with space", "名前", &"x".repeat(65)] {
            check_messages(&answered(id), &["has a call with the id"]);
        }
        check_messages(&answered(&"x".repeat(64)), &[]);
        check_messages(&answered(&format!("a__thought__{}", "x".repeat(900))), &[]);
        let openai = check(
            &json!({"model": "m", "messages": answered(&"x".repeat(41))}),
            Service::OPENAI,
        );
        assert_eq!(openai.len(), 1, "{openai:?}");
        check_messages(
            &[calls(&["a", "a"], "{}"), result("a"), result("a")],
            &["second call with the id"],
        );
        for arguments in ["", "{\"x", "[]", "null"] {
            check_messages(
                &[calls(&["a"], arguments), result("a")],
                &["no JSON object"],
            );
        }
        let mut named = calls(&["a"], "{}");
        named["tool_calls"][0]["function"]["name"] = json!("a.b");
        check_messages(&[named, result("a")], &["names the tool \"a.b\""]);
        let mut typed = calls(&["a"], "{}");
        typed["tool_calls"][0]["type"] = json!("server");
        check_messages(&[typed, result("a")], &["of the type"]);
    }

    #[test]
    fn contents_are_there_and_of_known_parts() {
        let says = |content: Value| json!({"role": "assistant", "content": content});
        for content in [json!(""), json!(null)] {
            check_messages(&[says(content)], &["says and calls nothing"]);
        }
        check_messages(&[says(json!([]))], &["has no content"]);
        check_messages(&[json!({"role": "user"})], &["has no content"]);
        check_messages(&[parts(json!([]))], &["has no content"]);
        check_messages(
            &[parts(json!([{"type": "text", "text": ""}]))],
            &["empty text part"],
        );
        check_messages(&[parts(json!([null]))], &["part of the type null"]);
        for url in [
            "data:image/png;base64,",
            "data:image/png;base64,no!",
            "data:image/bmp;base64,QQ==",
            "file:x",
        ] {
            let image = json!([{"type": "image_url", "image_url": {"url": url}}]);
            check_messages(&[parts(image)], &["image that cannot be read"]);
        }
        check_messages(
            &[json!({"role": "system", "content": ""})],
            &["has no content"],
        );
        let mut empty = result("a");
        empty["content"] = json!("");
        check_messages(&[calls(&["a"], "{}"), empty], &["empty result"]);
    }

    #[test]
    fn roles_and_fields_are_known_ones() {
        check_messages(
            &[json!({"role": "model", "content": "x"})],
            &["role \"model\""],
        );
        check_messages(&[json!(null)], &["role \"\""]);
        check_messages(
            &[json!({"role": "user", "content": "x", "timestamp": 1})],
            &["the field \"timestamp\""],
        );
        check_messages(&[], &["no messages"]);
        check_body(&json!(null), &["no JSON object"]);
    }

    #[test]
    fn declared_tools_are_well_formed_and_unique() {
        let tool = |name: &str, parameters: Value| {
            json!({"type": "function",
                "function": {"name": name, "description": "", "parameters": parameters}})
        };
        let object = json!({"type": "object"});
        let body = |tools: Value| json!({"model": "m", "messages": [user()], "tools": tools});
        check_body(
            &body(json!([
                tool("a", object.clone()),
                tool("a", object.clone())
            ])),
            &["declared twice"],
        );
        check_body(&body(json!([tool("a b", object)])), &["the name \"a b\""]);
        check_body(
            &body(json!([tool("a", json!(null))])),
            &["no object schema"],
        );
        check_body(&body(json!([])), &["empty list of tools"]);
        let choice = json!({"model": "m", "messages": [user()], "tool_choice": "auto"});
        check_body(&choice, &["choice without tools"]);
    }
}
