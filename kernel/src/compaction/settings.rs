//! The settings `compaction.*` as they hold for one model.

use pliant_sdk::{Error, Model};
use serde_json::Value;

use crate::settings::Settings;

const RESERVE_TOKENS: u64 = 16_384;
const KEEP_RECENT_TOKENS: u64 = 20_000;

/// Whether and how far a conversation is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionSettings {
    /// Whether it is compacted without being asked.
    pub enabled: bool,
    /// Room that the context leaves in the model's window.
    pub reserve_tokens: u64,
    /// How much of the end of the conversation stays as it is.
    pub keep_recent_tokens: u64,
}

impl CompactionSettings {
    /// As written for this model, else as written for all, else the default. The defaults are made
    /// for large windows and shrink with a small one, in which they would leave nothing to summarise.
    ///
    /// # Errors
    /// When a value that counts is not a whole number.
    pub fn of(settings: &Settings, model: &Model) -> Result<Self, Error> {
        let overrides = settings.get("compaction.modelOverrides");
        let of_model = overrides.get(model.reference()).unwrap_or(&Value::Null);
        let written = |key: &str| {
            let everywhere = settings.get("compaction").get(key);
            count(key, of_model.get(key), Some(&model.reference()))
                .transpose()
                .or_else(|| count(key, everywhere, None).transpose())
                .transpose()
        };
        let window = Some(model.context_window).filter(|window| *window > 0);
        let reserve_tokens = written("reserveTokens")?.unwrap_or_else(|| {
            window.map_or(RESERVE_TOKENS, |window| RESERVE_TOKENS.min(window / 2))
        });
        let keep_recent_tokens = written("keepRecentTokens")?.unwrap_or_else(|| {
            let half = |window: u64| window.saturating_sub(reserve_tokens) / 2;
            window.map_or(KEEP_RECENT_TOKENS, |window| {
                KEEP_RECENT_TOKENS.min(half(window))
            })
        });
        Ok(Self {
            enabled: settings.is_on("compaction.enabled").unwrap_or(true),
            reserve_tokens,
            keep_recent_tokens,
        })
    }
}

fn count(key: &str, value: Option<&Value>, model: Option<&str>) -> Result<Option<u64>, Error> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    value.as_u64().map(Some).ok_or_else(|| {
        let place = match model {
            Some(model) => format!("compaction.modelOverrides[\"{model}\"].{key}"),
            None => format!("compaction.{key}"),
        };
        Error::failed(format!(
            "the setting {place} is {value}, and not a whole number of tokens. Correct it in settings.json."
        ))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn model(window: u64) -> Model {
        Model {
            id: "m.1/x".into(),
            provider: "p".into(),
            context_window: window,
            ..Model::default()
        }
    }

    fn read(settings: Value, window: u64) -> Result<CompactionSettings, Error> {
        CompactionSettings::of(&Settings::from_value(settings), &model(window))
    }

    fn tokens(settings: Value, window: u64) -> (u64, u64) {
        let settings = read(settings, window).unwrap();
        (settings.reserve_tokens, settings.keep_recent_tokens)
    }

    #[test]
    fn each_field_falls_back_from_the_model_to_all_models_to_the_default() {
        // §6.5
        let overridden = json!({"compaction": {"reserveTokens": 5, "keepRecentTokens": 6,
            "modelOverrides": {"p/m.1/x": {"reserveTokens": 7}, "p/m": {"keepRecentTokens": 8}}}});
        assert_eq!(tokens(overridden, 200_000), (7, 6));
        assert_eq!(tokens(json!({}), 200_000), (16_384, 20_000));
        assert_eq!(tokens(json!({}), 0), (16_384, 20_000));
        assert!(read(json!({}), 1).unwrap().enabled);
        let off = json!({"compaction": {"enabled": false}});
        assert!(!read(off, 1).unwrap().enabled);
    }

    #[test]
    fn defaults_shrink_with_a_small_window_and_written_values_do_not() {
        assert_eq!(tokens(json!({}), 8_000), (4_000, 2_000));
        let written = json!({"compaction": {"reserveTokens": 7_000, "keepRecentTokens": 9_000}});
        assert_eq!(tokens(written, 8_000), (7_000, 9_000));
    }

    #[test]
    fn a_bad_value_is_an_error_only_where_it_counts() {
        // §6.5
        let hidden = json!({"compaction": {"reserveTokens": -1,
            "modelOverrides": {"p/m.1/x": {"reserveTokens": 7}}}});
        assert_eq!(tokens(hidden, 100_000).0, 7);
        for bad in [json!(-1), json!(1.5), json!("many"), json!(true)] {
            let error = read(json!({"compaction": {"keepRecentTokens": bad}}), 1).unwrap_err();
            assert!(
                error.to_string().contains("compaction.keepRecentTokens"),
                "{error}"
            );
        }
    }
}
