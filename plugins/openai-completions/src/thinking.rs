//! Thinking: a level becomes body fields, in the format of the service (`providers.md` §4, §5).

use pliant_sdk::Model;
use pliant_sdk::message::ThinkingLevel;
use pliant_sdk::wire::thinking::{self, ANSWER_TOKENS, off_is_impossible};
use serde_json::{Map, Value, json};

use crate::quirks::{Quirks, ThinkingFormat};

/// What is asked of one request.
pub(crate) struct Wish<'a> {
    pub(crate) model: &'a Model,
    pub(crate) quirks: &'a Quirks,
    /// `None` = off.
    pub(crate) level: Option<ThinkingLevel>,
    pub(crate) budgets: Option<&'a Map<String, Value>>,
    /// The output limit that the budget is part of.
    pub(crate) limit: u64,
}

type Fields = Vec<(String, Value)>;

impl Wish<'_> {
    /// The body fields, in order.
    pub(crate) fn fields(&self) -> Fields {
        if !self.model.reasoning {
            return Fields::new();
        }
        let mut fields = self.format_fields();
        if let (Some(name), Some(budget)) = (&self.quirks.thinking_budget_field, self.budget()) {
            fields.push((name.clone(), json!(budget)));
        }
        fields
    }

    fn format_fields(&self) -> Fields {
        let on = self.level.is_some();
        let kwargs = |value| self.with_effort("chat_template_kwargs", Some(value), false);
        match self.quirks.thinking_format {
            ThinkingFormat::OpenAi => self.with_effort("", None, true),
            ThinkingFormat::OpenRouter => {
                let effort = self
                    .effort_or_none()
                    .map(|effort| json!({"effort": effort}));
                self.with_effort("reasoning", effort, false)
            }
            ThinkingFormat::DeepSeek => {
                let switch = json!({"type": if on { "enabled" } else { "disabled" }});
                let said = on || !off_is_impossible(self.model);
                self.with_effort("thinking", said.then_some(switch), on)
            }
            ThinkingFormat::Zai => {
                let switch = match on {
                    true => json!({"type": "enabled", "clear_thinking": false}),
                    false => json!({"type": "disabled"}),
                };
                self.with_effort("thinking", Some(switch), on)
            }
            ThinkingFormat::Qwen => self.with_effort("enable_thinking", Some(json!(on)), on),
            ThinkingFormat::QwenChatTemplate => {
                kwargs(json!({"enable_thinking": on, "preserve_thinking": true}))
            }
            ThinkingFormat::ChatTemplate => {
                let template = self.template(&self.quirks.chat_template_kwargs);
                self.with_effort("chat_template_kwargs", template, false)
            }
            ThinkingFormat::Baseten => {
                let template = self.template(&self.quirks.chat_template_args);
                self.with_effort("chat_template_args", template, true)
            }
            ThinkingFormat::Together => {
                self.with_effort("reasoning", Some(json!({"enabled": on})), on)
            }
            ThinkingFormat::StringThinking => {
                self.with_effort("thinking", self.effort_or_none(), false)
            }
            ThinkingFormat::AntLing => {
                let mapped = self.level.and_then(|level| self.model.mapped_level(level));
                self.with_effort("reasoning", mapped.map(|e| json!({"effort": e})), false)
            }
        }
    }

    /// A field of the format, if it has a value, then `reasoning_effort` if it is wanted and the
    /// service knows it.
    fn with_effort(&self, name: &str, value: Option<Value>, effort: bool) -> Fields {
        let effort = self.effort().filter(|value| {
            // Z.ai documents words only; a catalogue may map a level to a number.
            effort
                && self.quirks.reasoning_effort
                && (value.is_string() || self.quirks.thinking_format != ThinkingFormat::Zai)
        });
        let first = value.map(|value| (name.to_owned(), value));
        let second = effort.map(|effort| ("reasoning_effort".to_owned(), effort));
        first.into_iter().chain(second).collect()
    }

    /// The service's word for the level; for off only if the model maps it to one.
    fn effort(&self) -> Option<Value> {
        match self.level {
            Some(level) => {
                let mapped = self.mapped(level).filter(|value| !value.is_null());
                Some(mapped.cloned().unwrap_or_else(|| json!(level.as_str())))
            }
            None => self
                .mapped(ThinkingLevel::Off)
                .filter(|value| value.is_string())
                .cloned(),
        }
    }

    /// As [`Wish::effort`], but `none` for off unless the model cannot be switched off.
    fn effort_or_none(&self) -> Option<Value> {
        let off = (!off_is_impossible(self.model)).then(|| json!("none"));
        self.effort().or(off)
    }

    fn mapped(&self, level: ThinkingLevel) -> Option<&Value> {
        self.model.thinking_level_map.as_ref()?.get(level.as_str())
    }

    /// Tokens to think with; `None` when off or when nothing would be left.
    fn budget(&self) -> Option<u64> {
        let wished = thinking::budget(self.level?, self.budgets);
        let budget = wished.min(self.limit.saturating_sub(ANSWER_TOKENS));
        (budget > 0).then_some(budget)
    }

    /// Fills a template; `None` when nothing is left of it.
    fn template(&self, template: &Map<String, Value>) -> Option<Value> {
        let filled: Map<String, Value> = template
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), self.template_value(value)?)))
            .collect();
        (!filled.is_empty()).then_some(Value::Object(filled))
    }

    fn template_value(&self, value: &Value) -> Option<Value> {
        let Some(variable) = value.get("$var") else {
            return Some(value.clone());
        };
        if self.level.is_none() && value.get("omitWhenOff") == Some(&Value::Bool(true)) {
            return None;
        }
        match variable.as_str()? {
            "thinking.enabled" => Some(json!(self.level.is_some())),
            "thinking.effort" => self.effort(),
            "thinking.budget" => self.budget().map(Value::from),
            _ => None,
        }
    }
}
