//! Behaviour of compaction over trees in memory: what is said goes in, what stays and what is
//! summarised comes out.

use std::path::Path;
use std::sync::Arc;

use pliant_sdk::message::{Message, MessageContent, Usage};
use pliant_tests::histories::Dice;
use serde_json::{Value, json};

use super::summarize::{accepted, conversation, history_request, merged, prefix_request};
use super::*;
use crate::tree::{Compaction, EntryBody, EntryId, Ids, Replacement};

/// A branch, and its entries by the words that were said.
pub(super) struct Talk(pub(super) SessionTree);

impl Talk {
    pub(super) fn new(messages: impl IntoIterator<Item = Value>) -> Self {
        let mut talk = Self(SessionTree::in_memory(Path::new("/w"), None, Ids::system()));
        for message in messages {
            talk.say(message);
        }
        talk
    }

    pub(super) fn say(&mut self, message: Value) -> Arc<Message> {
        let message = Arc::new(Message::from(message));
        self.0.append_message(Arc::clone(&message)).unwrap();
        message
    }

    pub(super) fn leaf(&self) -> EntryId {
        self.0.leaf().unwrap().clone()
    }

    pub(super) fn omit(&mut self) {
        let leaf = self.leaf();
        self.0.edit_context(&leaf, Replacement::Omit).unwrap();
    }

    pub(super) fn compact(&mut self, prepared: Preparation) {
        let compaction = Compaction {
            summary: "S".into(),
            first_kept_entry_id: prepared.first_kept,
            tokens_before: prepared.tokens_before,
            details: serde_json::to_value(prepared.files.lists()).ok(),
            ..Compaction::default()
        };
        self.0.append(EntryBody::Compaction(compaction)).unwrap();
    }

    /// `history | prefix | kept`, each as the first words of its messages.
    fn divided(&self, keep: u64) -> String {
        let prepared = match prepare(&self.0, keep) {
            Ok(prepared) => prepared,
            Err(error) => return format!("{error:?}"),
        };
        let words = |messages: &[Arc<Message>]| {
            let words: Vec<String> = messages.iter().map(word).collect();
            words.join(" ")
        };
        let sources = self.0.projection().sources();
        let kept_from = prepared.first_kept.as_ref().map_or(sources.len(), |id| {
            sources.iter().position(|s| s.entry.id() == id).unwrap()
        });
        let kept: Vec<Arc<Message>> = sources[kept_from..]
            .iter()
            .flat_map(|s| self.0.projection().messages_of(s).to_vec())
            .collect();
        let parts = [&prepared.history, &prepared.turn_prefix, &kept];
        parts.map(|messages| words(messages)).join(" | ")
    }
}

pub(super) fn word(message: &Arc<Message>) -> String {
    let json = serde_json::to_value(message).unwrap();
    let content = &json["content"];
    let text = content.as_str().or(content[0]["text"].as_str());
    let text = text.or(content[0]["id"].as_str()).unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// A text of so many tokens that begins with a word of its own.
pub(super) fn long(word: &str, tokens: usize) -> String {
    format!("{word:<width$}", width = tokens * 4)
}

pub(super) fn user(word: &str, tokens: usize) -> Value {
    json!({"role": "user", "content": long(word, tokens)})
}

pub(super) fn answer(word: &str, tokens: usize) -> Value {
    json!({"role": "assistant", "provider": "p", "model": "m", "stopReason": "stop",
        "content": [{"type": "text", "text": long(word, tokens)}]})
}

pub(super) fn call(id: &str) -> Value {
    json!({"role": "assistant", "provider": "p", "model": "m", "stopReason": "toolUse",
        "content": [{"type": "toolCall", "id": id, "name": "read", "arguments": {"path": id}}]})
}

pub(super) fn result(id: &str, tokens: usize) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "read",
        "content": [{"type": "text", "text": long(&format!("r{id}"), tokens)}]})
}

pub(super) fn with(mut message: Value, more: Value) -> Value {
    for (key, value) in more.as_object().unwrap() {
        message[key] = value.clone();
    }
    message
}

fn model(window: u64) -> Model {
    Model {
        id: "m".into(),
        provider: "p".into(),
        context_window: window,
        max_tokens: 50,
        ..Model::default()
    }
}

const SETTINGS: CompactionSettings = CompactionSettings {
    enabled: true,
    reserve_tokens: 100,
    keep_recent_tokens: 50,
};

pub(super) fn messages(list: impl IntoIterator<Item = Value>) -> Vec<Arc<Message>> {
    list.into_iter()
        .map(|message| Arc::new(Message::from(message)))
        .collect()
}

#[test]
fn the_cut_is_the_nearest_place_where_a_context_may_begin() {
    // R29
    let talk = Talk::new([
        user("a", 10),
        answer("b", 10),
        user("c", 10),
        answer("d", 10),
    ]);
    assert_eq!(talk.divided(20), "a b |  | c d");
    assert_eq!(talk.divided(11), "a b |  | c d");
    assert_eq!(talk.divided(10), "a b | c | d");
    // The budget is never reached: everything stays.
    assert_eq!(talk.divided(41), "Nothing");
    assert_eq!(Talk::new([]).divided(1), "Nothing");
}

#[test]
fn a_result_never_comes_first_and_a_long_one_keeps_its_call() {
    // R29, invariant 34
    let mut talk = Talk::new([user("a", 10), call("x"), result("x", 10), answer("b", 10)]);
    assert_eq!(talk.divided(15), " | a x rx | b");
    talk.say(call("y"));
    talk.say(result("y", 1000));
    assert_eq!(talk.divided(500), " | a x rx b | y ry");
}

#[test]
fn a_turn_that_is_cut_is_divided_from_the_history_before_it() {
    // R31
    let talk = Talk::new([
        user("a", 10),
        answer("b", 10),
        user("c", 10),
        call("x"),
        result("x", 10),
        answer("d", 10),
    ]);
    assert_eq!(talk.divided(10), "a b | c x rx | d");
}

#[test]
fn entries_without_messages_stay_with_what_follows() {
    // R29
    let mut talk = Talk::new([user("a", 10), answer("b", 10)]);
    talk.0.set_name("n").unwrap();
    let name = talk.leaf();
    talk.say(user("c", 10));
    assert_eq!(prepare(&talk.0, 10).unwrap().first_kept, Some(name));
}

#[test]
fn the_next_compaction_goes_on_from_the_last_and_none_follows_at_once() {
    // R28, invariants 12 and 34
    let mut talk = Talk::new([
        json!({"role": "system", "content": "prompt"}),
        user("a", 10),
        answer("b", 10),
        user("c", 10),
    ]);
    let before = talk.0.context().to_vec();
    talk.compact(prepare(&talk.0, 10).unwrap());
    assert_eq!(talk.divided(1), "Compacted");
    let after = talk.0.context();
    let roles: Vec<&str> = after.iter().map(|message| message.role()).collect();
    assert_eq!(roles, ["system", "compactionSummary", "user"]);
    assert_eq!(after[2..], before[3..]);

    talk.say(answer("d", 10));
    talk.say(user("e", 10));
    assert_eq!(talk.divided(10), "c d |  | e");
    let next = prepare(&talk.0, 10).unwrap();
    assert_eq!(next.previous_summary.as_deref(), Some("S"));
    talk.compact(next);
    let roles: Vec<&str> = talk.0.context().iter().map(|m| m.role()).collect();
    assert_eq!(roles, ["system", "compactionSummary", "user"]);
}

#[test]
fn a_prompt_that_no_attempt_could_answer_is_summarised_too() {
    // R30, S34
    let mut talk = Talk::new([user("a", 10), answer("b", 10), user("c", 1000)]);
    talk.say(with(answer("failed", 0), json!({"stopReason": "error"})));
    talk.omit();
    assert_eq!(talk.divided(500), "a b | c | ");
    talk.compact(prepare(&talk.0, 500).unwrap());
    let roles: Vec<&str> = talk.0.context().iter().map(|m| m.role()).collect();
    assert_eq!(roles, ["compactionSummary"]);
    // So it is when the results of the attempt were left out with it, and a name was given since (R9).
    let mut talk = Talk::new([user("a", 10), answer("b", 10), user("c", 1000), call("x")]);
    talk.omit();
    talk.say(result("x", 1));
    talk.omit();
    talk.0.set_name("n").unwrap();
    assert_eq!(talk.divided(500), "a b | c | ");
    // An edit that says something of what is kept is worth keeping it.
    let mut talk = Talk::new([user("a", 10), answer("b", 10), user("c", 1000)]);
    let kept = talk.leaf();
    talk.say(with(answer("failed", 0), json!({"stopReason": "error"})));
    talk.omit();
    let shorter = Replacement::Content(MessageContent::Text(long("c", 900)));
    talk.0.edit_context(&kept, shorter).unwrap();
    assert_eq!(talk.divided(500), "a b |  | c");
    // One that is followed by nothing stays.
    let talk = Talk::new([user("a", 10), answer("b", 10), user("c", 1000)]);
    assert_eq!(talk.divided(500), "a b |  | c");
}

#[test]
fn the_estimate_is_the_last_usage_and_what_came_after_it() {
    // R16, R17
    let reported = json!({"usage": {"input": 900, "output": 100}});
    let mut talk = Talk::new([
        user("a", 10),
        with(answer("b", 10), reported.clone()),
        user("c", 10),
        with(
            answer("d", 5),
            json!({"stopReason": "error", "usage": {"input": 7}}),
        ),
    ]);
    assert_eq!(context_tokens(&talk.0), 1015);
    // An edit makes the usage one of another context; then everything is estimated.
    talk.omit();
    assert_eq!(context_tokens(&talk.0), 30);
    talk.say(with(answer("e", 1), reported));
    assert_eq!(context_tokens(&talk.0), 1000);
    talk.compact(prepare(&talk.0, 11).unwrap());
    assert_eq!(context_tokens(&talk.0), 12);
}

#[test]
fn a_message_is_a_token_for_four_of_its_characters() {
    // R17
    let tokens = |message: Value| super::estimate::message_tokens(&Message::from(message));
    let blocks = |blocks: Value| json!({"role": "assistant", "content": blocks});
    assert_eq!(tokens(json!({"role": "user", "content": "12345"})), 2);
    // As services count them: a character outside the first plane is two.
    assert_eq!(
        tokens(json!({"role": "user", "content": "\u{1f600}\u{1f600}\u{1f600}"})),
        2
    );
    let image = json!([{"type": "image", "data": "x", "mimeType": "image/png"}]);
    assert_eq!(tokens(json!({"role": "user", "content": image})), 1200);
    assert_eq!(
        tokens(blocks(
            json!([{"type": "thinking", "thinking": "12345678"}])
        )),
        2
    );
    let call = json!([{"type": "toolCall", "id": "long id that is not sent", "name": "read",
        "arguments": {"path": "ab"}}]);
    assert_eq!(tokens(blocks(call)), (4 + 13_u64).div_ceil(4));
    let bash = json!({"role": "bashExecution", "command": "1234", "output": "56789"});
    assert_eq!(tokens(bash), 3);
    assert_eq!(
        tokens(json!({"role": "compactionSummary", "summary": "1234"})),
        1
    );
    let system = json!({"role": "system", "content": "1234", "sections": {"a": "5678"},
        "toolsAdded": [{"name": "t"}]});
    let tool = pliant_sdk::message::Tool {
        name: "t".into(),
        ..Default::default()
    };
    let declared = serde_json::to_string(&[tool]).unwrap().len() as u64;
    assert_eq!(tokens(system), (8 + declared).div_ceil(4));
}

#[test]
fn the_replayed_prompt_is_counted_once() {
    // R16
    let section = |text: &str| json!({"role": "system", "content": "", "sections": {"s": text}});
    let talk = Talk::new([
        section(&long("x", 10)),
        user("a", 10),
        section(&long("y", 20)),
    ]);
    assert_eq!(context_tokens(&talk.0), 30);
}

#[test]
fn the_threshold_leaves_the_reserve_free_and_needs_a_known_window() {
    // R15
    let talk = Talk::new([user("a", 901)]);
    assert!(exceeds(&talk.0, &model(1000), &SETTINGS));
    assert!(!exceeds(&talk.0, &model(1001), &SETTINGS));
    assert!(!exceeds(&talk.0, &model(0), &SETTINGS));
    let off = CompactionSettings {
        enabled: false,
        ..SETTINGS
    };
    assert!(!exceeds(&talk.0, &model(1000), &off));
}

/// What follows from an answer as the last one of a short talk.
/// With one model selected, which may not be the one that answered.
fn needed(talk: &Talk, said: &Arc<Message>, model: &Model, too_large: bool) -> Option<Need> {
    let answer = said.as_assistant().unwrap();
    let same = answer.provider == model.provider && answer.model == model.id;
    let answering = same.then_some(model);
    need(&talk.0, said, answering, model, &SETTINGS, too_large)
}

fn need_of(said: Value, model: &Model) -> Option<Need> {
    let mut talk = Talk::new([user("a", 10)]);
    let said = talk.say(said);
    let too_large = said.as_assistant().unwrap().error_message.is_some();
    needed(&talk, &said, model, too_large)
}

#[test]
fn an_overflow_is_an_error_about_size_or_a_usage_over_the_window() {
    // R19, R20, R21
    const AGAIN: Option<Need> = Some(Need::Overflow { finished: false });
    let usage = |input, output| json!({"usage": {"input": input, "output": output}});
    let stopped = |why: &str, input, output| {
        with(
            with(answer("b", 1), usage(input, output)),
            json!({"stopReason": why}),
        )
    };
    let refused = with(
        answer("", 0),
        json!({"stopReason": "error", "errorMessage": "long"}),
    );
    let window = model(1000);
    assert_eq!(need_of(refused.clone(), &window), AGAIN);
    let finished = Some(Need::Overflow { finished: true });
    assert_eq!(need_of(stopped("stop", 1001, 1), &window), finished);
    assert_eq!(need_of(stopped("stop", 800, 1), &window), None);
    assert_eq!(
        need_of(stopped("stop", 950, 1), &window),
        Some(Need::Threshold)
    );
    assert_eq!(need_of(stopped("length", 990, 0), &window), AGAIN);
    // Less than the model's limit of 50 was written.
    assert_eq!(need_of(stopped("length", 10, 49), &window), AGAIN);
    assert_eq!(need_of(stopped("length", 10, 50), &window), None);
    // Another model's answer says nothing of this one's limits.
    let other = with(refused, json!({"model": "other"}));
    assert_eq!(need_of(other, &window), None);
}

#[test]
fn an_answer_that_was_edited_or_compacted_since_needs_nothing() {
    // R18, R20
    let over = with(
        answer("b", 1),
        json!({"usage": {"input": 1001, "output": 1}}),
    );
    let mut talk = Talk::new([user("a", 10)]);
    let said = talk.say(over);
    assert!(needed(&talk, &said, &model(1000), false).is_some());
    talk.omit();
    assert_eq!(needed(&talk, &said, &model(1000), false), None);
    let mut talk = Talk::new([user("a", 10), answer("b", 10)]);
    let said = talk.0.context()[1].clone();
    talk.compact(prepare(&talk.0, 1).unwrap());
    assert_eq!(needed(&talk, &said, &model(11), false), None);
}

#[test]
fn a_conversation_is_told_as_text_without_thinking_and_with_short_results() {
    // R32
    let call = json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "One."}, {"type": "text", "text": "Two."},
        {"type": "toolCall", "id": "1", "name": "read", "arguments": {"path": "a", "limit": 3}},
        {"type": "toolCall", "id": "2", "name": "ls", "arguments": {}}]});
    let list = [
        user("Hi", 0),
        call,
        result("1", 501),
        json!({"role": "system", "content": "s"}),
    ];
    let told = conversation(&messages(list), usize::MAX);
    let (head, tail) = told.split_at(told.find("r1").unwrap());
    assert_eq!(
        head,
        "[User]: Hi\n\n[Assistant]: One.\nTwo.\n\n[Assistant tool calls]: read(path=\"a\", \
         limit=3); ls()\n\n[Tool result]: "
    );
    assert!(
        tail.ends_with("\n[4 more characters are left out]"),
        "{tail}"
    );
}

#[test]
fn of_a_conversation_that_does_not_fit_the_end_is_told() {
    let list = ["a", "b", "c"].map(|word| user(word, 5));
    let told = conversation(&messages(list), 40);
    assert!(
        told.starts_with("[2 earlier parts are left out]\n\n[User]: c"),
        "{told}"
    );
    // R32: of one part that is too long its beginning is better than nothing.
    let one = conversation(&messages([user("a", 5)]), 10);
    assert!(
        one.starts_with("[User]: ") && one.contains("more characters are left out"),
        "{one}"
    );
}

#[test]
fn requests_hold_what_is_summarised_and_the_form_of_the_summary() {
    // R33
    let first = history_request("TALK", None, Some(" the tests "));
    assert!(first.starts_with("<conversation>\nTALK\n</conversation>"));
    for heading in [
        "## Goal",
        "## Constraints & Preferences",
        "## Progress\n### Done\n- [x]",
        "### In Progress",
        "### Blocked",
        "## Key Decisions",
        "## Next Steps\n1.",
        "## Critical Context",
    ] {
        assert!(first.contains(heading), "{heading}");
    }
    assert!(first.ends_with("Additional focus: the tests"));
    let update = history_request("TALK", Some("BEFORE"), None);
    assert!(update.contains("<previous-summary>\nBEFORE\n</previous-summary>"));
    let prefix = prefix_request("TALK", None);
    for heading in [
        "## Original Request",
        "## Progress So Far",
        "## Context Needed to Continue",
    ] {
        assert!(prefix.contains(heading), "{heading}");
    }
}

#[test]
fn a_divided_turn_follows_the_history_under_its_own_heading() {
    // R34
    let heading = "\n\n---\n\n**Turn Context (split turn):**\n\nP";
    assert_eq!(merged(Some("H"), "P"), format!("H{heading}"));
    assert!(merged(None, "P").ends_with(heading));
}

#[test]
fn only_a_finished_text_is_a_summary() {
    // R35
    let read = |message: Value| accepted(Message::from(message).as_assistant().unwrap());
    assert_eq!(read(answer("fine", 1)), Ok("fine".to_owned()));
    assert!(read(with(answer("x", 1), json!({"stopReason": "length"}))).is_err());
    let failed = json!({"stopReason": "error", "errorMessage": "no such model"});
    let error = read(with(answer("x", 1), failed)).unwrap_err();
    assert!(error.contains("no such model"), "{error}");
    assert!(read(call("x")).is_err() && read(answer("", 1)).is_err());
}

#[test]
fn files_of_the_calls_and_of_the_last_compaction_are_listed_once() {
    // R36
    let calls = json!({"role": "assistant", "stopReason": "toolUse", "content": [
        {"type": "toolCall", "id": "1", "name": "read", "arguments": {"path": "b"}},
        {"type": "toolCall", "id": "2", "name": "edit", "arguments": {"path": "c"}},
        {"type": "toolCall", "id": "3", "name": "read", "arguments": {"path": "c"}},
        {"type": "toolCall", "id": "4", "name": "bash", "arguments": {"path": "never"}}]});
    let nested = json!({"calls": [{"name": "write", "arguments": {"path": "a"}}]});
    let list = messages([calls, with(result("4", 1), json!({"nestedCalls": nested}))]);
    let noted = json!({"readFiles": ["a", "z"], "modifiedFiles": []});
    let mut files = FileOps::of(&list);
    files.take_noted(&noted);
    assert_eq!(
        files.lists().appendix(),
        "\n\n<read-files>\nb\nz\n</read-files>\n\n<modified-files>\na\nc\n</modified-files>"
    );
    assert_eq!(FileLists::default().appendix(), "");
}

#[test]
fn a_plugins_details_are_not_taken_for_file_lists() {
    // R36
    let mut talk = Talk::new([user("a", 10)]);
    let compaction = Compaction {
        details: Some(json!({"readFiles": ["x"]})),
        usage: Some(Usage::default()),
        from_hook: Some(true),
        ..Compaction::default()
    };
    talk.0.append(EntryBody::Compaction(compaction)).unwrap();
    talk.say(user("b", 10));
    talk.say(answer("c", 10));
    let prepared = prepare(&talk.0, 10).unwrap();
    assert_eq!(prepared.files, FileOps::default());
}

#[test]
fn whatever_was_said_a_compaction_loses_nothing_between_summary_and_what_stays() {
    // invariants 12 and 34
    for seed in 0..300 {
        let mut dice = Dice::new(seed);
        let mut talk = Talk::new([json!({"role": "system", "content": "prompt"})]);
        for step in 0..60 {
            let id = step.to_string();
            match dice.roll(9) {
                0 | 1 => drop(talk.say(user(&id, dice.roll(30)))),
                2 => drop(talk.say(answer(&id, dice.roll(30)))),
                3 | 4 => {
                    talk.say(call(&id));
                    talk.say(result(&id, dice.roll(60)));
                }
                5 => {
                    let failed = json!({"stopReason": "error"});
                    talk.say(with(answer(&id, 1), failed));
                    talk.omit();
                }
                6 => drop(talk.say(json!({"role": "system", "content": id}))),
                7 => drop(talk.0.set_name(&id).unwrap()),
                _ => compacted_well(&mut talk, dice.roll(60).try_into().unwrap(), seed),
            }
        }
    }
}

fn compacted_well(talk: &mut Talk, keep: u64, seed: u64) {
    let conversation = |talk: &Talk| -> Vec<Arc<Message>> {
        let aside =
            |message: &&Arc<Message>| !matches!(message.role(), "system" | "compactionSummary");
        talk.0.context().iter().filter(aside).cloned().collect()
    };
    let before = conversation(talk);
    let Ok(prepared) = prepare(&talk.0, keep) else {
        return;
    };
    let mut whole = prepared.history.clone();
    whole.extend(prepared.turn_prefix.iter().cloned());
    talk.compact(prepared);
    let kept = conversation(talk);
    assert_ne!(
        kept.first().map(|first| first.role()),
        Some("toolResult"),
        "seed {seed}"
    );
    whole.extend(kept);
    assert_eq!(whole, before, "seed {seed}");
    let roles: Vec<&str> = talk.0.context().iter().map(|m| m.role()).collect();
    assert_eq!(roles[..2], ["system", "compactionSummary"], "seed {seed}");
    assert!(!roles[2..].contains(&"compactionSummary"), "seed {seed}");
    assert_eq!(prepare(&talk.0, keep), Err(CompactionError::Compacted));
}
