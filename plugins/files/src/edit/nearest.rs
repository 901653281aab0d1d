//! The lines of a file that are most like a text which is not in it, with the differences made
//! visible, so that a model sees what it got wrong.

use std::cmp::Ordering;
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

/// Pairs of neighbouring characters of a line, without spaces, in normal form and sorted: lines
/// that share most of them look alike.
struct Pairs(Vec<(char, char)>);

impl Pairs {
    fn of(line: &str) -> Self {
        let normal = normal(line);
        let mut last = '\n';
        let chars = normal.chars().filter(|c| !c.is_whitespace());
        let mut pairs: Vec<_> = chars
            .take(MAX_CHARS)
            .map(|c| (std::mem::replace(&mut last, c), c))
            .collect();
        pairs.sort_unstable();
        Self(pairs)
    }

    /// From 0, nothing in common, to 1, the same but for spaces.
    fn likeness(&self, line: &str) -> f64 {
        let other = Self::of(line);
        let (mut a, mut b) = (self.0.as_slice(), other.0.as_slice());
        let mut common: u32 = 0;
        while let ([first_a, rest_a @ ..], [first_b, rest_b @ ..]) = (a, b) {
            match first_a.cmp(first_b) {
                Ordering::Less => a = rest_a,
                Ordering::Greater => b = rest_b,
                Ordering::Equal => (a, b, common) = (rest_a, rest_b, common + 1),
            }
        }
        match u32::try_from(self.0.len() + other.0.len()) {
            Ok(0) | Err(_) => 1.0,
            Ok(sum) => 2.0 * f64::from(common) / f64::from(sum),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn explain(file: &str, text: &str) -> String {
        let nearest = find(file, text).map_or_else(String::new, |nearest| nearest.explain());
        let lines = nearest
            .lines()
            .filter(|line| line.starts_with("line") || line.starts_with("oldText"));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn tabs_and_spaces_are_told_apart() {
        // T08
        let file = "func f() {\n\tif a {\n\t\treturn nil\n\t}\n}\n";
        assert_eq!(
            explain(file, "    if a {\n        return nil\n    }"),
            "line 2 : →if a {\noldText: ····if a {\n\
             line 3 : →→return nil\noldText: ········return nil\n\
             line 4 : →}\noldText: ····}"
        );
    }

    #[test]
    fn only_lines_that_differ_are_shown() {
        assert_eq!(
            explain("one\ntwo words\nthree\n", "one\ntwo wards\nthree"),
            "line 2 : two words\noldText: two wards"
        );
    }

    #[test]
    fn what_is_invisible_has_its_number() {
        assert_eq!(
            explain("let name\u{200b} = 1;  \n", "let name = 1; x"),
            "line 1 : let name<U+200B> = 1;··\noldText: let name = 1; x"
        );
        assert_eq!(visible("a\u{a0}b\u{1}\r", 0), "a<U+00A0>b<U+0001><U+000D>");
    }

    #[test]
    fn the_best_of_several_places_is_chosen_by_all_lines() {
        let file = "a {\n  return value;\n}\nb {\n  return value;\n}\n";
        assert_eq!(
            explain(file, "b {\n\treturn value;\n}"),
            "line 5 : ··return value;\noldText: →return value;"
        );
    }

    #[test]
    fn nothing_is_shown_when_nothing_is_alike() {
        assert_eq!(find("alpha\nbeta\n", "completely different text"), None);
        assert_eq!(find("", "x"), None);
    }

    #[test]
    fn more_lines_than_are_shown_are_counted() {
        let file = "\taa bb\n\tcc dd\n\tee ff\n\tgg hh\n\tii jj\n";
        let text = file.replace('\t', "  ");
        assert!(
            find(file, &text)
                .unwrap()
                .explain()
                .contains("and 2 more lines.")
        );
    }

    #[test]
    fn long_lines_are_cut_to_the_part_that_differs() {
        let line = "word ".repeat(200);
        let shown = explain(&format!("{line}old{line}"), &format!("{line}new{line}"));
        assert!(shown.contains("old") && shown.contains("new"), "{shown}");
        assert!(shown.chars().count() < 2 * (MAX_CHARS + 20));
    }
}
