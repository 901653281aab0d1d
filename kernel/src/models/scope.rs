//! The models that a user wants to choose from: `--models`, and the setting `enabledModels`
//! (`interfaces.md` §1.2).

use pliant_sdk::message::ThinkingLevel;
use pliant_sdk::{Error, Model};

use super::catalog::Catalog;
use super::resolve::ModelChoice;

impl Catalog {
    /// The models that patterns mean, each once, in the order of the patterns; and the patterns that
    /// mean none. A pattern is an id or `provider/id`, one of these with `*` and `?` in it, or a part of
    /// id or name; it may end in `:level`.
    ///
    /// # Errors
    /// When a provider cannot be asked.
    pub async fn scope(
        &self,
        patterns: &[String],
    ) -> Result<(Vec<ModelChoice>, Vec<String>), Error> {
        let mut scope: Vec<ModelChoice> = Vec::new();
        let mut unmatched = Vec::new();
        if patterns.is_empty() {
            return Ok((scope, unmatched));
        }
        let mut all = Vec::new();
        for provider in self.providers() {
            all.extend(self.models(&provider).await?.0);
        }
        for pattern in patterns {
            let found = self.matching(&all, pattern);
            if found.is_empty() {
                unmatched.push(pattern.clone());
            }
            for choice in found {
                let reference = choice.model.reference();
                if !scope.iter().any(|old| old.model.reference() == reference) {
                    scope.push(choice);
                }
            }
        }
        Ok((scope, unmatched))
    }

    /// An id may hold a colon itself, so the level is split off only when the whole means nothing.
    fn matching(&self, all: &[Model], pattern: &str) -> Vec<ModelChoice> {
        let choices = |found: Vec<Model>, level| {
            let choice = |model| ModelChoice { model, level };
            found.into_iter().map(choice).collect::<Vec<_>>()
        };
        let found = self.named_by(all, pattern);
        let split = pattern
            .rsplit_once(':')
            .and_then(|(rest, level)| Some((rest, ThinkingLevel::parse(level)?)));
        match split {
            Some((rest, level)) if found.is_empty() => {
                choices(self.named_by(all, rest), Some(level))
            }
            _ => choices(found, None),
        }
    }

    /// Exact names come before parts of names. Of several models that a name without `*` means, those
    /// that cannot be paid for are left out, if others can.
    fn named_by(&self, all: &[Model], pattern: &str) -> Vec<Model> {
        let wanted = pattern.to_lowercase();
        let names = |model: &Model| [model.id.to_lowercase(), model.reference().to_lowercase()];
        let chosen = |is_meant: &dyn Fn(&Model) -> bool| -> Vec<Model> {
            all.iter()
                .filter(|model| is_meant(model))
                .cloned()
                .collect()
        };
        if wanted.contains(['*', '?']) {
            return chosen(&|model| names(model).iter().any(|name| fits(&wanted, name)));
        }
        let exact = chosen(&|model| names(model).contains(&wanted));
        let mut found = match exact.is_empty() {
            false => exact,
            true => chosen(&|model| {
                let [_, reference] = names(model);
                reference.contains(&wanted) || model.name.to_lowercase().contains(&wanted)
            }),
        };
        if found.iter().any(|model| self.usable(&model.provider)) {
            found.retain(|model| self.usable(&model.provider));
        }
        found
    }
}

/// Whether a text fits a pattern in which `*` stands for anything and `?` for one character.
fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut place) = (0, 0);
    // The last star, and where what follows it was tried: the only place to go back to.
    let mut star: Option<(usize, usize)> = None;
    while place < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || *wanted == text[place] => {
                at += 1;
                place += 1;
            }
            _ => match &mut star {
                Some((after, tried)) => {
                    *tried += 1;
                    (at, place) = (*after + 1, *tried);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything_and_a_question_mark_for_one_character() {
        // interfaces §1.2
        for (pattern, text, yes) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abcd", false),
            ("*b*", "abc", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a**", "a", true),
            ("*/x-?", "a/b/x-1", true),
            ("", "a", false),
        ] {
            assert_eq!(fits(pattern, text), yes, "{pattern} {text}");
        }
    }
}
