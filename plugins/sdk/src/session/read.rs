//! Reading the session's tree. What is answered is of the moment: ask again instead of keeping it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Session;
use crate::error::Error;
use crate::message::Message;

/// One entry of the tree, as it is stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionEntry {
    /// What kind of entry, e.g. `message` or `compaction`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its name.
    pub id: String,
    /// The entry before it on its branch.
    #[serde(default)]
    pub parent_id: Option<String>,
    /// When it was stored, ISO 8601.
    #[serde(default)]
    pub timestamp: String,
    /// What entries of its kind hold.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl SessionEntry {
    /// The message of a `message` entry.
    #[must_use]
    pub fn message(&self) -> Option<Message> {
        let message = self
            .fields
            .get("message")
            .filter(|_| self.kind == "message")?;
        Some(Message::from(message.clone()))
    }
}

/// Where the session is and what it is called.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionInfo {
    /// Where it works.
    pub cwd: String,
    /// The folder of its file.
    pub session_dir: Option<String>,
    /// Its id.
    pub session_id: String,
    /// Its file; absent when it is not stored.
    pub session_file: Option<String>,
    /// Its name.
    pub session_name: Option<String>,
}

/// The whole tree. It is flat, because branches may be longer than anything can be nested.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionNodes {
    /// All entries in the order of the file.
    pub nodes: Vec<SessionNode>,
    /// Numbers of those without a parent, by time.
    pub roots: Vec<usize>,
}

/// An entry and what follows it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionNode {
    /// The entry.
    pub entry: SessionEntry,
    /// Numbers of what follows it, by time.
    pub children: Vec<usize>,
    /// Its name for the user.
    #[serde(default)]
    pub label: Option<String>,
    /// When it was given that.
    #[serde(default)]
    pub label_timestamp: Option<String>,
}

/// The context of the next request, before handlers and wires make it theirs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionProjection {
    /// The messages in order.
    pub messages: Vec<Message>,
    /// The entries they come from, in the same order.
    pub sources: Vec<ProjectionSource>,
    /// What the branch says of the thinking level.
    #[serde(default)]
    pub thinking_level: Option<String>,
    /// What the branch says of the model: `provider` and `modelId`.
    #[serde(default)]
    pub model: Option<Value>,
}

/// How many messages come from an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectionSource {
    /// The entry.
    pub entry_id: String,
    /// None for an entry that was left out.
    pub messages: usize,
}

impl Session<'_> {
    /// Where the session is and what it is called.
    ///
    /// # Errors
    /// `unsupported` outside a session, `stale` when the session has ended.
    pub async fn info(&self) -> Result<SessionInfo, Error> {
        self.read(json!({"what": "info"})).await
    }

    /// The header of the session's file.
    ///
    /// # Errors
    /// As [`Session::info`].
    pub async fn header(&self) -> Result<Value, Error> {
        self.read(json!({"what": "header"})).await
    }

    /// All entries, on whatever branch, in the order of the file.
    ///
    /// # Errors
    /// As [`Session::info`].
    pub async fn entries(&self) -> Result<Vec<SessionEntry>, Error> {
        self.read(json!({"what": "entries"})).await
    }

    /// The entry of that name, if there is one.
    ///
    /// # Errors
    /// As [`Session::info`].
    pub async fn entry(&self, id: &str) -> Result<Option<SessionEntry>, Error> {
        self.read(json!({"what": "entry", "id": id})).await
    }

    /// The entries from the root to where the session stands.
    ///
    /// # Errors
    /// As [`Session::info`].
    pub async fn branch(&self) -> Result<Vec<SessionEntry>, Error> {
        self.read(json!({"what": "branch"})).await
    }

    /// The entries from the root to that entry; none when there is no such entry.
    ///
    /// # Errors
    /// As [`Session::info`].
    pub async fn branch_to(&self, id: &str) -> Result<Vec<SessionEntry>, Error> {
        self.read(json!({"what": "branch", "from": id})).await
    }

    /// The whole tree.
    ///
    /// # Errors
    /// As [`Session::info`].
    pub async fn tree(&self) -> Result<SessionNodes, Error> {
        self.read(json!({"what": "tree"})).await
    }

    /// The entry that the next one will follow; nothing before the first.
    ///
    /// # Errors
    /// As [`Session::info`].
    pub async fn leaf_id(&self) -> Result<Option<String>, Error> {
        self.read(json!({"what": "leafId"})).await
    }

    /// That entry itself.
    ///
    /// # Errors
    /// As [`Session::info`].
    pub async fn leaf_entry(&self) -> Result<Option<SessionEntry>, Error> {
        self.read(json!({"what": "leafEntry"})).await
    }

    /// The name that the user or an extension gave an entry.
    ///
    /// # Errors
    /// As [`Session::info`].
    pub async fn label(&self, id: &str) -> Result<Option<String>, Error> {
        self.read(json!({"what": "label", "id": id})).await
    }

    /// The entries of which the next request is made; a compaction comes first.
    ///
    /// # Errors
    /// As [`Session::info`].
    pub async fn context_entries(&self) -> Result<Vec<SessionEntry>, Error> {
        self.read(json!({"what": "contextEntries"})).await
    }

    /// The messages of the next request, and which entries they come from.
    ///
    /// # Errors
    /// As [`Session::info`].
    pub async fn projection(&self) -> Result<SessionProjection, Error> {
        self.read(json!({"what": "projection"})).await
    }

    async fn read<R: DeserializeOwned>(&self, question: Value) -> Result<R, Error> {
        self.host.call("session.read", &question).await
    }
}
