//! Colours as a theme writes them (`resources.md` §8, `tui.md` R13.3).

use serde_json::Value;

use super::spaces;

/// A colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Colour {
    /// What the terminal has of its own.
    #[default]
    Default,
    /// One of the terminal's 256.
    Index(u8),
    /// Red, green and blue.
    Rgb(u8, u8, u8),
}

impl Colour {
    /// As a theme writes it: a number for one of the 256, else a text.
    #[must_use]
    pub fn to_json(self) -> Value {
        match self {
            Self::Index(index) => index.into(),
            other => other.to_string().into(),
        }
    }
}

impl std::fmt::Display for Colour {
    /// As a theme would write it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => Ok(()),
            Self::Index(index) => write!(f, "{index}"),
            Self::Rgb(red, green, blue) => write!(f, "#{red:02x}{green:02x}{blue:02x}"),
        }
    }
}

/// What a text says of a colour.
pub(super) enum Written<'a> {
    /// A colour.
    Colour(Colour),
    /// The name of a variable.
    Variable(&'a str),
}

impl<'a> Written<'a> {
    /// `None` for what looks like a colour and is none.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let colour = if text.is_empty() {
            Some(Colour::Default)
        } else if let Some(digits) = text.strip_prefix('#') {
            hex(digits)
        } else if let Some(numbers) = arguments(text, "oklch(") {
            let [lightness, chroma, hue] = numbers?;
            let chroma = chroma.of(0.4)?.max(0.0);
            Some(spaces::oklch(lightness.of(1.0)?, chroma, hue.degrees()?))
        } else if let Some(numbers) = arguments(text, "okhsl(") {
            let [hue, saturation, lightness] = numbers?;
            let (saturation, lightness) = (saturation.of(1.0)?, lightness.of(1.0)?);
            Some(spaces::okhsl(hue.degrees()?, saturation, lightness))
        } else {
            return Some(Self::Variable(text));
        };
        colour.map(Self::Colour)
    }
}

fn hex(digits: &str) -> Option<Colour> {
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
    let [_, red, green, blue] = number.to_be_bytes();
    match digits.len() {
        6 => Some(Colour::Rgb(red, green, blue)),
        3 => {
            let wide = |shift: u32| u8::try_from((number >> shift) & 0xf).map(|digit| digit * 17);
            Some(Colour::Rgb(wide(8).ok()?, wide(4).ok()?, wide(0).ok()?))
        }
        _ => None,
    }
}

/// A number of a function, with its unit.
struct Number<'a> {
    value: f64,
    unit: &'a str,
}

impl Number<'_> {
    /// As it is, or as a share of `whole`.
    fn of(&self, whole: f64) -> Option<f64> {
        match self.unit {
            "" => Some(self.value),
            "%" => Some(self.value / 100.0 * whole),
            _ => None,
        }
    }

    fn degrees(&self) -> Option<f64> {
        matches!(self.unit, "" | "deg").then_some(self.value)
    }
}

/// The three numbers of a function, `Some(None)` when they are not three numbers; `None` for what is not
/// that function.
#[allow(clippy::option_option)]
fn arguments<'a>(text: &'a str, name: &str) -> Option<Option<[Number<'a>; 3]>> {
    let (start, inside) = text.split_at_checked(name.len())?;
    if !start.eq_ignore_ascii_case(name) {
        return None;
    }
    let numbers = inside.strip_suffix(')').and_then(|inside| {
        let words = inside
            .split([' ', '\t', ','])
            .filter(|word| !word.is_empty());
        let numbers: Option<Vec<Number<'a>>> = words.map(number).collect();
        numbers?.try_into().ok()
    });
    Some(numbers)
}

fn number(word: &str) -> Option<Number<'_>> {
    let is_unit = |c: char| c == '%' || c.is_ascii_alphabetic();
    let (digits, unit) = word.split_at(word.find(is_unit).unwrap_or(word.len()));
    let value: f64 = digits
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())?;
    Some(Number { value, unit })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Colour> {
        match Written::parse(text) {
            Some(Written::Colour(colour)) => Some(colour),
            _ => None,
        }
    }

    #[test]
    fn a_colour_can_be_written_in_every_form() {
        // resources §8
        for (text, colour) in [
            ("", Colour::Default),
            ("#fff", Colour::Rgb(255, 255, 255)),
            ("#1aF", Colour::Rgb(0x11, 0xaa, 0xff)),
            ("#0a0B0c", Colour::Rgb(10, 11, 12)),
            // The corners of the colour space, as CSS Color 4 states them.
            ("oklch(1 0 0)", Colour::Rgb(255, 255, 255)),
            ("oklch(0% 0 0)", Colour::Rgb(0, 0, 0)),
            ("oklch(0.62796 0.25768 29.234)", Colour::Rgb(255, 0, 0)),
            (
                "OKLCH(86.644%, 0.29483, 142.495deg)",
                Colour::Rgb(0, 255, 0),
            ),
            ("oklch(0.45201 0.31321 264.052)", Colour::Rgb(0, 0, 255)),
            ("okhsl(0 0% 100%)", Colour::Rgb(255, 255, 255)),
            ("okhsl(0 0 0)", Colour::Rgb(0, 0, 0)),
        ] {
            assert_eq!(read(text), Some(colour), "{text}");
        }
    }

    #[test]
    fn what_looks_like_a_colour_and_is_none_is_no_variable_either() {
        for text in [
            "#",
            "#12",
            "#1234",
            "#ggg",
            "#+12345",
            "#é12",
            "oklch()",
            "oklch(1 2)",
            "oklch(1 0 0 1)",
            "oklch(1 0 0",
            "oklch(a b c)",
            "oklch(1 0 5%)",
            "okhsl(nan 0 0)",
            "okhsl(1deg 1deg 1)",
        ] {
            assert!(Written::parse(text).is_none(), "{text}");
        }
        assert!(matches!(
            Written::parse("blue"),
            Some(Written::Variable("blue"))
        ));
    }

    #[test]
    fn a_colour_that_a_screen_cannot_show_becomes_one_that_it_can() {
        let out_of_gamut = read("oklch(0.7 0.4 150)");
        assert!(matches!(out_of_gamut, Some(Colour::Rgb(..))));
        // Half the lightness of OKHSL is a middle grey.
        let Some(Colour::Rgb(red, green, blue)) = read("okhsl(120 0 0.5)") else {
            panic!("no colour")
        };
        assert!(
            red == green && green == blue && (115..=125).contains(&red),
            "{red}"
        );
        assert_eq!(
            read("oklch(9999999 9999999 9999999)"),
            Some(Colour::Rgb(255, 255, 255))
        );
    }
}
