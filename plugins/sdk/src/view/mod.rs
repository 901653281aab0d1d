//! What plugins show: a tree of plain data, which the front end lays out with its theme (`extensions.md`
//! §7.4). No code crosses the border and nothing in it can fail to draw: colours are names of theme
//! tokens, and a name that a theme does not know is the default colour.
//!
//! In JSON a node is `{"type": "box", …}`; a bare text stands for a `text` node and a list for a `column`:
//!
//! ```
//! use pliant_sdk::view::View;
//! use serde_json::json;
//!
//! let view: View = serde_json::from_value(json!({
//!     "type": "box", "title": "Tests", "children": [
//!         {"type": "text", "text": "42 passed", "color": "success"},
//!         "0 failed",
//!     ],
//! })).unwrap();
//! assert_eq!(view.to_plain(), "Tests\n  42 passed\n  0 failed");
//! ```

mod plain;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::error::Error;

/// How deeply nodes may be nested.
pub const MAX_DEPTH: usize = 32;

/// How many nodes a tree may have.
pub const MAX_NODES: usize = 10_000;

/// How many bytes of text a tree may hold, pictures not counted.
pub const MAX_TEXT: usize = 1024 * 1024;

/// A node of the tree.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(
    tag = "type",
    rename_all = "lowercase",
    rename_all_fields = "camelCase"
)]
pub enum View {
    /// Text in one style. Lines are kept; what is too wide is wrapped.
    Text {
        /// The text.
        text: String,
        /// How it looks.
        #[serde(flatten)]
        style: Style,
    },
    /// Markdown.
    Markdown {
        /// The source.
        text: String,
    },
    /// Nodes one under the other, in a frame or on a ground of their own.
    Box {
        /// What stands above them.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Whether there is a line around it.
        border: bool,
        /// Free columns on either side.
        padding: u16,
        /// Colours of the frame and of the ground.
        #[serde(flatten)]
        style: Style,
        /// What is inside.
        children: Vec<View>,
    },
    /// Nodes side by side.
    Row {
        /// Free columns between them.
        gap: u16,
        /// The nodes.
        children: Vec<View>,
    },
    /// Nodes one under the other.
    Column {
        /// Free lines between them.
        gap: u16,
        /// The nodes.
        children: Vec<View>,
    },
    /// Free lines; in a row, what keeps its neighbours apart.
    Spacer {
        /// How many lines.
        lines: u16,
    },
    /// A picture, or what is said of it where none can be shown.
    Image {
        /// Its bytes in base64.
        data: String,
        /// Such as `image/png`.
        mime_type: String,
        /// What is said of it.
        alt: String,
    },
    /// The difference between two texts, with line numbers.
    Diff {
        /// Whose it is; names the language.
        #[serde(skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// The text before.
        before: String,
        /// The text after.
        after: String,
    },
}

/// How text looks. Colours are names of theme tokens (`resources.md` §8), such as `accent`, `muted`,
/// `success`, `error`; absent is the default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Style {
    /// Token of the colour of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// Token of the colour of the ground.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<String>,
    /// Bold.
    #[serde(skip_serializing_if = "is_off")]
    pub bold: bool,
    /// Italic.
    #[serde(skip_serializing_if = "is_off")]
    pub italic: bool,
    /// Underlined.
    #[serde(skip_serializing_if = "is_off")]
    pub underline: bool,
    /// Struck through.
    #[serde(skip_serializing_if = "is_off")]
    pub strikethrough: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_off(on: &bool) -> bool {
    !on
}

impl View {
    /// Text in the default style.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            style: Style::default(),
        }
    }

    /// Text in a colour of the theme.
    pub fn colored(text: impl Into<String>, token: impl Into<String>) -> Self {
        let style = Style {
            color: Some(token.into()),
            ..Style::default()
        };
        Self::Text {
            text: text.into(),
            style,
        }
    }

    /// Markdown.
    pub fn markdown(text: impl Into<String>) -> Self {
        Self::Markdown { text: text.into() }
    }

    /// Nodes one under the other.
    pub fn column(children: impl IntoIterator<Item = Self>) -> Self {
        Self::Column {
            gap: 0,
            children: children.into_iter().collect(),
        }
    }

    /// Nodes side by side, one column apart.
    pub fn row(children: impl IntoIterator<Item = Self>) -> Self {
        Self::Row {
            gap: 1,
            children: children.into_iter().collect(),
        }
    }

    /// Nodes in a frame with a title.
    pub fn framed(title: impl Into<String>, children: impl IntoIterator<Item = Self>) -> Self {
        Self::Box {
            title: Some(title.into()),
            border: true,
            padding: 1,
            style: Style::default(),
            children: children.into_iter().collect(),
        }
    }

    /// The nodes inside.
    #[must_use]
    pub fn children(&self) -> &[Self] {
        match self {
            Self::Box { children, .. }
            | Self::Row { children, .. }
            | Self::Column { children, .. } => children,
            _ => &[],
        }
    }

    /// Whether a front end can be asked to lay it out.
    ///
    /// # Errors
    /// `invalid`, with the bound that it does not keep.
    pub fn check(&self) -> Result<(), Error> {
        let (mut nodes, mut text) = (0_usize, 0_usize);
        let mut waiting = vec![(self, 1)];
        while let Some((view, depth)) = waiting.pop() {
            nodes += 1;
            text += view.text_len();
            let bound = match () {
                () if depth > MAX_DEPTH => format!("is nested more than {MAX_DEPTH} deep"),
                () if nodes > MAX_NODES => format!("has more than {MAX_NODES} nodes"),
                () if text > MAX_TEXT => format!("holds more than {MAX_TEXT} bytes of text"),
                () => {
                    waiting.extend(view.children().iter().map(|child| (child, depth + 1)));
                    continue;
                }
            };
            return Err(Error::invalid(format!(
                "The view {bound}; show less, and leave the rest to what the user expands."
            )));
        }
        Ok(())
    }

    /// What it says, where nothing can be laid out: lines of text, indented as the boxes are nested.
    #[must_use]
    pub fn to_plain(&self) -> String {
        plain::of(self)
    }

    fn text_len(&self) -> usize {
        match self {
            Self::Text { text, .. } | Self::Markdown { text } => text.len(),
            Self::Box { title, .. } => title.as_ref().map_or(0, String::len),
            Self::Image { alt, .. } => alt.len(),
            Self::Diff { before, after, .. } => before.len() + after.len(),
            Self::Row { .. } | Self::Column { .. } | Self::Spacer { .. } => 0,
        }
    }
}

impl From<&str> for View {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for View {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

/// A node as it is written: every field may be there, and what its type lacks is refused.
#[derive(Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    r#type: String,
    text: Option<String>,
    title: Option<String>,
    border: bool,
    padding: u16,
    gap: Option<u16>,
    lines: u16,
    data: Option<String>,
    mime_type: Option<String>,
    alt: String,
    path: Option<String>,
    before: String,
    after: String,
    children: Vec<View>,
    color: Option<String>,
    background: Option<String>,
    bold: bool,
    italic: bool,
    underline: bool,
    strikethrough: bool,
}

impl Default for Written {
    fn default() -> Self {
        Self {
            r#type: String::new(),
            text: None,
            title: None,
            border: true,
            padding: 1,
            gap: None,
            lines: 1,
            data: None,
            mime_type: None,
            alt: String::new(),
            path: None,
            before: String::new(),
            after: String::new(),
            children: Vec::new(),
            color: None,
            background: None,
            bold: false,
            italic: false,
            underline: false,
            strikethrough: false,
        }
    }
}

const TYPES: &str = "text, markdown, box, row, column, spacer, image, diff";

impl<'de> Deserialize<'de> for View {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;

        let written = match Value::deserialize(deserializer)? {
            Value::String(text) => return Ok(Self::text(text)),
            Value::Array(children) => {
                let children = serde_json::from_value(Value::Array(children));
                return Ok(Self::Column {
                    gap: 0,
                    children: children.map_err(D::Error::custom)?,
                });
            }
            Value::Object(node) => {
                let written = serde_json::from_value::<Written>(Value::Object(node));
                written.map_err(|error| D::Error::custom(format!("a view: {error}")))?
            }
            other => {
                return Err(D::Error::custom(format!(
                    "a view is a text, a list, or a map with a `type` of {TYPES}; this is {other}"
                )));
            }
        };
        let lacks = |field: &str| {
            let kind = &written.r#type;
            D::Error::custom(format!("a view of type \"{kind}\" needs `{field}`"))
        };
        let text = || written.text.clone().ok_or_else(|| lacks("text"));
        let style = || Style {
            color: written.color.clone(),
            background: written.background.clone(),
            bold: written.bold,
            italic: written.italic,
            underline: written.underline,
            strikethrough: written.strikethrough,
        };
        Ok(match written.r#type.as_str() {
            "text" => Self::Text {
                text: text()?,
                style: style(),
            },
            "markdown" => Self::Markdown { text: text()? },
            "box" => Self::Box {
                style: style(),
                title: written.title,
                border: written.border,
                padding: written.padding,
                children: written.children,
            },
            "row" => Self::Row {
                gap: written.gap.unwrap_or(1),
                children: written.children,
            },
            "column" => Self::Column {
                gap: written.gap.unwrap_or(0),
                children: written.children,
            },
            "spacer" => Self::Spacer {
                lines: written.lines,
            },
            "image" => Self::Image {
                data: written.data.clone().ok_or_else(|| lacks("data"))?,
                mime_type: written.mime_type.clone().ok_or_else(|| lacks("mimeType"))?,
                alt: written.alt,
            },
            "diff" => Self::Diff {
                path: written.path,
                before: written.before,
                after: written.after,
            },
            "" => return Err(D::Error::custom(format!("a view needs a `type`: {TYPES}"))),
            other => {
                return Err(D::Error::custom(format!(
                    "there is no view of type \"{other}\"; there are {TYPES}"
                )));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(json: Value) -> Result<View, String> {
        serde_json::from_value(json).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_written_in_short_is_the_same_tree() {
        // extensions §7.4
        let long = json!({"type": "column", "children": [
            {"type": "text", "text": "a"},
            {"type": "row", "children": [{"type": "text", "text": "b"}]},
        ]});
        let short = json!(["a", {"type": "row", "children": ["b"]}]);
        assert_eq!(read(long).unwrap(), read(short).unwrap());
    }

    #[test]
    fn every_node_is_read_back_as_it_was_written() {
        let style = Style {
            color: Some("accent".to_owned()),
            bold: true,
            ..Style::default()
        };
        let view = View::column([
            View::Text {
                text: "t".to_owned(),
                style: style.clone(),
            },
            View::markdown("**m**"),
            View::Box {
                title: Some("b".to_owned()),
                border: false,
                padding: 3,
                style,
                children: vec![View::Spacer { lines: 2 }],
            },
            View::Row {
                gap: 0,
                children: vec![],
            },
            View::Image {
                data: "AA==".to_owned(),
                mime_type: "image/png".to_owned(),
                alt: "a".to_owned(),
            },
            View::Diff {
                path: Some("x.rs".to_owned()),
                before: "1\n".to_owned(),
                after: "2\n".to_owned(),
            },
        ]);
        let json = serde_json::to_value(&view).unwrap();
        assert_eq!(read(json).unwrap(), view);
    }

    #[test]
    fn what_is_no_view_is_refused_with_what_would_be_one() {
        let refused = |json: Value, part: &str| {
            let error = read(json).unwrap_err();
            assert!(error.contains(part), "{error}");
        };
        refused(json!(3), "a text, a list, or a map");
        refused(json!({}), "needs a `type`");
        refused(json!({"type": "table"}), "no view of type \"table\"");
        refused(json!({"type": "text"}), "needs `text`");
        refused(
            json!({"type": "text", "text": "a", "colour": "x"}),
            "unknown field `colour`",
        );
        refused(json!({"type": "image", "data": ""}), "needs `mimeType`");
        refused(json!(["a", {"type": "no"}]), "no view of type \"no\"");
    }

    #[test]
    fn a_tree_without_bounds_is_refused() {
        let nest = |depth: usize| (1..depth).fold(View::text("x"), |view, _| View::column([view]));
        assert!(nest(MAX_DEPTH).check().is_ok());
        assert!(nest(MAX_DEPTH + 1).check().is_err());
        let wide = |count: usize| View::column((1..count).map(|_| View::text("")));
        assert!(wide(MAX_NODES).check().is_ok());
        assert!(wide(MAX_NODES + 1).check().is_err());
        assert!(View::text("x".repeat(MAX_TEXT)).check().is_ok());
        let error = View::text("x".repeat(MAX_TEXT + 1)).check().unwrap_err();
        assert!(error.message.contains("show less"), "{error}");
    }
}
