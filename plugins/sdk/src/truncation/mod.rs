//! What every tool says of a text that was cut (`extensions.md` §8.1): one record, one pair of limits,
//! one way to write a size.

mod tail;

use serde::{Deserialize, Serialize};

pub use tail::{Totals, tail};

/// Lines that a text may have in one answer.
pub const MAX_LINES: usize = 2000;
/// UTF-8 bytes that a text may have in one answer.
pub const MAX_BYTES: usize = 50 * 1024;

/// What was shown of a text and what not; stored as `details.truncation`. A final line feed ends the
/// last line and does not begin another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Truncation {
    /// What is shown.
    pub content: String,
    /// Something is not shown.
    pub truncated: bool,
    /// The limit that was met first; null when nothing was cut.
    pub truncated_by: Option<Limit>,
    /// Lines of the whole text.
    pub total_lines: usize,
    /// Bytes of the whole text.
    pub total_bytes: usize,
    /// Lines shown.
    pub output_lines: usize,
    /// Bytes shown.
    pub output_bytes: usize,
    /// The last line is shown in part.
    pub last_line_partial: bool,
    /// The first line alone is over the byte limit, so nothing is shown.
    pub first_line_exceeds_limit: bool,
    /// The line limit in force.
    pub max_lines: usize,
    /// The byte limit in force.
    pub max_bytes: usize,
}

/// A limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// [`MAX_LINES`], or the caller's.
    Lines,
    /// [`MAX_BYTES`], or the caller's.
    Bytes,
}

/// Writes a number of bytes as `NB`, `N.NKB` or `N.NMB`, 1024-based.
#[must_use]
pub fn size(bytes: usize) -> String {
    #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
    let kib = bytes as f64 / 1024.0;
    if bytes < 1024 {
        format!("{bytes}B")
    } else if kib < 1024.0 {
        format!("{kib:.1}KB")
    } else {
        format!("{:.1}MB", kib / 1024.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_decimal_from_a_kilobyte_on() {
        assert_eq!(
            [size(1023), size(1024), size(51_200), size(3 << 20)],
            ["1023B", "1.0KB", "50.0KB", "3.0MB"]
        );
    }
}
