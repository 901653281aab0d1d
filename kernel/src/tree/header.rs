//! The first record of a session file (`kernel.md` §2.2). It is no part of the tree.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Number, Value};

use super::SessionId;
use super::json::{fields, take_text};
use super::time::iso_from_ms;

/// The version that is written.
pub(super) const VERSION: f64 = 3.0;

/// The first record of a file (2.2).
#[derive(Debug, Clone)]
pub struct Header {
    /// Name of the session.
    pub id: SessionId,
    /// When the session began, ISO 8601.
    pub timestamp: String,
    /// Where the session works; never changes (S3).
    pub cwd: PathBuf,
    /// The file this session was forked from.
    pub parent_session: Option<PathBuf>,
    /// Fields that this version does not know.
    extra: Map<String, Value>,
    version: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HeaderFields<'a> {
    r#type: &'a str,
    version: Number,
    id: &'a SessionId,
    timestamp: &'a str,
    cwd: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_session: Option<String>,
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
}

impl Header {
    pub(super) fn new(id: SessionId, now_ms: i64, cwd: &Path, parent: Option<&Path>) -> Self {
        Self {
            id,
            timestamp: iso_from_ms(now_ms),
            cwd: cwd.to_owned(),
            parent_session: parent.map(Path::to_owned),
            extra: Map::new(),
            version: VERSION,
        }
    }

    /// Of a session that is made out of this one. A later version stays what it is, with the fields
    /// it brought: the entries are copied as they are (M7, S29).
    pub(super) fn successor(
        &self,
        id: SessionId,
        now_ms: i64,
        cwd: &Path,
        parent: Option<&Path>,
    ) -> Self {
        Self {
            extra: self.extra.clone(),
            version: self.version.max(VERSION),
            ..Self::new(id, now_ms, cwd, parent)
        }
    }

    pub(super) fn read(text: &str, version: f64) -> Self {
        let mut f = fields(text).unwrap_or_default();
        let parent = take_text(&mut f, "parentSession");
        let mut header = Self {
            id: SessionId::stored(&take_text(&mut f, "id")),
            timestamp: take_text(&mut f, "timestamp"),
            cwd: take_text(&mut f, "cwd").into(),
            parent_session: (!parent.is_empty()).then(|| parent.into()),
            extra: f,
            version,
        };
        let known = ["type", "version", "id", "timestamp", "cwd", "parentSession"];
        header.extra.retain(|key, _| !known.contains(&&**key));
        header
    }

    /// Fields that this version does not know, as they were read.
    #[must_use]
    pub fn extra(&self) -> &Map<String, Value> {
        &self.extra
    }

    /// The line that starts a new file.
    pub fn line(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&HeaderFields {
            r#type: "session",
            version: whole_or_not(self.version.max(VERSION)),
            id: &self.id,
            timestamp: &self.timestamp,
            cwd: self.cwd.to_string_lossy().into_owned(),
            parent_session: self
                .parent_session
                .as_ref()
                .map(|p| p.to_string_lossy().into_owned()),
            extra: &self.extra,
        })
    }

    /// The same header of a file that is of this version, whatever it says.
    pub(super) fn without_version(self) -> Self {
        Self {
            version: VERSION,
            ..self
        }
    }

    pub(super) fn version(&self) -> f64 {
        self.version
    }

    pub(super) fn is_older_version(&self) -> bool {
        self.version < VERSION
    }
}

/// A version is written as JavaScript writes it: `4`, not `4.0`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "guarded by the check of its fraction"
)]
fn whole_or_not(version: f64) -> Number {
    let whole = (version.fract() == 0.0 && version.abs() < 1e15).then(|| (version as i64).into());
    whole
        .or_else(|| Number::from_f64(version))
        .unwrap_or_else(|| 3.into())
}
