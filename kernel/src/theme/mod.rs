//! Themes: what the parts of a terminal interface are coloured with (`resources.md` §8). The text of a
//! file comes in; a theme with every colour resolved comes out, or why it is none. Where files are found
//! is not decided here, nor how a terminal shows a colour.

mod token;

mod colour;
mod file;
mod spaces;

mod builtin;
mod choice;

use std::path::PathBuf;
use std::sync::Arc;

pub use builtin::{SYSTEM, builtin};
pub use choice::ThemeChoice;
pub use colour::Colour;
pub use file::ThemeError;
pub use token::Token;

/// What a theme is made for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Appearance {
    /// A dark ground.
    #[default]
    Dark,
    /// A light ground.
    Light,
}

/// Grounds of an exported page; where a theme has none, the exporter finds its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExportColours {
    /// Of the page.
    pub page: Option<Colour>,
    /// Of a message.
    pub card: Option<Colour>,
    /// Of what is told beside the messages.
    pub info: Option<Colour>,
}

/// A theme, with a colour for every token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Theme {
    name: String,
    appearance: Option<Appearance>,
    /// In the order of [`Token::ALL`].
    colours: Vec<Colour>,
    export: ExportColours,
    file: Option<PathBuf>,
}

impl Theme {
    /// Reads the text of a theme's file.
    ///
    /// # Errors
    /// [`ThemeError`], with the line where the text is no JSON.
    pub fn parse(text: &str) -> Result<Self, ThemeError> {
        file::parse(text)
    }

    /// The same theme, known to come from a file.
    #[must_use]
    pub fn of_file(self, file: PathBuf) -> Self {
        Self {
            file: Some(file),
            ..self
        }
    }

    /// What the setting `theme` calls it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is made for, if it says so.
    #[must_use]
    pub fn appearance(&self) -> Option<Appearance> {
        self.appearance
    }

    /// Its file; none of one that is built in.
    #[must_use]
    pub fn file(&self) -> Option<&PathBuf> {
        self.file.as_ref()
    }

    /// The colour of a token.
    #[must_use]
    pub fn colour(&self, token: Token) -> Colour {
        // All are filled when a theme is made.
        self.colours
            .get(token as usize)
            .copied()
            .unwrap_or_default()
    }

    /// The colour of a token by its name, such as `accent`; `None` when there is no such token.
    #[must_use]
    pub fn token(&self, name: &str) -> Option<Colour> {
        Token::parse(name).map(|token| self.colour(token))
    }

    /// The grounds of an exported page.
    #[must_use]
    pub fn export(&self) -> &ExportColours {
        &self.export
    }
}

/// The themes there are at one moment; first those of files, in the order of their precedence, then
/// those that are built in and have not been replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Themes(Vec<Arc<Theme>>);

impl Default for Themes {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl Themes {
    /// Themes of files, whose names differ. One that is called as a built-in theme takes its place.
    #[must_use]
    pub fn new(mut themes: Vec<Arc<Theme>>) -> Self {
        for one in builtin() {
            if !themes.iter().any(|theme| theme.name == one.name) {
                themes.push(Arc::clone(one));
            }
        }
        Self(themes)
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Theme>> {
        self.0.iter()
    }

    /// The theme of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Theme>> {
        self.0.iter().find(|theme| theme.name == name)
    }

    /// The theme that is chosen for a terminal; `system` where there is none of that name.
    #[must_use]
    pub fn chosen(&self, choice: &ThemeChoice, appearance: Appearance) -> Arc<Theme> {
        let theme = self.get(choice.name(appearance));
        Arc::clone(theme.unwrap_or_else(|| builtin::system()))
    }

    /// What is odd about a choice: names that no theme has, in one sentence.
    #[must_use]
    pub fn problem(&self, choice: &ThemeChoice) -> Option<String> {
        let missing = choice.names().find(|name| self.get(name).is_none())?;
        let near = crate::near::meant(missing, self.0.iter().map(|theme| theme.name()));
        Some(format!(
            "There is no theme \"{missing}\"{near}. The theme \"{SYSTEM}\" counts instead; choose another with the setting \"theme\"."
        ))
    }
}

#[cfg(test)]
mod tests;
