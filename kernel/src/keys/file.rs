//! `keybindings.json`: an object from the id of an action to a key or a list of keys, in the place of those
//! that the action has by default; an empty list switches it off. What is wrong with an entry costs that
//! entry only.

use std::collections::HashMap;
use std::path::Path;

use pliant_sdk::shortcut::normal;
use serde_json::{Map, Value};

use super::{Action, KeyBindings, Platform, older};
use crate::jsonfile;
use crate::near::meant;

/// The name of the file.
pub const FILE: &str = "keybindings.json";

/// More keys for one action are a mistake.
const MOST_KEYS: usize = 32;

impl KeyBindings {
    /// Reads a file, and tells in sentences which entries it passes by. A file that is not there says
    /// nothing.
    ///
    /// # Errors
    /// In a sentence, when the file cannot be read or is no JSON object.
    pub fn read(path: &Path, platform: Platform) -> Result<(Self, Vec<String>), String> {
        let shown = path.display();
        let written = jsonfile::read(path)
            .map_err(|error| format!("The key bindings of {shown} do not count: {error}"))?;
        let (own, mut problems) = entries(&written);
        let (bindings, twice) = Self::with(platform, &own);
        problems.extend(twice);
        let told = problems.into_iter().map(|one| format!("{shown}: {one}"));
        Ok((bindings, told.collect()))
    }
}

/// What can be used, and sentences about the rest.
fn entries(written: &Map<String, Value>) -> (HashMap<Action, Vec<String>>, Vec<String>) {
    let (mut own, mut problems) = (HashMap::new(), Vec::new());
    // An id says more than a short name, wherever it stands.
    let (full, short): (Vec<_>, Vec<_>) = written
        .iter()
        .partition(|(name, _)| Action::parse(name).is_some());
    for (name, value) in full.into_iter().chain(short) {
        let Some(action) = Action::parse(name).or_else(|| older::action(name)) else {
            let near = meant(name, Action::all().map(Action::id));
            problems.push(format!(
                "There is no action \"{name}\"{near}; it is passed by."
            ));
            continue;
        };
        if own.contains_key(&action) {
            problems.push(format!(
                "\"{name}\" is the former name of \"{action}\", which has keys here too; it is passed by."
            ));
            continue;
        }
        match keys(value) {
            Ok(keys) => drop(own.insert(action, keys)),
            Err(why) => {
                problems.push(format!(
                    "The keys of \"{name}\" stay as they are, because {why}."
                ));
            }
        }
    }
    (own, problems)
}

fn keys(value: &Value) -> Result<Vec<String>, String> {
    let written: Vec<&Value> = match value {
        Value::String(_) => vec![value],
        Value::Array(list) if list.len() <= MOST_KEYS => list.iter().collect(),
        Value::Array(_) => return Err(format!("an action has {MOST_KEYS} keys at most")),
        _ => return Err("they are neither a key nor a list of keys".to_owned()),
    };
    let mut keys = Vec::new();
    for key in written {
        let Some(key) = key.as_str() else {
            return Err("one of them is no text".to_owned());
        };
        let key = normal(key).map_err(|error| error.message)?;
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    Ok(keys)
}
