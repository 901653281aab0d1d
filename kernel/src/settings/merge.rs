//! The settings of a trusted project over those of the user (`interfaces.md` §5).

use serde_json::{Map, Value};

/// Only the user's file says these.
const OF_THE_USER: [&str; 4] = [
    "defaultProjectTrust",
    "httpProxy",
    "selfUpdateCommand",
    "cacheWarming",
];

/// Lists whose entries of both files count.
const JOINED: [&str; 6] = [
    "packages",
    "extensions",
    "plugins",
    "skills",
    "prompts",
    "themes",
];

/// What a project may say.
pub(super) fn of_project(mut written: Map<String, Value>) -> Map<String, Value> {
    for key in OF_THE_USER {
        written.remove(key);
    }
    if let Some(Value::Object(plugins)) = written.get_mut("plugins") {
        plugins.remove("allowNative");
    }
    written.remove("plugins.allowNative");
    written
}

/// The project's values over the user's; objects key by key.
pub(super) fn merged(user: &Value, project: &Map<String, Value>) -> Value {
    let mut all = user.clone();
    if !all.is_object() {
        all = Value::Object(Map::new());
    }
    if let Some(all) = all.as_object_mut() {
        for (key, value) in project {
            let old = all.remove(key).unwrap_or(Value::Null);
            all.insert(key.clone(), top(key, old, value));
        }
    }
    all
}

fn top(key: &str, user: Value, project: &Value) -> Value {
    match (user, project) {
        (Value::Array(user), Value::Array(project)) if JOINED.contains(&key) => {
            project.iter().cloned().chain(user).collect()
        }
        // Changes are changes of what the user has (`resources.md` §10).
        (Value::Array(user), Value::Array(project)) if key == "defaultTools" => {
            let changes = !project.is_empty() && project.iter().all(is_change);
            let user = user.into_iter().filter(|_| changes);
            user.chain(project.iter().cloned()).collect()
        }
        (user, project) => over(user, project),
    }
}

fn is_change(entry: &Value) -> bool {
    entry
        .as_str()
        .is_some_and(|entry| entry.starts_with(['+', '-']))
}

/// Not deeper than the file was read: a parser with a limit was here before.
fn over(user: Value, project: &Value) -> Value {
    match (user, project) {
        (Value::Object(mut user), Value::Object(project)) => {
            for (key, value) in project {
                let old = user.remove(key).unwrap_or(Value::Null);
                user.insert(key.clone(), over(old, value));
            }
            Value::Object(user)
        }
        (_, project) => project.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(user: Value, project: Value, all: Value) {
        let project = of_project(project.as_object().unwrap().clone());
        assert_eq!(merged(&user, &project), all);
    }

    #[test]
    fn objects_merge_key_by_key_and_everything_else_is_replaced() {
        // resources §10, §13.8
        check(
            json!({"a": {"b": 1, "c": {"d": 2, "e": 3}}, "f": [1], "g": 4, "enabledModels": ["x"]}),
            json!({"a": {"c": {"d": 5}, "h": 6}, "f": {"i": 7}, "enabledModels": ["y"]}),
            json!({"a": {"b": 1, "c": {"d": 5, "e": 3}, "h": 6}, "f": {"i": 7}, "g": 4,
                "enabledModels": ["y"]}),
        );
        check(Value::Null, json!({"a": 1}), json!({"a": 1}));
    }

    #[test]
    fn lists_of_resources_are_joined_the_projects_first() {
        // interfaces §5
        check(
            json!({"skills": ["u"], "prompts": ["u"]}),
            json!({"skills": ["p"], "themes": ["p"]}),
            json!({"skills": ["p", "u"], "prompts": ["u"], "themes": ["p"]}),
        );
    }

    #[test]
    fn changes_of_the_default_tools_change_what_the_user_has() {
        // resources §10, §13.8
        for (user, project, all) in [
            (
                json!(["read", "bash"]),
                json!(["+grep", "-bash"]),
                json!(["read", "bash", "+grep", "-bash"]),
            ),
            (
                json!(["+find"]),
                json!(["-bash"]),
                json!(["+find", "-bash"]),
            ),
            (
                json!(["+find"]),
                json!(["ls", "+grep"]),
                json!(["ls", "+grep"]),
            ),
            (json!(["+find"]), json!([]), json!([])),
            (Value::Null, json!(["+find"]), json!(["+find"])),
        ] {
            check(
                json!({"defaultTools": user}),
                json!({"defaultTools": project}),
                json!({"defaultTools": all}),
            );
        }
    }

    #[test]
    fn what_is_the_users_alone_is_not_the_projects_to_say() {
        // interfaces §5
        check(
            json!({"httpProxy": "http://u", "plugins": {"allowNative": "never"}}),
            json!({"httpProxy": "http://p", "defaultProjectTrust": "always", "cacheWarming": "off",
                "selfUpdateCommand": "x", "plugins": {"allowNative": "always", "hotReload": false},
                "plugins.allowNative": "always"}),
            json!({"httpProxy": "http://u", "plugins": {"allowNative": "never", "hotReload": false}}),
        );
    }
}
