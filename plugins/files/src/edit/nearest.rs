//! The lines of a file that are most like a text which is not in it, with the differences made
//! visible, so that a model sees what it got wrong.

use std::collections::HashMap;
use std::fmt::Write;

use super::fuzzy::normal;

/// Below this likeness, of 0 to 1, nothing is shown.
const LEAST_LIKENESS: f64 = 0.45;
/// Differing lines that are shown.
const MAX_SHOWN: usize = 3;
/// Characters of a line that are shown and compared.
const MAX_CHARS: usize = 160;
/// Bytes of the file that are looked at.
const MAX_SEARCHED: usize = 4 * 1024 * 1024;
/// Places that are compared line by line.
const MAX_CANDIDATES: usize = 16;

/// The place most like a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Nearest {
    /// Lines that differ: number from 1, the file's, the text's.
    differing: Vec<(usize, String, String)>,
    more: usize,
}

/// Finds the lines most like a text that is not in the file.
pub(crate) fn find(file: &str, text: &str) -> Option<Nearest> {
    let wanted: Vec<&str> = text
        .strip_suffix('\n')
        .unwrap_or(text)
        .split('\n')
        .collect();
    let lines: Vec<&str> = head(file).split('\n').collect();
    // The longest line tells most about the place.
    let (anchor, line) = wanted
        .iter()
        .enumerate()
        .max_by_key(|(_, line)| line.trim().len())?;
    let anchor_pairs = Pairs::of(line);
    let mut likeness: Vec<_> = lines
        .iter()
        .enumerate()
        .map(|(index, line)| (anchor_pairs.likeness(line), index))
        .filter(|(likeness, _)| *likeness >= LEAST_LIKENESS)
        .collect();
    likeness.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    likeness.truncate(MAX_CANDIDATES);

    let wanted_pairs: Vec<_> = wanted.iter().map(|line| Pairs::of(line)).collect();
    let around = |at: usize| {
        let nearby = wanted_pairs
            .iter()
            .enumerate()
            .filter_map(|(index, pairs)| {
                let line = lines.get((at + index).checked_sub(anchor)?)?;
                Some(pairs.likeness(line))
            });
        nearby.sum::<f64>()
    };
    let mut best: Option<(f64, usize)> = None;
    for (_, at) in likeness {
        let likeness = around(at);
        if best.is_none_or(|(most, _)| likeness > most) {
            best = Some((likeness, at));
        }
    }
    Some(compare(&lines, &wanted, best?.1, anchor))
}

/// As much of the file as is looked at.
fn head(file: &str) -> &str {
    let mut end = file.len().min(MAX_SEARCHED);
    while !file.is_char_boundary(end) {
        end -= 1;
    }
    &file[..end]
}

fn compare(lines: &[&str], wanted: &[&str], at: usize, anchor: usize) -> Nearest {
    let mut differing = Vec::new();
    for (index, wanted) in wanted.iter().enumerate() {
        let Some(number) = (at + index).checked_sub(anchor) else {
            continue;
        };
        let line = lines.get(number).copied().unwrap_or_default();
        if line != *wanted {
            let (line, wanted) = visible_pair(line, wanted);
            differing.push((number + 1, line, wanted));
        }
    }
    if differing.is_empty() {
        let (line, wanted) = visible_pair(lines[at], wanted[anchor]);
        differing.push((at + 1, line, wanted));
    }
    let more = differing.len().saturating_sub(MAX_SHOWN);
    differing.truncate(MAX_SHOWN);
    Nearest { differing, more }
}

impl Nearest {
    /// Sentences and lines for the model.
    pub(crate) fn explain(&self) -> String {
        let mut text = "The nearest text differs:\n".to_owned();
        for (number, line, wanted) in &self.differing {
            let number = format!("line {number}");
            let width = number.len().max("oldText".len());
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{number:<width$}: {line}\n{:<width$}: {wanted}",
                "oldText"
            );
        }
        if self.more > 0 {
            let _ = writeln!(text, "and {} more lines.", self.more);
        }
        text += "(→ tab, · space at an edge, <U+…> other spaces and invisible characters.) Copy \
            oldText from the file as it is there; if it may have changed, read it again.";
        text
    }
}

/// Pairs of neighbouring characters of a line, without spaces and in normal form: lines that share
/// most of them look alike.
struct Pairs {
    counts: HashMap<(char, char), usize>,
    total: usize,
}

impl Pairs {
    fn of(line: &str) -> Self {
        let mut counts = HashMap::new();
        let mut total = 0;
        for pair in pairs(line) {
            *counts.entry(pair).or_insert(0) += 1;
            total += 1;
        }
        Self { counts, total }
    }

    /// From 0, nothing in common, to 1, the same but for spaces.
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    fn likeness(&self, line: &str) -> f64 {
        let (mut common, mut total) = (0, 0);
        let mut left = self.counts.clone();
        for pair in pairs(line) {
            total += 1;
            if let Some(count) = left.get_mut(&pair).filter(|count| **count > 0) {
                *count -= 1;
                common += 1;
            }
        }
        match self.total + total {
            0 => 1.0,
            sum => 2.0 * f64::from(common) / sum as f64,
        }
    }
}

fn pairs(line: &str) -> Vec<(char, char)> {
    let normal = normal(line);
    let mut last = '\n';
    let chars = normal
        .chars()
        .filter(|c| !c.is_whitespace())
        .take(MAX_CHARS);
    chars
        .map(|c| (std::mem::replace(&mut last, c), c))
        .collect()
}

/// Both lines with what is invisible made visible, cut to the part that differs if they are long.
fn visible_pair(line: &str, wanted: &str) -> (String, String) {
    let same = line
        .chars()
        .zip(wanted.chars())
        .take_while(|(a, b)| a == b)
        .count();
    let from = if same > MAX_CHARS / 2 {
        same - MAX_CHARS / 4
    } else {
        0
    };
    (visible(line, from), visible(wanted, from))
}

fn visible(line: &str, from: usize) -> String {
    let indent = line.chars().count() - line.trim_start().chars().count();
    let end = line.trim_end().chars().count();
    let mut out = String::new();
    if from > 0 {
        out.push('…');
    }
    for (index, c) in line.chars().enumerate().skip(from) {
        if index - from == MAX_CHARS {
            out.push('…');
            break;
        }
        match c {
            '\t' => out.push('→'),
            ' ' if index < indent || index >= end => out.push('·'),
            c if is_invisible(c) => {
                let _ = write!(out, "<U+{:04X}>", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

fn is_invisible(c: char) -> bool {
    let space = c.is_whitespace() && c != ' ';
    let format = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}' | '\u{feff}');
    space || format || c.is_control()
}
