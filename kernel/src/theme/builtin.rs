//! The themes that are built in. Each is a palette; what a part of the interface takes from it is the
//! same for all.

use std::sync::{Arc, LazyLock};

use super::Colour::{self, Default, Index};
use super::{Appearance, ExportColours, Theme, Token};

/// The theme of the terminal's own colours.
pub const SYSTEM: &str = "system";

/// Where a palette has no colour of its own for something, it takes the terminal's.
#[derive(Clone, Copy)]
struct Palette {
    text: Colour,
    muted: Colour,
    dim: Colour,
    border: Colour,
    accent: Colour,
    blue: Colour,
    green: Colour,
    red: Colour,
    yellow: Colour,
    purple: Colour,
    orange: Colour,
    selected: Colour,
    found: Colour,
    found_text: Colour,
    user: Colour,
    custom: Colour,
    pending: Colour,
    success: Colour,
    error: Colour,
}

const fn rgb(number: u32) -> Colour {
    let [_, red, green, blue] = number.to_be_bytes();
    Colour::Rgb(red, green, blue)
}

const DARK: Palette = Palette {
    text: rgb(0x00d7_dae0),
    muted: rgb(0x009a_a1ad),
    dim: rgb(0x0085_8c99),
    border: rgb(0x004b_5261),
    accent: rgb(0x007c_c7d8),
    blue: rgb(0x0082_aaf0),
    green: rgb(0x008f_cf8a),
    red: rgb(0x00f0_7f86),
    yellow: rgb(0x00e3_c069),
    purple: rgb(0x00c4_a1ee),
    orange: rgb(0x00e8_a26b),
    selected: rgb(0x002d_3442),
    found: rgb(0x00e3_c069),
    found_text: rgb(0x0016_181d),
    user: rgb(0x0024_2a35),
    custom: rgb(0x002c_2638),
    pending: rgb(0x0022_262e),
    success: rgb(0x001e_2c24),
    error: rgb(0x0036_232a),
};

const LIGHT: Palette = Palette {
    text: rgb(0x0022_252b),
    muted: rgb(0x0056_5d69),
    dim: rgb(0x0068_6f7b),
    border: rgb(0x00b9_bfca),
    accent: rgb(0x000b_6878),
    blue: rgb(0x0024_56b8),
    green: rgb(0x0020_682b),
    red: rgb(0x00b3_243a),
    yellow: rgb(0x007d_5800),
    purple: rgb(0x0074_40b0),
    orange: rgb(0x0098_450b),
    selected: rgb(0x00d9_e4f5),
    found: rgb(0x00ff_e08a),
    found_text: rgb(0x0022_252b),
    user: rgb(0x00ed_f1f7),
    custom: rgb(0x00f1_ebf8),
    pending: rgb(0x00ef_f0f2),
    success: rgb(0x00e6_f4e8),
    error: rgb(0x00fb_e9ea),
};

/// What holds until a terminal has told its colours (`tui.md` R13.5): its palette by number, and panels
/// without a ground.
const TERMINAL: Palette = Palette {
    text: Default,
    muted: Index(8),
    dim: Index(8),
    border: Index(8),
    accent: Index(6),
    blue: Index(4),
    green: Index(2),
    red: Index(1),
    yellow: Index(3),
    purple: Index(5),
    orange: Index(3),
    selected: Index(8),
    found: Index(3),
    found_text: Index(0),
    user: Default,
    custom: Default,
    pending: Default,
    success: Default,
    error: Default,
};

/// `system`, `dark` and `light`.
#[must_use]
pub fn builtin() -> &'static [Arc<Theme>] {
    static THEMES: LazyLock<[Arc<Theme>; 3]> = LazyLock::new(|| {
        [
            theme(SYSTEM, None, TERMINAL),
            theme("dark", Some(Appearance::Dark), DARK),
            theme("light", Some(Appearance::Light), LIGHT),
        ]
        .map(Arc::new)
    });
    &*THEMES
}

pub(super) fn system() -> &'static Arc<Theme> {
    &builtin()[0]
}

fn theme(name: &str, appearance: Option<Appearance>, palette: Palette) -> Theme {
    Theme {
        name: name.to_owned(),
        appearance,
        colours: Token::ALL.iter().map(|token| palette.of(*token)).collect(),
        export: ExportColours::default(),
        file: None,
    }
}

impl Palette {
    fn of(&self, token: Token) -> Colour {
        use Token as T;
        match token {
            T::Text
            | T::UserMessageText
            | T::CustomMessageText
            | T::ToolTitle
            | T::ScrollbarThumb
            | T::SyntaxVariable => self.text,
            T::Muted
            | T::ThinkingText
            | T::ToolOutput
            | T::MdQuote
            | T::ToolDiffContext
            | T::SyntaxPunctuation
            | T::MdLinkUrl => self.muted,
            T::Dim | T::SyntaxComment | T::ThinkingMinimal => self.dim,
            T::Border
            | T::BorderMuted
            | T::MdHr
            | T::MdCodeBlockBorder
            | T::MdQuoteBorder
            | T::ScrollbarTrack
            | T::ThinkingOff => self.border,
            T::Accent
            | T::BorderAccent
            | T::MdCode
            | T::MdListBullet
            | T::SyntaxType
            | T::SyntaxOperator
            | T::ThinkingMedium => self.accent,
            T::MdLink | T::SyntaxFunction | T::ThinkingLow => self.blue,
            T::Success | T::ToolDiffAdded | T::MdCodeBlock | T::SyntaxString | T::BashMode => {
                self.green
            }
            T::Error | T::ToolDiffRemoved | T::ThinkingMax => self.red,
            T::Warning | T::MdHeading => self.yellow,
            T::CustomMessageLabel | T::SyntaxKeyword | T::ThinkingHigh => self.purple,
            T::SyntaxNumber | T::ThinkingXhigh => self.orange,
            T::SelectedBg => self.selected,
            T::SearchMatchBg => self.found,
            T::SearchMatchText => self.found_text,
            T::UserMessageBg => self.user,
            T::CustomMessageBg => self.custom,
            T::ToolPendingBg => self.pending,
            T::ToolSuccessBg => self.success,
            T::ToolErrorBg => self.error,
        }
    }
}

#[cfg(test)]
mod tests {
    use Token as T;

    use super::*;
    use crate::theme::Themes;

    fn luminance(colour: Colour) -> f64 {
        let Colour::Rgb(red, green, blue) = colour else {
            panic!("{colour} is the terminal's")
        };
        let channel = |channel: u8| {
            let part = f64::from(channel) / 255.0;
            match part <= 0.04045 {
                true => part / 12.92,
                false => ((part + 0.055) / 1.055).powf(2.4),
            }
        };
        0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue)
    }

    fn contrast(one: Colour, other: Colour) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn what_is_written_can_be_read_on_every_ground_of_its_theme() {
        // tui R13.5
        for (name, page) in [("dark", rgb(0x0016_181d)), ("light", rgb(0x00ff_ffff))] {
            let themes = Themes::default();
            let theme = themes.get(name).unwrap();
            let grounds = [
                T::UserMessageBg,
                T::CustomMessageBg,
                T::ToolPendingBg,
                T::ToolSuccessBg,
                T::ToolErrorBg,
            ];
            let grounds = grounds.map(|token| theme.colour(token));
            for token in [
                T::Text,
                T::Muted,
                T::Accent,
                T::Success,
                T::Error,
                T::Warning,
                T::MdLink,
                T::SyntaxKeyword,
                T::SyntaxNumber,
            ] {
                for ground in grounds.into_iter().chain([page]) {
                    let seen = contrast(theme.colour(token), ground);
                    assert!(seen >= 4.5, "{name} {token:?} on {ground}: {seen}");
                }
            }
            let found = contrast(
                theme.colour(T::SearchMatchText),
                theme.colour(T::SearchMatchBg),
            );
            assert!(found >= 4.5 && contrast(theme.colour(T::Dim), page) >= 4.5);
        }
    }

    #[test]
    fn the_terminals_own_theme_says_no_colour_that_the_terminal_does_not_have() {
        // tui R13.5
        for token in Token::ALL {
            assert!(
                !matches!(system().colour(*token), Colour::Rgb(..)),
                "{token:?}"
            );
        }
        assert_eq!(system().colour(T::UserMessageBg), Default);
    }
}
