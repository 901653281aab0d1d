//! Histories as sessions hold them, sound ones and broken ones, for property tests of whatever has
//! to live with them. Everything follows from the seed: a case that fails fails again.

use serde_json::{Value, json};

/// A generator that gives the same numbers everywhere.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Dice of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `sides`, which is not 0.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let high = usize::try_from(self.0 >> 33).expect("31 bits fit");
        high % sides
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.roll(of.len())]
    }

    /// True once in `sides` times.
    pub fn once_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }
}

/// Provider, api and model that most answers of [`sound`] name; the others are of another model.
pub const SPEAKER: [&str; 3] = ["p", "openai-completions", "m"];

const TOOLS: [&str; 4] = ["read", "bash", "edit", "mcp__server__tool"];

/// Messages that any agent could have stored: a prompt with tools, then turns.
pub fn sound(dice: &mut Dice) -> Vec<Value> {
    let mut writer = Writer {
        dice,
        messages: Vec::new(),
        calls: 0,
        style: 0,
    };
    writer.style = writer.dice.roll(4);
    writer.prompt();
    for _ in 0..=writer.dice.roll(4) {
        writer.turn();
    }
    let mut messages = writer.messages;
    for (time, message) in messages.iter_mut().enumerate() {
        message["timestamp"] = json!(1000 + time);
    }
    messages
}

/// A sound history that was damaged in one to six ways.
pub fn damaged(dice: &mut Dice) -> Vec<Value> {
    let mut messages = sound(dice);
    for _ in 0..=dice.roll(6) {
        damage(dice, &mut messages);
    }
    messages
}

struct Writer<'a> {
    dice: &'a mut Dice,
    messages: Vec<Value>,
    calls: usize,
    style: usize,
}

impl Writer<'_> {
    fn prompt(&mut self) {
        let tools: Vec<Value> = TOOLS.iter().map(|name| tool(name)).collect();
        self.messages
            .push(json!({"role": "system", "content": "You help.",
            "sections": {"rules": "Be brief.", "cwd": "/project"}, "toolsAdded": tools}));
    }

    fn turn(&mut self) {
        let said = self.user();
        self.messages.push(said);
        for _ in 0..self.dice.roll(3) {
            self.calls_and_results();
        }
        if self.dice.once_in(6) {
            let failed = *self.dice.pick(&["error", "aborted"]);
            let mut answer = self.answer(1, "toolUse");
            answer["stopReason"] = json!(failed);
            answer["errorMessage"] = json!("overloaded");
            self.messages.push(answer);
        }
        let answer = self.answer(0, "stop");
        self.messages.push(answer);
        if self.dice.once_in(4) {
            let patch = match self.dice.roll(3) {
                0 => json!({"role": "system", "content": "", "sections": {"rules": null}}),
                1 => json!({"role": "system", "content": "", "toolsRemoved": [{"name": "edit"}]}),
                _ => json!({"role": "system", "content": "", "toolsAdded": [tool("write")]}),
            };
            self.messages.push(patch);
        }
    }

    fn user(&mut self) -> Value {
        match self.dice.roll(4) {
            0 => json!({"role": "user", "content": "Look at it."}),
            1 => json!({"role": "user", "content": [text("See:"), image(), image()]}),
            2 => json!({"role": "user", "content": [text("Ja, 😀 gut.")]}),
            _ => json!({"role": "user", "content": [text("Go on.")]}),
        }
    }

    fn calls_and_results(&mut self) {
        let count = 1 + self.dice.roll(3);
        let answer = self.answer(count, "toolUse");
        let blocks = answer["content"].as_array().cloned().unwrap_or_default();
        self.messages.push(answer);
        let mut results: Vec<Value> = blocks
            .iter()
            .filter(|block| block["type"] == "toolCall")
            .map(|call| self.result(call))
            .collect();
        if self.dice.once_in(2) {
            results.reverse();
        }
        self.messages.append(&mut results);
    }

    fn answer(&mut self, calls: usize, stop: &str) -> Value {
        let mut content = Vec::new();
        if self.dice.once_in(3) {
            content.push(json!({"type": "thinking", "thinking": "Hm.",
                "thinkingSignature": *self.dice.pick(&["reasoning_content", "[{\"type\":\"reasoning.text\",\"text\":\"Hm.\"}]", "opaque"])}));
        }
        if calls == 0 || self.dice.once_in(2) {
            content.push(text("I see."));
        }
        content.extend((0..calls).map(|_| self.call()));
        let [provider, api, mut model] = SPEAKER;
        if self.dice.once_in(4) {
            model = "other";
        }
        json!({"role": "assistant", "content": content, "provider": provider, "api": api,
            "model": model, "stopReason": stop, "usage": {"input": 10, "output": 5,
            "cacheRead": 0, "cacheWrite": 0, "totalTokens": 15, "cost": {"total": 0.5}}})
    }

    fn call(&mut self) -> Value {
        self.calls += 1;
        let (number, tool) = (self.calls, *self.dice.pick(&TOOLS));
        let id = match self.style {
            0 => format!("call_{number}"),
            1 => format!("functions.{tool}:{number}"),
            2 => format!("call_{number}|fc_{}", "ab+/".repeat(number % 20)),
            // Some services begin to count anew with every answer.
            _ => format!("{}", number % 2),
        };
        let mut call = json!({"type": "toolCall", "id": id, "name": tool,
            "arguments": {"path": format!("{number}.txt"), "deep": {"list": [1, null, "x"]}}});
        if self.dice.once_in(8) {
            call["arguments"] = json!({});
            call["argumentsError"] = json!("The arguments are no JSON object: {\"path\": \"a");
        }
        call
    }

    fn result(&mut self, call: &Value) -> Value {
        let content = match self.dice.roll(5) {
            0 => json!([]),
            1 => json!([text("a picture"), image()]),
            2 => json!([text("")]),
            _ => json!([text("done")]),
        };
        json!({"role": "toolResult", "toolCallId": call["id"], "toolName": call["name"],
            "content": content, "isError": self.dice.once_in(5)})
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image() -> Value {
    json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"})
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "d", "parameters": {"type": "object",
        "properties": {"path": {"type": "string"}}}})
}

/// One way in which files, other programs, crashes and people break a history.
fn damage(dice: &mut Dice, messages: &mut Vec<Value>) {
    if messages.is_empty() {
        return messages.push(junk(dice));
    }
    let at = dice.roll(messages.len());
    match dice.roll(16) {
        0 => drop(messages.remove(at)),
        1 => {
            let copy = messages[at].clone();
            let to = dice.roll(messages.len() + 1);
            messages.insert(to, copy);
        }
        2 => {
            let other = dice.roll(messages.len());
            messages.swap(at, other);
        }
        3 => messages.truncate(at),
        4 => drop(messages.drain(..at)),
        5 => {
            let injected = injected(dice);
            messages.insert(at, injected);
        }
        6 => messages[at] = junk(dice),
        7 | 8 => {
            let id = id(dice, messages);
            set(dice, messages, &["id", "toolCallId"], id);
        }
        9 => {
            let name = dice
                .pick(&[
                    json!(""),
                    json!("bad name"),
                    json!("читать"),
                    json!("x".repeat(200)),
                    json!("a.b/c"),
                    Value::Null,
                    json!(7),
                ])
                .clone();
            set(dice, messages, &["name", "toolName"], name);
        }
        10 => {
            let content = match dice.roll(4) {
                0 => json!("only text"),
                1 => json!(""),
                2 => json!([]),
                _ => junk(dice),
            };
            if let Some(message) = messages[at].as_object_mut() {
                message.insert("content".to_owned(), content);
            }
        }
        11 => {
            let block = match dice.roll(5) {
                0 => json!({"type": "video", "data": "x"}),
                1 => json!({"type": "image", "data": "not base64!", "mimeType": "image/png"}),
                2 => json!({"type": "image", "data": "QQ==", "mimeType": "image/x-icon"}),
                3 => json!({"type": "toolCall"}),
                _ => junk(dice),
            };
            let content = messages[at].get_mut("content");
            if let Some(blocks) = content.and_then(Value::as_array_mut) {
                blocks.insert(dice.roll(blocks.len() + 1), block);
            }
        }
        12 => {
            let reason = *dice.pick(&["stop", "toolUse", "error", "aborted", "pending", "later"]);
            set(dice, messages, &["stopReason"], json!(reason));
        }
        13 => {
            let words = dice
                .pick(&[
                    "",
                    " \n",
                    "\u{fffd}\u{0}\u{1b}[0m",
                    "\u{2028}\"\\",
                    "\u{feff}",
                ])
                .to_owned();
            set(
                dice,
                messages,
                &[
                    "text",
                    "thinking",
                    "thinkingSignature",
                    "description",
                    "data",
                ],
                json!(words),
            );
        }
        _ => change_anything(dice, &mut messages[at]),
    }
}

fn injected(dice: &mut Dice) -> Value {
    match dice.roll(6) {
        0 => json!({"role": "user", "content": "In between."}),
        1 => json!({"role": "system", "content": "A note."}),
        2 => json!({"role": "custom", "customType": "x", "content": "c", "display": true}),
        3 => {
            json!({"role": "toolResult", "toolCallId": "stray", "toolName": "read", "content": [text("r")]})
        }
        4 => {
            json!({"role": "toolResult", "toolCallId": "call_1", "toolName": "read",
            "content": [text("No result provided")], "isError": true})
        }
        _ => json!({"role": "from_the_future", "content": "?"}),
    }
}

fn id(dice: &mut Dice, messages: &[Value]) -> Value {
    let known: Vec<&Value> = messages
        .iter()
        .filter_map(|message| message.get("toolCallId"))
        .collect();
    match dice.roll(8) {
        0 => json!(""),
        1 => json!("x".repeat(300)),
        2 => json!("with space\n"),
        3 => json!("名前"),
        4 => json!(dice.roll(3)),
        5 => junk(dice),
        _ if known.is_empty() => Value::Null,
        _ => (*dice.pick(&known)).clone(),
    }
}

/// Sets one of the fields with these names, wherever they are.
fn set(dice: &mut Dice, messages: &mut [Value], names: &[&str], value: Value) {
    let mut places = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        find(message, &format!("/{at}"), &mut places);
    }
    places.retain(|place| place.rsplit('/').next().is_some_and(|n| names.contains(&n)));
    if places.is_empty() {
        return;
    }
    let place = dice.pick(&places).clone();
    let (at, inside) = place[1..].split_once('/').unwrap_or((&place[1..], ""));
    let message = at.parse().ok().and_then(|at: usize| messages.get_mut(at));
    if let Some(found) = message.and_then(|message| message.pointer_mut(&format!("/{inside}"))) {
        *found = value;
    }
}

/// Puts junk somewhere into a message, or takes something out of it.
fn change_anything(dice: &mut Dice, message: &mut Value) {
    let mut places = Vec::new();
    find(message, "", &mut places);
    if places.is_empty() {
        return;
    }
    let place = dice.pick(&places).clone();
    if dice.once_in(3)
        && let Some((parent, name)) = place.rsplit_once('/')
        && let Some(Value::Object(fields)) = message.pointer_mut(parent)
    {
        fields.shift_remove(name);
        return;
    }
    let value = junk(dice);
    if let Some(found) = message.pointer_mut(&place) {
        *found = value;
    }
}

/// The places of everything inside a value, as JSON pointers. No name in here needs an escape.
fn find(value: &Value, at: &str, places: &mut Vec<String>) {
    let mut inner = |name: &str, value: &Value| {
        let place = format!("{at}/{name}");
        find(value, &place, places);
        places.push(place);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| inner(name, value)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(at, value)| inner(&at.to_string(), value)),
        _ => {}
    }
}

fn junk(dice: &mut Dice) -> Value {
    match dice.roll(12) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(1e300),
        4 => json!(""),
        5 => json!("junk \u{fffd}"),
        6 => json!([]),
        7 => json!([null, 3, "x", [text("nested")]]),
        8 => json!({}),
        9 => json!({"type": "text"}),
        10 => json!({"role": "assistant"}),
        _ => json!({"": {"type": 5}, "\u{0}": "k"}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_history() {
        let history = |seed| damaged(&mut Dice::new(seed));
        assert_eq!(history(3), history(3));
        assert_ne!(history(3), history(4));
        let mut sizes: Vec<usize> = (0..200).map(|seed| history(seed).len()).collect();
        sizes.sort_unstable();
        assert!(
            sizes[0] < 4 && sizes[100] > 4 && sizes[199] > 15,
            "{sizes:?}"
        );
    }
}
