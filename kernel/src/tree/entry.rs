//! One record of the tree: the line as it stands in the file, and the typed view of it, which is
//! made when somebody asks (`kernel.md` §2.3, M7). What each kind holds is in [`super::body`].

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use pliant_sdk::message::{
    BranchSummaryMessage, CompactionSummaryMessage, CustomMessage, Message, Usage,
};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::body::{Compaction, EntryBody, EntryKind};
use super::head::Head;
use super::json as raw_json;
use super::skim;
use super::source::{Line, text_of};
use super::time::ms_from_iso;
use super::{EntryId, TreeError};

/// The type of entries that stand for records that are gone. Like any unknown type it is no context.
const GONE: &str = "unreadable";

/// One entry. It never changes after it was appended or read (S8).
pub struct Entry {
    pub(super) id: EntryId,
    pub(super) parent: Option<EntryId>,
    pub(super) timestamp: Box<str>,
    pub(super) kind: EntryKind,
    pub(super) line: Line,
    /// Its line in the file, counted from 1; 0 when it has none yet.
    pub(super) at_line: u32,
    // Boxed: most entries of a large session are never looked into.
    pub(super) body: OnceLock<Box<EntryBody>>,
    messages: OnceLock<Box<[Arc<Message>]>>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.raw())
    }
}

/// Serialises as the stored line, so that unknown fields reach clients too.
impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        <&RawValue>::deserialize(&mut serde_json::Deserializer::from_str(&self.raw()))
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

/// The order of fields in a line.
#[derive(Serialize)]
struct LineFields<'a> {
    r#type: &'a str,
    id: &'a EntryId,
    #[serde(rename = "parentId")]
    parent: Option<&'a EntryId>,
    timestamp: &'a str,
    #[serde(flatten)]
    body: &'a EntryBody,
}

impl Entry {
    /// An entry with a line of its own.
    pub(super) fn new(
        id: EntryId,
        parent: Option<EntryId>,
        timestamp: String,
        body: EntryBody,
    ) -> Result<Self, TreeError> {
        let line = serde_json::to_string(&LineFields {
            r#type: body.type_name(),
            id: &id,
            parent: parent.as_ref(),
            timestamp: &timestamp,
            body: &body,
        })?;
        let mut entry = Self::stored(id, parent, &timestamp, body.kind(), Line::own(line));
        entry.body = OnceLock::from(Box::new(body));
        Ok(entry)
    }

    /// An entry whose body is still to be read from its line.
    pub(super) fn stored(
        id: EntryId,
        parent: Option<EntryId>,
        timestamp: &str,
        kind: EntryKind,
        line: Line,
    ) -> Self {
        let (body, messages) = (OnceLock::new(), OnceLock::new());
        Self {
            id,
            parent,
            timestamp: timestamp.into(),
            kind,
            line,
            at_line: 0,
            body,
            messages,
        }
    }

    /// An entry in the place of a record that is gone.
    pub(super) fn gone(id: EntryId, parent: Option<EntryId>, timestamp: &str) -> Self {
        let line = json!({"type": GONE, "id": id, "parentId": parent, "timestamp": timestamp});
        let line = Line::own(line.to_string());
        Self::stored(id, parent, timestamp, EntryKind::Other, line)
    }

    /// Whether it is such an entry.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.body(), EntryBody::Other(other) if other.type_name == GONE)
    }

    /// Whether it is, and has no line in the file.
    pub(super) fn is_bridge(&self) -> bool {
        matches!(self.line, Line::Own(_)) && self.is_gone()
    }

    /// The same entry, with everything still to be read from its line: what looks at many entries once
    /// leaves none of them in memory.
    #[must_use]
    pub fn unread(&self) -> Self {
        let (id, parent) = (self.id.clone(), self.parent.clone());
        let entry = Self::stored(id, parent, &self.timestamp, self.kind, self.line.clone());
        Self {
            at_line: self.at_line,
            ..entry
        }
    }

    /// The same entry with another line.
    pub(super) fn with_line(&self, line: Line) -> Self {
        Self {
            line,
            at_line: 0,
            ..self.unread()
        }
    }

    /// Whether its body was read.
    pub(crate) fn is_read(&self) -> bool {
        self.body.get().is_some()
    }

    /// The name of this entry.
    #[must_use]
    pub fn id(&self) -> &EntryId {
        &self.id
    }

    /// Its line in the file, counted from 1; `None` for one that has none.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        Some(self.at_line as usize).filter(|line| *line > 0)
    }

    /// The parent as stored. It may name no entry; the path then ends here (S20).
    #[must_use]
    pub fn parent(&self) -> Option<&EntryId> {
        self.parent.as_ref()
    }

    /// When it was appended, ISO 8601.
    #[must_use]
    pub fn timestamp(&self) -> &str {
        &self.timestamp
    }

    /// When it was appended, Unix milliseconds; 0 when unreadable.
    #[must_use]
    pub fn timestamp_ms(&self) -> i64 {
        ms_from_iso(&self.timestamp).unwrap_or(0)
    }

    /// What the `type` field says.
    #[must_use]
    pub fn kind(&self) -> EntryKind {
        self.kind
    }

    /// The JSON text of the entry as in the file, from where it is read; empty when the file does
    /// not hold it any more.
    #[must_use]
    pub fn raw(&self) -> Cow<'_, str> {
        self.text().unwrap_or_default()
    }

    /// The entry as stored. Of one whose line cannot be read there is what every entry has.
    #[must_use]
    pub fn to_json(&self) -> Value {
        serde_json::from_str(&self.raw()).unwrap_or_else(|_| {
            let kind = Some(self.kind.as_str()).filter(|kind| !kind.is_empty());
            json!({
                "type": kind.unwrap_or(GONE), "id": self.id,
                "parentId": self.parent, "timestamp": self.timestamp,
            })
        })
    }

    /// The text of its line, unless the file does not hold it any more.
    fn text(&self) -> io::Result<Cow<'_, str>> {
        if let Line::Own(text) = &self.line {
            return Ok(Cow::Borrowed(text));
        }
        let bytes = self.line.bytes()?;
        let is_own = skim::head(&bytes).is_none_or(|head| head.id == self.id.as_str());
        let text = text_of(bytes);
        // The last id of a line counts, if it has several.
        let has_own =
            || Head::parse(&text).is_some_and(|head| head.id.text() == Some(self.id.as_str()));
        if !is_own && !has_own() {
            // Somebody rewrote the file in place.
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(text)
    }

    /// The typed view. That of an entry whose line cannot be read is looked for again next time.
    pub fn body(&self) -> &EntryBody {
        if let Some(body) = self.body.get() {
            return body;
        }
        match self.text() {
            Ok(text) => self
                .body
                .get_or_init(|| Box::new(EntryBody::read(self.kind, &text))),
            Err(_) => EntryBody::unknown(),
        }
    }

    /// Whether the line says who the entry is but not what it holds. Reads the line.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        match self.body() {
            EntryBody::Other(other) => other.type_name.is_empty() || self.is_gone(),
            EntryBody::Message(message) => {
                matches!(&**message, Message::Other(value) if value.is_null())
            }
            _ => false,
        }
    }

    /// The message, if this is a `message` entry.
    #[must_use]
    pub fn message(&self) -> Option<&Arc<Message>> {
        match self.kind {
            EntryKind::Message => match self.body() {
                EntryBody::Message(message) => Some(message),
                _ => None,
            },
            _ => None,
        }
    }

    /// A user or assistant message: what makes a session worth a file (S11).
    #[must_use]
    pub fn is_conversation(&self) -> bool {
        let role = self.message().map(|message| message.role());
        matches!(role, Some("user" | "assistant"))
    }

    /// What the entry contributes to a context, edits aside (2.7 step 4). The same `Arc`s at every
    /// call. A compaction contributes this only where it leads.
    #[must_use]
    pub fn messages(&self) -> &[Arc<Message>] {
        if let Some(messages) = self.messages.get() {
            return messages;
        }
        let messages = self.make_messages();
        // What cannot be read now may be readable later.
        if messages.is_empty() && !self.is_read() {
            return &[];
        }
        self.messages.get_or_init(|| messages.into())
    }

    fn make_messages(&self) -> Vec<Arc<Message>> {
        if !self.kind.gives_messages() {
            return Vec::new();
        }
        match self.body() {
            EntryBody::Message(message) => vec![Arc::clone(message)],
            EntryBody::CustomMessage(custom) => {
                vec![Arc::new(Message::Custom(CustomMessage {
                    custom_type: custom.custom_type.clone(),
                    content: custom.content.clone(),
                    display: custom.display,
                    details: custom.details.clone(),
                    timestamp: self.timestamp_ms(),
                    ..CustomMessage::default()
                }))]
            }
            EntryBody::BranchSummary(summary) if !summary.summary.is_empty() => {
                vec![Arc::new(Message::BranchSummary(BranchSummaryMessage {
                    summary: summary.summary.clone(),
                    from_id: summary.from_id.clone(),
                    timestamp: self.timestamp_ms(),
                    ..BranchSummaryMessage::default()
                }))]
            }
            EntryBody::Compaction(compaction) => self.compacted(compaction),
            _ => Vec::new(),
        }
    }

    fn compacted(&self, compaction: &Compaction) -> Vec<Arc<Message>> {
        let summary = Arc::new(Message::CompactionSummary(CompactionSummaryMessage {
            summary: compaction.summary.clone(),
            tokens_before: compaction.tokens_before,
            timestamp: self.timestamp_ms(),
            ..CompactionSummaryMessage::default()
        }));
        compaction
            .system_message
            .iter()
            .cloned()
            .chain([summary])
            .collect()
    }

    /// For an edit: its target's message with the new content. Kept, so that later requests share
    /// it like any other message.
    pub(super) fn edited<'a>(&'a self, target: &'a Self) -> &'a [Arc<Message>] {
        if let Some(messages) = self.messages.get() {
            return messages;
        }
        let EntryBody::ContextEdit(edit) = self.body() else {
            return target.messages();
        };
        let messages = target.messages();
        // What cannot be read now may be readable later.
        if !target.is_read() {
            return messages;
        }
        let edited = |message: &Arc<Message>| edit.replacement.applied_to(message);
        self.messages
            .get_or_init(|| messages.iter().filter_map(edited).collect())
    }

    /// Tokens and money this entry stands for (invariant 36). Reads no more of the line than that.
    pub(super) fn usage(&self) -> Option<Usage> {
        use EntryKind::{BranchSummary, Compaction, Usage};
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Glance {
            message: Option<MessageGlance>,
            usage: Option<pliant_sdk::message::Usage>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct MessageGlance {
            role: String,
            usage: Option<pliant_sdk::message::Usage>,
        }
        if !matches!(
            self.kind,
            EntryKind::Message | Compaction | BranchSummary | Usage
        ) {
            return None;
        }
        if let Some(body) = self.body.get() {
            return body.usage().cloned();
        }
        match (serde_json::from_str::<Glance>(&self.raw()), self.kind) {
            (Ok(glance), EntryKind::Message) => {
                let message = glance.message?;
                matches!(&*message.role, "assistant" | "toolResult").then_some(message.usage)?
            }
            (Ok(glance), _) => glance.usage,
            (Err(_), _) => self.body().usage().cloned(),
        }
    }

    /// The same entry under another parent; `None` when the line is no object.
    pub(super) fn rechained(
        &self,
        parent: Option<&EntryId>,
        first_kept: Option<&EntryId>,
    ) -> Option<Self> {
        let mut object = raw_json::RawObject::parse(&self.raw())?;
        object.set("parentId", parent, "id");
        if let Some(first_kept) = first_kept {
            object.set("firstKeptEntryId", first_kept, "summary");
        }
        let line = Line::own(object.to_line());
        Some(Self::stored(
            self.id.clone(),
            parent.cloned(),
            &self.timestamp,
            self.kind,
            line,
        ))
    }
}
