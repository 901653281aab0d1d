//! `/model` and `/thinking` of the plain prompt: another model or level for the rest of the session, or
//! what is in force.

use pliant_kernel::models::ModelWish;
use pliant_kernel::session::{Keep, SelectOptions, Session};
use pliant_sdk::message::ThinkingLevel;

/// What is to be chosen; an empty word asks what is chosen.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Model(String),
    Level(String),
}

impl Choice {
    /// `None` for a line that is something else.
    pub(super) fn read(line: &str) -> Option<Self> {
        let word = |name: &str| {
            let rest = line.strip_prefix(name)?;
            let whole = rest.is_empty() || rest.starts_with(char::is_whitespace);
            whole.then(|| rest.trim().to_owned())
        };
        word("/model")
            .map(Self::Model)
            .or_else(|| word("/thinking").map(Self::Level))
    }

    /// Chooses, and says what is in force then.
    pub(super) async fn carry_out(self, session: &Session) -> Result<String, String> {
        match self {
            Self::Model(word) if !word.is_empty() => model(session, word).await?,
            Self::Level(word) if !word.is_empty() => level(session, &word).await?,
            Self::Model(_) | Self::Level(_) => {}
        }
        let model = session.model();
        let model = model.map_or_else(|| "no model".to_owned(), |model| model.reference());
        let levels = session.thinking_levels();
        let level = session.thinking_level().as_str();
        Ok(match levels.len() {
            0 | 1 => model,
            _ => format!("{model}, thinking {level} (of {})", names(&levels)),
        })
    }
}

async fn model(session: &Session, word: String) -> Result<(), String> {
    let wish = ModelWish {
        provider: None,
        model: Some(word),
    };
    let choice = session.find_model(&wish).await;
    let choice = choice.map_err(|error| error.to_string())?;
    let how = SelectOptions {
        level: choice.level,
        keep: Keep::Session,
    };
    let selected = session.set_model(&choice.model, how).await;
    selected.map_err(|error| error.to_string())
}

async fn level(session: &Session, word: &str) -> Result<(), String> {
    let Some(level) = ThinkingLevel::parse(word) else {
        let levels = names(&session.thinking_levels());
        return Err(format!(
            "\"{word}\" is not a thinking level; this model has {levels}."
        ));
    };
    let set = session.set_thinking_level(level, Keep::Session).await;
    set.map(drop).map_err(|error| error.to_string())
}

fn names(levels: &[ThinkingLevel]) -> String {
    let names: Vec<_> = levels.iter().map(|level| level.as_str()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_asked_for_by_its_whole_name() {
        let model = |word: &str| Some(Choice::Model(word.to_owned()));
        assert_eq!(Choice::read("/model"), model(""));
        assert_eq!(Choice::read("/model  a/b:high "), model("a/b:high"));
        assert_eq!(Choice::read("/models"), None);
        assert_eq!(
            Choice::read("/thinking low"),
            Some(Choice::Level("low".to_owned()))
        );
    }
}
