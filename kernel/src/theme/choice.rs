//! Which theme is wanted, as the setting `theme` and `--use-theme` say it.

use super::{Appearance, SYSTEM};

/// One theme, or one for each appearance of the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThemeChoice {
    light: String,
    dark: String,
}

impl Default for ThemeChoice {
    fn default() -> Self {
        Self::always(SYSTEM)
    }
}

impl ThemeChoice {
    /// Reads a name or a pair, `light/dark`; `None` when it is neither.
    #[must_use]
    pub fn parse(written: &str) -> Option<Self> {
        let (light, dark) = written.split_once('/').unwrap_or((written, written));
        let is_name = |name: &str| !name.trim().is_empty() && !name.contains('/');
        (is_name(light) && is_name(dark)).then(|| Self {
            light: light.trim().to_owned(),
            dark: dark.trim().to_owned(),
        })
    }

    fn always(name: &str) -> Self {
        Self {
            light: name.to_owned(),
            dark: name.to_owned(),
        }
    }

    /// The name for an appearance of the terminal.
    #[must_use]
    pub fn name(&self, appearance: Appearance) -> &str {
        match appearance {
            Appearance::Light => &self.light,
            Appearance::Dark => &self.dark,
        }
    }

    /// Both names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [self.light.as_str(), self.dark.as_str()].into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_a_name_or_a_pair_with_the_light_one_first() {
        // tui R13.1
        let pair = ThemeChoice::parse("day/night").unwrap();
        assert_eq!(pair.name(Appearance::Light), "day");
        assert_eq!(pair.name(Appearance::Dark), "night");
        let one = ThemeChoice::parse("mine").unwrap();
        assert!(one.names().all(|name| name == "mine"));
        for none in ["", "/", "a/", "/b", "a/b/c", " "] {
            assert_eq!(ThemeChoice::parse(none), None, "{none:?}");
        }
    }
}
