//! What handlers changed of the inputs of the prompt, kept apart from them: a run goes on with its
//! handlers' edits while the tools they were made beside come and go (R12).

use pliant_sdk::Error;
use serde_json::{Map, Value};

use super::PromptInputs;

/// Changes to prompt inputs, by field; in fields that are maps, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PromptEdits(Map<String, Value>);

impl PromptEdits {
    /// Whether nothing was changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The inputs as edited.
    #[must_use]
    pub fn applied_to(&self, inputs: PromptInputs) -> PromptInputs {
        if self.is_empty() {
            return inputs;
        }
        let edited = serde_json::to_value(&inputs).map(|mut value| {
            if let Value::Object(fields) = &mut value {
                apply(fields, &self.0);
            }
            value
        });
        // Every edit was read as inputs before.
        let read = edited.and_then(serde_json::from_value);
        read.unwrap_or(inputs)
    }

    /// Takes the options that a handler gave back, where it was shown `shown`. A field that is missing is
    /// unchanged, `null` empties it, and one that is not documented counts for nothing.
    ///
    /// # Errors
    /// When a field has another type, or a section a name that it cannot have (M14); nothing is taken
    /// then.
    pub fn take(&mut self, shown: &PromptInputs, given: Map<String, Value>) -> Result<(), Error> {
        let Value::Object(before) = serde_json::to_value(shown)? else {
            return Ok(());
        };
        let mut after = before.clone();
        for (name, value) in given {
            match value {
                Value::Null => after.remove(&name),
                value => after.insert(name, value),
            };
        }
        let unfit = |error| Error::invalid(format!("its \"systemPromptOptions\": {error}"));
        let after: PromptInputs = serde_json::from_value(Value::Object(after)).map_err(unfit)?;
        after.check_sections()?;
        if let Value::Object(after) = serde_json::to_value(after)? {
            let changes = difference(&before, &after);
            merge(&mut self.0, changes);
        }
        Ok(())
    }

    /// Stands for the whole prompt; a later word counts.
    pub fn force(&mut self, prompt: String) {
        let field = "forceSystemPrompt".to_owned();
        self.0.insert(field, Value::String(prompt));
    }

    /// Takes out what stands for the whole prompt.
    pub fn take_forced(&mut self) -> Option<String> {
        match self.0.remove("forceSystemPrompt") {
            Some(Value::String(prompt)) => Some(prompt),
            _ => None,
        }
    }

    /// Takes out the tools that were selected, if that was edited.
    pub fn take_selected_tools(&mut self) -> Option<Vec<String>> {
        let names = self.0.remove("selectedTools")?;
        serde_json::from_value(names).ok()
    }
}

/// What has to be set and, with `null`, taken away to come from one map to another; of maps in it
/// likewise.
fn difference(before: &Map<String, Value>, after: &Map<String, Value>) -> Map<String, Value> {
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    let mut changes: Map<_, _> = gone.map(|name| (name.clone(), Value::Null)).collect();
    for (name, new) in after {
        match (before.get(name), new) {
            (Some(old), new) if old == new => {}
            (Some(Value::Object(old)), Value::Object(new)) => {
                changes.insert(name.clone(), Value::Object(difference(old, new)));
            }
            (_, new) => {
                changes.insert(name.clone(), new.clone());
            }
        }
    }
    changes
}

/// Applies changes.
fn apply(fields: &mut Map<String, Value>, changes: &Map<String, Value>) {
    for (name, change) in changes {
        match (fields.get_mut(name), change) {
            (_, Value::Null) => {
                fields.shift_remove(name);
            }
            (Some(Value::Object(inner)), Value::Object(changes)) => apply(inner, changes),
            (_, change) => {
                fields.insert(name.clone(), change.clone());
            }
        }
    }
}

/// Joins later changes to earlier ones. A `null` stays: it takes away what others put there.
fn merge(changes: &mut Map<String, Value>, later: Map<String, Value>) {
    for (name, change) in later {
        match (changes.get_mut(&name), change) {
            (Some(Value::Object(inner)), Value::Object(change)) => merge(inner, change),
            (_, change) => {
                changes.insert(name, change);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn inputs(value: Value) -> PromptInputs {
        serde_json::from_value(value).unwrap()
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn edits_stand_on_other_inputs_than_they_were_made_on() {
        // P39, R12
        let shown = inputs(json!({
            "selectedTools": ["a"], "toolSnippets": {"a": "A"}, "sections": {"x": "1", "y": "2"}
        }));
        let mut edits = PromptEdits::default();
        let given = json!({
            "toolSnippets": {"a": "better"}, "sections": {"y": "2", "z": "3"},
            "appendSystemPrompt": "more", "undocumented": 5
        });
        edits.take(&shown, object(given)).unwrap();
        let later = inputs(json!({
            "selectedTools": ["a", "b"], "toolSnippets": {"a": "A", "b": "B"},
            "sections": {"x": "1", "y": "changed"}
        }));
        let expected = inputs(json!({
            "selectedTools": ["a", "b"], "toolSnippets": {"a": "better", "b": "B"},
            "sections": {"y": "changed", "z": "3"}, "appendSystemPrompt": "more"
        }));
        assert_eq!(edits.applied_to(later), expected);
    }

    #[test]
    fn null_empties_a_field_and_a_wrong_type_changes_nothing() {
        // P39, M14
        let shown = inputs(json!({"customPrompt": "c", "sections": {"x": "1"}}));
        let mut edits = PromptEdits::default();
        let given = json!({"customPrompt": null, "sections": null});
        edits.take(&shown, object(given)).unwrap();
        assert_eq!(edits.applied_to(shown.clone()), PromptInputs::default());
        let before = edits.clone();
        for wrong in [
            json!({"sections": {"preamble": "x"}}),
            json!({"sections": []}),
            json!({"selectedTools": "read"}),
        ] {
            assert!(edits.take(&shown, object(wrong)).is_err());
        }
        assert_eq!(edits, before);
    }

    #[test]
    fn the_last_word_on_the_whole_prompt_counts_and_is_taken_once() {
        // P40
        let mut edits = PromptEdits::default();
        edits.force("one".to_owned());
        edits.force("two".to_owned());
        assert_eq!(edits.take_forced().as_deref(), Some("two"));
        assert_eq!(edits.take_forced(), None);
        assert!(edits.is_empty());
    }

    prop_compose! {
        fn any_inputs()(
            tools in proptest::collection::vec("[a-c]", 0..3),
            sections in proptest::collection::btree_map("[a-c]", "[a-z]{0,2}", 0..3),
            snippets in proptest::collection::btree_map("[a-c]", "[a-z]{0,2}", 0..3),
            custom in proptest::option::of("[a-z]{0,2}"),
        ) -> PromptInputs {
            inputs(json!({
                "selectedTools": tools, "sections": sections, "toolSnippets": snippets,
                "customPrompt": custom.map_or(Value::Null, Value::String),
            }))
        }
    }

    proptest! {
        #[test]
        fn what_two_handlers_make_of_the_inputs_is_what_the_second_left(
            base in any_inputs(), one in any_inputs(), two in any_inputs()
        ) {
            // P39: each handler sees what the ones before it made
            let mut edits = PromptEdits::default();
            for after in [&one, &two] {
                let shown = edits.applied_to(base.clone());
                let mut given = object(serde_json::to_value(after).unwrap());
                if after.custom_prompt.is_none() {
                    given.insert("customPrompt".to_owned(), Value::Null);
                }
                edits.take(&shown, given).unwrap();
                prop_assert_eq!(&edits.applied_to(base.clone()), after);
            }
        }
    }
}
