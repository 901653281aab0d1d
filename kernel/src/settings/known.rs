//! Which values the keys in force can have. A value of another type costs that key only, and is told
//! once; keys that nobody here knows are left alone (`interfaces.md` §5).
//!
//! The numbers of `compaction.*` are not here: one that cannot be used is an error where it counts
//! (`kernel.md` §6.5).

use std::path::Path;

use pliant_sdk::message::ThinkingLevel;
use serde_json::Value;

/// What a value can be.
#[derive(Clone, Copy)]
enum Form {
    Flag,
    Text,
    Texts,
    /// A whole number.
    Count,
    /// A whole number of milliseconds, or `"disabled"`.
    Limit,
    Level,
    /// An object of levels.
    Levels,
    /// An object of whole numbers.
    Counts,
    Object,
    /// One of these.
    Word(&'static [&'static str]),
    /// A list of texts, or an object with keys of its own.
    TextsOrObject,
}

/// The keys in force.
const KNOWN: &[(&str, Form)] = &[
    ("branchSummary.reserveTokens", Form::Count),
    ("compaction", Form::Object),
    ("compaction.enabled", Form::Flag),
    ("compaction.modelOverrides", Form::Object),
    ("defaultModel", Form::Text),
    (
        "defaultProjectTrust",
        Form::Word(&["ask", "always", "never"]),
    ),
    ("defaultProvider", Form::Text),
    ("defaultThinkingLevel", Form::Level),
    ("defaultTools", Form::Texts),
    ("enableSkillCommands", Form::Flag),
    ("enabledModels", Form::Texts),
    ("extensions", Form::TextsOrObject),
    ("extensions.handlerTimeoutMs", Form::Count),
    ("extensions.maxContinuations", Form::Count),
    ("followUpMode", Form::Word(&["one-at-a-time", "all"])),
    ("httpIdleTimeoutMs", Form::Limit),
    ("httpProxy", Form::Text),
    ("images", Form::Object),
    ("images.blockImages", Form::Flag),
    ("modelThinkingLevels", Form::Levels),
    ("piCompat", Form::Object),
    ("piCompat.resources", Form::Flag),
    ("piCompat.sessions", Form::Word(&["off", "read"])),
    ("prompts", Form::Texts),
    ("retry", Form::Object),
    ("retry.baseDelayMs", Form::Count),
    ("retry.enabled", Form::Flag),
    ("retry.maxAgentDelayMs", Form::Count),
    ("retry.maxRetries", Form::Count),
    ("retry.provider", Form::Object),
    ("retry.provider.maxRetries", Form::Count),
    ("retry.provider.maxRetryDelayMs", Form::Count),
    ("retry.provider.timeoutMs", Form::Count),
    ("session.sync", Form::Text),
    ("sessionDir", Form::Text),
    ("shellCommandPrefix", Form::Text),
    ("shellPath", Form::Text),
    ("skills", Form::Texts),
    ("steeringMode", Form::Word(&["one-at-a-time", "all"])),
    ("thinkingBudgets", Form::Counts),
];

impl Form {
    fn fits(self, value: &Value) -> bool {
        let level = |value: &Value| {
            value
                .as_str()
                .is_some_and(|word| ThinkingLevel::parse(word).is_some())
        };
        let texts = |value: &Value| {
            let list = value.as_array();
            list.is_some_and(|list| list.iter().all(Value::is_string))
        };
        let each = |fits: &dyn Fn(&Value) -> bool| {
            let object = value.as_object();
            object.is_some_and(|object| object.values().all(fits))
        };
        match self {
            Self::Flag => value.is_boolean(),
            Self::Text => value.is_string(),
            Self::Texts => texts(value),
            Self::Count => value.is_u64(),
            Self::Limit => value.is_u64() || value == "disabled",
            Self::Level => level(value),
            Self::Levels => each(&level),
            Self::Counts => each(&Value::is_u64),
            Self::Object => value.is_object(),
            Self::Word(words) => words.iter().any(|word| value == word),
            Self::TextsOrObject => texts(value) || value.is_object(),
        }
    }

    fn wanted(self) -> String {
        let words: &[&str] = match self {
            Self::Flag => return "true or false".to_owned(),
            Self::Text => return "a text".to_owned(),
            Self::Texts | Self::TextsOrObject => return "a list of texts".to_owned(),
            Self::Count => return "a whole number".to_owned(),
            Self::Limit => return "a whole number of milliseconds or \"disabled\"".to_owned(),
            Self::Levels => return "an object of thinking levels".to_owned(),
            Self::Counts => return "an object of whole numbers".to_owned(),
            Self::Object => return "an object".to_owned(),
            Self::Level => &["off", "minimal", "low", "medium", "high", "xhigh", "max"],
            Self::Word(words) => words,
        };
        format!("one of {}", words.join(", "))
    }
}

/// Takes out what does not fit, and answers a sentence for each. Values are not quoted: there may be
/// a password among them.
pub(super) fn take_misfits(written: &mut Value, path: &Path) -> Vec<String> {
    let mut sentences = Vec::new();
    for (key, form) in KNOWN {
        let Some(value) = slot(written, key) else {
            continue;
        };
        if value.is_null() || form.fits(value) {
            continue;
        }
        sentences.push(format!(
            "The setting {key} in {} is not used, because it is {}; it can be {}. The other settings hold.",
            path.display(),
            kind(value),
            form.wanted()
        ));
        *value = Value::Null;
    }
    sentences
}

fn slot<'a>(written: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    let mut parts = key.split('.');
    parts.try_fold(written, |value, part| value.get_mut(part))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(number) if number.is_u64() => "a number",
        Value::Number(_) => "a number that is negative or no whole one",
        Value::String(_) => "another text",
        Value::Array(_) => "another list",
        Value::Object(_) => "another object",
    }
}
