//! What keys can be bound to.

use super::Platform;
use super::table::{ACTIONS, RESERVED, Row};

/// Where an action is for. A key can do something else in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Context {
    /// A list to choose from, or a dialog.
    Select,
    /// The list of sessions.
    Sessions,
    /// The list of models.
    Models,
    /// The list of thinking levels.
    Thinking,
    /// The tree of the conversation.
    Tree,
    /// The search in the transcript.
    Search,
    /// The transcript on a screen of its own.
    Transcript,
    /// Going through earlier prompts with keys of its own, which comes before the application.
    History,
    /// The program, wherever one is.
    App,
    /// The editor.
    Editor,
}

/// Something that a key can do.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Action(u8);

impl Action {
    /// All actions, in the order of `tui.md` §10.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).take(ACTIONS.len()).map(Self)
    }

    /// The action of an id such as `app.model.select`.
    #[must_use]
    pub fn parse(id: &str) -> Option<Self> {
        Self::all().find(|action| action.id() == id)
    }

    /// As key bindings write it.
    #[must_use]
    pub fn id(self) -> &'static str {
        self.row().id
    }

    /// Where it is for.
    #[must_use]
    pub fn context(self) -> Context {
        self.row().context
    }

    /// Whether extensions may not have its keys (`extensions.md` §4.5).
    #[must_use]
    pub fn is_reserved(self) -> bool {
        RESERVED.contains(&self.id())
    }

    /// Its keys where the user says nothing.
    #[must_use]
    pub fn defaults(self, platform: Platform) -> &'static [&'static str] {
        let row = self.row();
        let keys = match platform {
            Platform::Unix => None,
            Platform::Wsl => row.wsl,
            Platform::Windows => row.windows,
        };
        keys.unwrap_or(row.keys)
    }

    pub(super) fn place(self) -> usize {
        usize::from(self.0)
    }

    fn row(self) -> &'static Row {
        // An action is made only of places in the table.
        &ACTIONS[self.place()]
    }
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id())
    }
}

impl std::fmt::Debug for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id())
    }
}
