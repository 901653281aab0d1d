//! The table that a bench prints: what, measured, budget, and whether it is met by the median.

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
        let digits = if matches!(self, Self::Mib) { 1 } else { 2 };
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
    /// Adds what was measured, one value a run. Without a value it says that there is none.
    pub fn row(
        &mut self,
        what: impl Into<String>,
        unit: Unit,
        values: impl IntoIterator<Item = f64>,
        budget: f64,
    ) {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let budget_shown = format!("≤ {budget} {}", unit.sign());
        let (Some(least), Some(most)) = (values.first(), values.last()) else {
            let nothing = "-".to_owned();
            self.rows.push([
                what.into(),
                nothing.clone(),
                nothing,
                "0".to_owned(),
                budget_shown,
                "not measured".to_owned(),
            ]);
            return;
        };
        let median = middle(&values);
        let met = if median <= budget { "ok" } else { "over" };
        self.rows.push([
            what.into(),
            unit.show(median),
            format!("{} – {}", unit.show(*least), unit.show(*most)),
            values.len().to_string(),
            budget_shown,
            met.to_owned(),
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
    let half = ordered.len() / 2;
    match ordered.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => ordered[half],
        _ => f64::midpoint(ordered[half - 1], ordered[half]),
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["what", "median", "least – most", "runs", "budget", ""].map(str::to_owned);
        let lines = || std::iter::once(&head).chain(&self.rows);
        let widths: Vec<usize> = (0..head.len())
            .map(|column| {
                let width = |line: &[String; 6]| line[column].chars().count();
                lines().map(width).max().unwrap_or(0)
            })
            .collect();
        for (number, line) in lines().enumerate() {
            let cells = line.iter().zip(&widths);
            let cells: Vec<String> = cells
                .map(|(cell, width)| format!("{cell:<width$}"))
                .collect();
            writeln!(f, "| {} |", cells.join(" | "))?;
            if number == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
                writeln!(f, "| {} |", rules.join(" | "))?;
            }
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "{note}"))
    }
}
