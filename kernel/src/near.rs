//! The word that somebody may have meant: what is told of a name that nobody knows.

/// Longer words are not compared.
const LONGEST: usize = 64;

/// The known word that differs least from what is written, unless all differ much.
#[must_use]
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if written.len() > LONGEST {
        return None;
    }
    let written: Vec<char> = written.to_lowercase().chars().collect();
    let most = written.len().div_ceil(3);
    let with_distance = known.into_iter().map(|word| {
        let lower: Vec<char> = word.to_lowercase().chars().collect();
        (distance(&written, &lower), word)
    });
    with_distance
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// A clause that goes behind what is unknown; empty where nothing is near.
#[must_use]
pub fn meant<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(written, known).map_or_else(String::new, |word| format!("; \"{word}\" is near"))
}

/// How many letters have to be put in, taken out or exchanged.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, left) in a.iter().enumerate() {
        let mut diagonal = at;
        row[0] = at + 1;
        for (column, right) in b.iter().enumerate() {
            let exchanged = diagonal + usize::from(left != right);
            diagonal = row[column + 1];
            row[column + 1] = exchanged.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_told_and_nothing_where_all_are_far() {
        let known = ["accent", "border", "muted"];
        assert_eq!(nearest("acent", known), Some("accent"));
        assert_eq!(nearest("BORDER", known), Some("border"));
        assert_eq!(nearest("background", known), None);
        assert_eq!(nearest(&"a".repeat(10_000), known), None);
        assert_eq!(meant("mutet", known), "; \"muted\" is near");
        assert_eq!(meant("", known), "");
    }
}
