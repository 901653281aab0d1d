//! Texts, JSON values and entry bodies to draw from.

use std::sync::Arc;

use pliant_kernel::tree::{
    Compaction, CustomEntry, CustomMessageEntry, EntryBody, ModelChange, OtherEntry, Replacement,
    ThinkingLevelChange, UsageEntry,
};
use pliant_sdk::message::{Content, Message, MessageContent, Usage};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Mostly short, with everything that JSON escapes.
pub fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z \"\\\\\n\r\t\u{0}\u{2028}é→😀]{0,10}",
        1 => any::<String>(),
    ]
}

/// Any JSON value.
pub fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        proptest::num::f64::NORMAL.prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            object(inner).prop_map(Value::from),
        ]
    })
}

fn object(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    vec((text(), value), 0..3).prop_map(|fields| fields.into_iter().collect())
}

/// Fields that no version knows.
pub fn unknown_fields() -> impl Strategy<Value = Map<String, Value>> {
    vec(("x-[a-z]{1,3}", value()), 0..3).prop_map(|fields| fields.into_iter().collect())
}

pub fn usage() -> impl Strategy<Value = Usage> {
    (0..1000_u64, 0..1000_u64).prop_map(|(input, output)| Usage {
        input,
        output,
        total_tokens: input + output,
        ..Usage::default()
    })
}

fn content() -> impl Strategy<Value = MessageContent> {
    prop_oneof![
        text().prop_map(MessageContent::Text),
        text().prop_map(|text| MessageContent::Blocks(vec![Content::text(text)])),
    ]
}

/// What may take the place of a content.
pub fn replacement() -> impl Strategy<Value = Replacement> {
    prop_oneof![
        Just(Replacement::Omit),
        content().prop_map(Replacement::Content),
    ]
}

/// A message that may be stored, with fields from later versions.
pub fn message() -> impl Strategy<Value = Message> {
    let fields = prop_oneof![
        3 => text().prop_map(|text| json!({"role": "user", "content": text})),
        3 => (text(), usage()).prop_map(|(text, usage)| json!({
            "role": "assistant", "content": [
                {"type": "thinking", "thinking": text, "thinkingSignature": "c2ln"},
                {"type": "text", "text": text}, {"type": "from-later", "x": text},
            ],
            "api": "a", "provider": "p", "model": "m", "usage": usage, "stopReason": "stop",
        })),
        1 => (text(), any::<bool>()).prop_map(|(text, failed)| json!({
            "role": "assistant", "content": [
                {"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": text}},
            ],
            "provider": "p", "model": "n", "stopReason": if failed { "error" } else { "toolUse" },
        })),
        1 => text().prop_map(|text| json!({
            "role": "toolResult", "toolCallId": "c", "toolName": "read",
            "content": [{"type": "text", "text": text}], "isError": false,
        })),
        1 => text().prop_map(|text| json!({
            "role": "system", "content": text, "sections": {"preamble": text},
            "toolsAdded": [{"name": "read", "description": text, "parameters": {}}],
        })),
        1 => text().prop_map(|text| json!({
            "role": "bashExecution", "command": text, "output": text, "exitCode": 0,
        })),
        1 => text().prop_map(|text| json!({"role": "from-later", "content": text})),
    ];
    (fields, unknown_fields()).prop_map(|(mut message, extra)| {
        message["timestamp"] = json!(1_767_225_600_000_i64);
        message.as_object_mut().unwrap().extend(extra);
        Message::from(message)
    })
}

/// A body that may be appended as it is anywhere.
pub fn body() -> impl Strategy<Value = EntryBody> {
    prop_oneof![
        8 => message().prop_map(|message| EntryBody::Message(Arc::new(message))),
        1 => (text(), content(), proptest::option::of(value())).prop_map(
            |(custom_type, content, details)| EntryBody::CustomMessage(CustomMessageEntry {
                custom_type,
                content,
                display: true,
                details: details.filter(|details| !details.is_null()),
            })
        ),
        1 => (text(), proptest::option::of(value())).prop_map(|(custom_type, data)| {
            let data = data.filter(|data| !data.is_null());
            EntryBody::Custom(CustomEntry { custom_type, data })
        }),
        1 => (text(), text()).prop_map(|(provider, model_id)| {
            EntryBody::ModelChange(ModelChange { provider, model_id })
        }),
        1 => "off|low|high|[a-z]{1,4}".prop_map(|thinking_level| {
            EntryBody::ThinkingLevelChange(ThinkingLevelChange { thinking_level })
        }),
        1 => (text(), usage()).prop_map(|(kind, usage)| EntryBody::Usage(UsageEntry {
            kind,
            usage,
            ..UsageEntry::default()
        })),
        1 => ("later-[a-z]{0,4}", unknown_fields()).prop_map(|(type_name, fields)| {
            EntryBody::Other(OtherEntry { type_name, fields })
        }),
        1 => (text(), usage()).prop_map(|(summary, usage)| EntryBody::Compaction(Compaction {
            summary,
            usage: Some(usage),
            ..Compaction::default()
        })),
    ]
}
