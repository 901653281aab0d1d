//! The table that the bench prints: what, measured, budget, and whether it is met by the median.

use std::fmt;

/// The rows in the order they were measured.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<[String; 6]>,
    notes: Vec<String>,
}

/// A quantity's unit, which says how a number is shown.
#[derive(Debug, Clone, Copy)]
pub enum Unit {
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Mebibytes.
    Mib,
    /// How many times.
    Times,
}

impl Unit {
    fn show(self, value: f64) -> String {
        let digits = if matches!(self, Self::Times) { 2 } else { 1 };
        format!("{value:.digits$} {}", self.sign())
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Us => "µs",
            Self::Ms => "ms",
            Self::Mib => "MiB",
            Self::Times => "×",
        }
    }
}

impl Table {
    /// Adds what was measured.
    pub fn row(
        &mut self,
        what: impl Into<String>,
        unit: Unit,
        values: impl IntoIterator<Item = f64>,
        budget: f64,
    ) {
        let values: Vec<f64> = values.into_iter().collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let median = middle(&values);
        let verdict = if median <= budget { "ok" } else { "over" };
        self.rows.push([
            what.into(),
            unit.show(median),
            format!("{} – {}", unit.show(least), unit.show(most)),
            values.len().to_string(),
            format!("≤ {budget} {}", unit.sign()),
            verdict.to_owned(),
        ]);
    }

    /// Adds a line below the table.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }
}

/// The median.
pub fn middle(values: &[f64]) -> f64 {
    let mut ordered = values.to_vec();
    ordered.sort_by(f64::total_cmp);
    ordered.get(ordered.len() / 2).copied().unwrap_or(f64::NAN)
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["what", "median", "least – most", "runs", "budget", ""].map(str::to_owned);
        let lines = || std::iter::once(&head).chain(&self.rows);
        let widest = |column: usize| lines().map(|line| line[column].chars().count()).max();
        let widths: Vec<usize> = (0..head.len()).filter_map(widest).collect();
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        for (number, line) in lines().enumerate() {
            for (cell, width) in line.iter().zip(&widths) {
                write!(f, "| {cell:<width$} ")?;
            }
            writeln!(f, "|")?;
            if number == 0 {
                writeln!(f, "| {} |", rule.join(" | "))?;
            }
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "{note}"))
    }
}
