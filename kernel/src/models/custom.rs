//! `models.json`: the user's own providers and models, and changes to known ones (`providers.md` §9).

use std::path::Path;

use indexmap::IndexMap;
use pliant_sdk::Model;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::textfile;

/// The file as read. A bad file gives no providers and one sentence.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CustomModels {
    /// Providers in the order of the file.
    pub providers: IndexMap<String, CustomProvider>,
    /// What is wrong with the file, in a sentence.
    pub error: Option<String>,
}

/// One provider of the file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CustomProvider {
    /// Display name.
    pub name: Option<String>,
    /// Replaces every model's address.
    pub base_url: Option<String>,
    /// Literal, `$NAME`, or `!command`.
    pub api_key: Option<String>,
    /// Wire of its models.
    pub api: Option<String>,
    /// Request headers.
    pub headers: Option<Map<String, Value>>,
    /// Sends the key as a bearer token whatever the wire does.
    pub auth_header: Option<bool>,
    /// Switches for all its models.
    pub compat: Option<Map<String, Value>>,
    /// Definitions.
    pub models: Vec<Map<String, Value>>,
    /// Model id → partial definition.
    pub model_overrides: Option<Map<String, Value>>,
}

impl CustomModels {
    /// Reads the file, or where there is none, that in pi's directory (`interfaces.md` §3.1); nothing is
    /// written there.
    #[must_use]
    pub fn load(agent_dir: &Path, pi_dir: Option<&Path>) -> Self {
        for folder in std::iter::once(agent_dir).chain(pi_dir) {
            let path = folder.join("models.json");
            match textfile::read(&path) {
                Ok(text) => return Self::parse(&text, &path.display().to_string()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Self::broken(&path.display().to_string(), &error.to_string());
                }
            }
        }
        Self::default()
    }

    /// Reads the text: JSON with comments and trailing commas.
    #[must_use]
    pub fn parse(text: &str, path: &str) -> Self {
        let mut text = text.trim_start_matches('\u{feff}').to_owned();
        if json_strip_comments::strip(&mut text).is_err() {
            return Self::broken(path, "a comment is not closed");
        }
        let root: Value = match serde_json::from_str(&text) {
            Ok(root) => root,
            Err(error) => return Self::broken(path, &error.to_string()),
        };
        let Some(entries) = root.get("providers").and_then(Value::as_object) else {
            return Self::broken(path, "\"providers\" is missing or not an object");
        };
        let mut providers = IndexMap::new();
        for (id, entry) in entries {
            match CustomProvider::deserialize(entry)
                .map_err(|error| error.to_string())
                .and_then(checked)
            {
                Ok(provider) => {
                    providers.insert(id.clone(), provider);
                }
                Err(cause) => return Self::broken(path, &format!("providers.{id}: {cause}")),
            }
        }
        Self {
            providers,
            error: None,
        }
    }

    fn broken(path: &str, cause: &str) -> Self {
        let error = format!(
            "The models file {path} is not used, because it cannot be read: {cause}. Correct it; \
             the form is {{\"providers\": {{\"name\": {{\"baseUrl\", \"api\", \"apiKey\", \"models\": [{{\"id\"}}]}}}}}}."
        );
        Self {
            providers: IndexMap::new(),
            error: Some(error),
        }
    }
}

fn checked(provider: CustomProvider) -> Result<CustomProvider, String> {
    if provider == CustomProvider::default() {
        return Err("the entry sets nothing".to_owned());
    }
    for model in &provider.models {
        if model
            .get("id")
            .and_then(Value::as_str)
            .is_none_or(str::is_empty)
        {
            return Err("a model has no \"id\"".to_owned());
        }
    }
    for (name, value) in [
        ("baseUrl", &provider.base_url),
        ("api", &provider.api),
        ("apiKey", &provider.api_key),
    ] {
        if value.as_deref() == Some("") {
            return Err(format!("\"{name}\" is empty"));
        }
    }
    Ok(provider)
}

impl CustomProvider {
    /// Lays the file's entry over the models that are known without it (§9, layers 2, 3 and 5).
    /// Definitions that lack an api or an address are answered as sentences.
    #[must_use]
    pub fn apply(&self, id: &str, mut base: Vec<Model>) -> (Vec<Model>, Vec<String>) {
        for model in &mut base {
            if let Some(url) = &self.base_url {
                model.base_url.clone_from(url);
            }
            merge_compat(&mut model.compat, self.compat.as_ref());
        }
        let mut problems = Vec::new();
        for definition in &self.models {
            match self.define(id, definition, &base) {
                Ok(model) => match base.iter_mut().find(|known| known.id == model.id) {
                    Some(known) => *known = model,
                    None => base.push(model),
                },
                Err(problem) => problems.push(problem),
            }
        }
        if let Some(overrides) = &self.model_overrides {
            for model in &mut base {
                match overrides.get(&model.id) {
                    Some(Value::Object(change)) => {
                        let changed = override_model(model, change).map_err(|error| {
                            format!(
                                "The override of the model \"{}\" of \"{id}\" in models.json is left out: {error}.",
                                model.id
                            )
                        });
                        problems.extend(changed.err());
                    }
                    Some(other) => problems.push(format!(
                        "The override of the model \"{}\" of \"{id}\" in models.json is left out: it is {other}, and not an object.",
                        model.id
                    )),
                    None => {}
                }
            }
        }
        for model in &mut base {
            add_headers(model, self.headers.as_ref());
            if let Some(bearer) = self.auth_header {
                // A switch like the others: the wire says in which header the host puts the key.
                let compat = model.compat.get_or_insert_default();
                compat.insert("authHeader".to_owned(), Value::Bool(bearer));
            }
        }
        (base, problems)
    }

    fn define(
        &self,
        provider: &str,
        definition: &Map<String, Value>,
        base: &[Model],
    ) -> Result<Model, String> {
        let id = definition
            .get("id")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let mut model: Model =
            serde_json::from_value(Value::Object(definition.clone())).map_err(|error| {
                format!("The model \"{id}\" of \"{provider}\" in models.json is left out: {error}.")
            })?;
        let sibling = sibling(&model, base);
        if model.name.is_empty() {
            model.name.clone_from(&model.id);
        }
        model.provider = provider.to_owned();
        if model.api.is_empty() {
            let api = self.api.clone().or_else(|| sibling.map(|s| s.api.clone()));
            model.api = api.ok_or_else(|| {
                format!("The model \"{id}\" of \"{provider}\" in models.json is left out: no \"api\" specified. Add \"api\" to the provider, e.g. \"openai-completions\".")
            })?;
        }
        if model.base_url.is_empty() {
            let url = self
                .base_url
                .clone()
                .or_else(|| sibling.map(|s| s.base_url.clone()));
            model.base_url = url.filter(|url| !url.is_empty()).ok_or_else(|| {
                format!("The model \"{id}\" of \"{provider}\" in models.json is left out: \"baseUrl\" is required. Add it to the provider.")
            })?;
        }
        let own = model.compat.take();
        merge_compat(&mut model.compat, self.compat.as_ref());
        merge_compat(&mut model.compat, own.as_ref());
        Ok(model)
    }
}

/// Whose api and address a definition may borrow: the same id, else the same api, else an
/// `openai-completions` model, else the first.
fn sibling<'a>(model: &Model, base: &'a [Model]) -> Option<&'a Model> {
    base.iter()
        .find(|known| known.id == model.id)
        .or_else(|| {
            base.iter()
                .find(|known| !model.api.is_empty() && known.api == model.api)
        })
        .or_else(|| base.iter().find(|known| known.api == "openai-completions"))
        .or_else(|| base.first())
}

/// Shallow, but routing and template arguments merge one level deeper.
fn merge_compat(into: &mut Option<Map<String, Value>>, from: Option<&Map<String, Value>>) {
    const DEEPER: [&str; 4] = [
        "openRouterRouting",
        "vercelGatewayRouting",
        "chatTemplateKwargs",
        "chatTemplateArgs",
    ];
    let Some(from) = from else { return };
    let into = into.get_or_insert_default();
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) if DEEPER.contains(&key.as_str()) => {
                old.extend(new.clone());
            }
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

fn add_headers(model: &mut Model, headers: Option<&Map<String, Value>>) {
    let Some(headers) = headers else { return };
    let mut all = headers.clone();
    all.extend(model.headers.take().unwrap_or_default());
    model.headers = Some(all);
}

/// Scalars and `input` replace; maps merge by key; cost field by field (§9, layer 5).
fn override_model(model: &mut Model, change: &Map<String, Value>) -> serde_json::Result<()> {
    const MERGED: [&str; 5] = [
        "thinkingLevelMap",
        "promptCache",
        "samplingParams",
        "cost",
        "inputLimits",
    ];
    let Value::Object(mut whole) = serde_json::to_value(&*model)? else {
        return Ok(());
    };
    for (key, value) in change {
        match (whole.get_mut(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) if MERGED.contains(&key.as_str()) => {
                old.extend(new.clone())
            }
            _ if key == "compat" => {}
            _ => {
                whole.insert(key.clone(), value.clone());
            }
        }
    }
    *model = serde_json::from_value(Value::Object(whole))?;
    merge_compat(
        &mut model.compat,
        change.get("compat").and_then(Value::as_object),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> CustomModels {
        CustomModels::parse(text, "models.json")
    }

    #[test]
    fn comments_and_trailing_commas_are_fine() {
        let custom = parse(
            "\u{feff}{ // mine\n \"providers\": {\"local\": {\"baseUrl\": \"http://x//y\", \"api\": \"a\", \"models\": [{\"id\": \"m\"},],},}}",
        );
        assert_eq!(custom.error, None);
        let (models, problems) = custom.providers["local"].apply("local", Vec::new());
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(
            (
                models[0].reference().as_str(),
                models[0].name.as_str(),
                models[0].context_window
            ),
            ("local/m", "m", 128_000)
        );
        assert_eq!(models[0].base_url, "http://x//y");
    }

    #[test]
    fn a_broken_file_is_one_sentence_with_the_place() {
        let error = parse("{\"providers\": {").error.unwrap();
        assert!(
            error.contains("models.json") && error.contains("line 1"),
            "{error}"
        );
        let error = parse(r#"{"providers": {"p": {"baseUrl": 3}}}"#)
            .error
            .unwrap();
        assert!(error.contains("providers.p"), "{error}");
        assert!(parse(r#"{"providers": {"p": {}}}"#).error.is_some());
    }

    #[test]
    fn layers_lie_in_their_order() {
        let base = vec![Model {
            id: "a".into(),
            provider: "p".into(),
            api: "x".into(),
            base_url: "old".into(),
            ..Model::default()
        }];
        let custom = parse(
            r#"{"providers": {"p": {"baseUrl": "new", "compat": {"f": 1, "g": 1}, "models": [{"id": "b", "compat": {"g": 2}}, {"id": "c", "baseUrl": "own"}],
            "modelOverrides": {"a": {"contextWindow": 5, "cost": {"input": 2}}, "nobody": {}}}}}"#,
        );
        let (models, _) = custom.providers["p"].apply("p", base);
        let seen: Vec<_> = models
            .iter()
            .map(|m| (m.id.as_str(), m.base_url.as_str(), m.api.as_str()))
            .collect();
        assert_eq!(
            seen,
            [("a", "new", "x"), ("b", "new", "x"), ("c", "own", "x")]
        );
        assert_eq!(
            serde_json::to_value(&models[1].compat).unwrap(),
            serde_json::json!({"f": 1, "g": 2})
        );
        assert_eq!(
            (
                models[0].context_window,
                models[0].cost.input,
                models[0].cost.output
            ),
            (5, 2.0, 0.0)
        );
    }

    #[test]
    fn an_override_that_cannot_be_used_is_told() {
        let custom = parse(
            r#"{"providers": {"p": {"baseUrl": "u", "api": "x", "models": [{"id": "a"}, {"id": "b"}, {"id": "c"}],
            "modelOverrides": {"a": {"contextWindow": "large"}, "b": 7, "c": {"contextWindow": 5}}}}}"#,
        );
        let (models, problems) = custom.providers["p"].apply("p", Vec::new());
        let windows: Vec<_> = models.iter().map(|model| model.context_window).collect();
        assert_eq!(windows, [128_000, 128_000, 5]);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("\"a\" of \"p\"") && problems[1].contains("it is 7"));
    }

    #[test]
    fn a_definition_without_api_or_address_says_what_is_missing() {
        let custom = parse(r#"{"providers": {"p": {"models": [{"id": "m"}], "apiKey": "k"}}}"#);
        let (models, problems) = custom.providers["p"].apply("p", Vec::new());
        assert!(
            models.is_empty() && problems[0].contains("no \"api\" specified"),
            "{problems:?}"
        );
    }
}
