//! The system prompt as named sections, and the difference between what a transcript says and what
//! is wanted (`kernel.md` §1.3–1.4). A change is a patch by section name, never a new prompt, so that
//! the cached prefix of a conversation stays valid.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use pliant_sdk::history::replay;
use pliant_sdk::message::{Message, MessageContent, SystemMessage, Tool};
use pliant_sdk::tool::ToolSpec;
use serde_json::{Map, Value};

use crate::resources::Resources;
use crate::textfile;

/// The prompt and tool state that a transcript adds up to (M9). Fed message by message.
#[derive(Debug, Clone, Default)]
pub struct PromptState {
    replayed: Option<SystemMessage>,
}

impl PromptState {
    /// Takes the next message of the transcript.
    pub fn take(&mut self, message: &Message) {
        if let Message::System(patch) = message {
            let messages: Vec<&SystemMessage> = self.replayed.iter().chain([patch]).collect();
            self.replayed = replay(messages);
        }
    }

    /// Tools declared so far.
    #[must_use]
    pub fn tools(&self) -> &[Tool] {
        self.replayed
            .as_ref()
            .and_then(|state| state.tools_added.as_deref())
            .unwrap_or_default()
    }

    /// The patch that makes the sections the wanted ones; `None` when nothing changed (M15).
    #[must_use]
    pub fn patch(&self, wanted: &[(String, String)], now_ms: i64) -> Option<Message> {
        let empty = Map::new();
        let said = self
            .replayed
            .as_ref()
            .and_then(|state| state.sections.as_ref())
            .unwrap_or(&empty);
        let mut changes = Map::new();
        for (name, text) in wanted {
            if said.get(name).and_then(Value::as_str) != Some(text) {
                changes.insert(name.clone(), Value::String(text.clone()));
            }
        }
        for (name, text) in said {
            if text.is_string() && !wanted.iter().any(|(wanted, _)| wanted == name) {
                changes.insert(name.clone(), Value::Null);
            }
        }
        (!changes.is_empty()).then(|| {
            Message::System(SystemMessage {
                content: MessageContent::Text(String::new()),
                sections: Some(changes),
                timestamp: now_ms,
                ..SystemMessage::default()
            })
        })
    }
}

/// What the prompt is built from.
#[derive(Debug, Clone, Default)]
pub struct PromptOptions {
    /// Replaces the built-in introduction; tools, rules and docs are left out then (M13).
    pub custom: Option<String>,
    /// Added at the end of the built-in part.
    pub addendum: Option<String>,
    /// Context files: path and content.
    pub context_files: Vec<(String, String)>,
    /// Skills that the model may be told of; prompts name them and templates too.
    pub resources: Arc<Resources>,
    /// Working directory.
    pub cwd: String,
}

const PREAMBLE: &str = "You are pliant, an agent that works in a terminal on the user's machine. \
You read and change files and run commands through the tools you are given. \
Look before you change something, check what you changed, and say plainly what you did and what you could not do.";

const RULES: [&str; 3] = [
    "Be brief; show paths of files you speak of.",
    "Do what was asked, and nothing destructive beyond it.",
    "When a tool fails, read its message and mend the cause instead of trying the same again.",
];

const DOCS: &str = "pliant is customised while it runs: tools, commands, hooks and providers are Rhai scripts \
(`-e FILE.rhai`) or native plugins (`--plugin FILE`). Its README and `scripts/examples` show how.";

/// The sections in their order (§1.4); all but the preamble are wrapped in a tag of their name. Active
/// tools whose declaration is hidden from the model are not spoken of.
#[must_use]
pub fn sections(
    options: &PromptOptions,
    active: &[&ToolSpec],
    hidden: &BTreeSet<String>,
) -> Vec<(String, String)> {
    let shown = active.iter().filter(|tool| !hidden.contains(&tool.name));
    let tools: &[&ToolSpec] = &shown.copied().collect::<Vec<_>>();
    let mut sections = Vec::new();
    let mut add = |name: &str, text: String| {
        let wrapped = if name == "preamble" {
            text
        } else {
            format!("<{name}>\n{text}\n</{name}>")
        };
        sections.push((name.to_owned(), wrapped));
    };
    add(
        "preamble",
        options
            .custom
            .clone()
            .unwrap_or_else(|| PREAMBLE.to_owned()),
    );
    if options.custom.is_none() {
        add("tools", tool_list(tools));
        add("rules", rule_list(tools));
        add("docs", DOCS.to_owned());
    }
    if let Some(addendum) = &options.addendum {
        add("addendum", addendum.clone());
    }
    if !options.context_files.is_empty() {
        add("project_context", project_context(&options.context_files));
    }
    if let Some(skills) = skill_list(&options.resources, active, hidden) {
        add("skills", skills);
    }
    add("cwd", options.cwd.replace('\\', "/"));
    sections
}

fn tool_list(tools: &[&ToolSpec]) -> String {
    let line = |tool: &&ToolSpec| {
        Some(format!(
            "- {}: {}",
            tool.name,
            tool.prompt_snippet.as_ref()?
        ))
    };
    let lines: Vec<String> = tools.iter().filter_map(line).collect();
    if lines.is_empty() {
        "(none)".to_owned()
    } else {
        lines.join("\n")
    }
}

/// Bulleted and without repetitions.
fn rule_list(tools: &[&ToolSpec]) -> String {
    let mut rules: Vec<&str> = Vec::new();
    let of_tools = tools
        .iter()
        .flat_map(|tool| tool.prompt_guidelines.iter().map(String::as_str));
    for rule in of_tools.chain(RULES) {
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules
        .iter()
        .map(|rule| format!("- {rule}"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn project_context(files: &[(String, String)]) -> String {
    let one = |(path, content): &(String, String)| {
        format!("<project_instructions path=\"{path}\">\n{content}\n</project_instructions>")
    };
    files.iter().map(one).collect::<Vec<_>>().join("\n\n")
}

/// The skills that a model may choose, if it has a tool to read them with (M13).
fn skill_list(
    resources: &Resources,
    tools: &[&ToolSpec],
    hidden: &BTreeSet<String>,
) -> Option<String> {
    let has = |name: &&str| tools.iter().any(|tool| tool.name == *name);
    let reader = ["read", "bash"].into_iter().find(has)?;
    let with = if hidden.contains(reader) {
        String::new()
    } else {
        format!(" with `{reader}`")
    };
    let mut visible = resources
        .skills()
        .iter()
        .filter(|skill| !skill.hidden)
        .peekable();
    visible.peek()?;
    let mut text = format!(
        "Each skill below is a file with instructions for one kind of task. When a task fits a \
         description, look at the file{with} first and follow it. Relative paths in it \
         begin at the folder that the file is in.\n\n<available_skills>\n"
    );
    for skill in visible {
        text.push_str(&format!(
            "<skill>\n<name>{}</name>\n<description>{}</description>\n<location>{}</location>\n</skill>\n",
            escape(&skill.name),
            escape(&skill.description),
            escape(&skill.file.display().to_string())
        ));
    }
    text.push_str("</available_skills>");
    Some(text)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&apos;")
}

/// The instruction files in force: the user's, then from the outermost ancestor down to `cwd`, one
/// per directory (`interfaces.md` §3).
#[must_use]
pub fn context_files(agent_dir: &Path, cwd: &Path) -> Vec<(String, String)> {
    let ancestors: Vec<&Path> = cwd.ancestors().collect();
    let directories = std::iter::once(agent_dir).chain(ancestors.into_iter().rev());
    let mut files: Vec<(String, String)> = Vec::new();
    for directory in directories {
        let Some(file) = context_file(directory) else {
            continue;
        };
        if !files.contains(&file) {
            files.push(file);
        }
    }
    files
}

fn context_file(directory: &Path) -> Option<(String, String)> {
    const NAMES: [&str; 5] = [
        "AGENTS.override.md",
        "AGENTS.md",
        "AGENTS.MD",
        "CLAUDE.md",
        "CLAUDE.MD",
    ];
    NAMES.iter().find_map(|name| {
        let path = directory.join(name);
        Some((path.display().to_string(), textfile::read(&path).ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect()
    }

    #[test]
    fn a_patch_names_only_what_changed_and_nulls_what_vanished() {
        // M15
        let mut state = PromptState::default();
        let first = state
            .patch(
                &wanted(&[("preamble", "p"), ("rules", "r"), ("cwd", "/a")]),
                1,
            )
            .unwrap();
        state.take(&first);
        assert_eq!(
            state.patch(
                &wanted(&[("preamble", "p"), ("rules", "r"), ("cwd", "/a")]),
                2
            ),
            None
        );
        let Some(Message::System(patch)) =
            state.patch(&wanted(&[("preamble", "p"), ("cwd", "/b")]), 3)
        else {
            panic!("no patch")
        };
        assert_eq!(
            serde_json::to_value(patch.sections).unwrap(),
            serde_json::json!({"cwd": "/b", "rules": null})
        );
    }

    #[test]
    fn a_custom_prompt_leaves_out_tools_rules_and_docs() {
        // M13
        let options = PromptOptions {
            custom: Some("Be a poet.".into()),
            cwd: "/w".into(),
            ..PromptOptions::default()
        };
        let names: Vec<_> = sections(&options, &[], &BTreeSet::new())
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["preamble", "cwd"]);
    }

    /// Options with skills: name, description, and whether the model is not told.
    fn with_skills(skills: &[(&str, &str, bool)]) -> PromptOptions {
        let dir = tempfile::tempdir().unwrap();
        for (name, description, hidden) in skills {
            let folder = dir.path().join("skills").join(name);
            std::fs::create_dir_all(&folder).unwrap();
            let text = format!(
                "---\ndescription: {description}\ndisable-model-invocation: {hidden}\n---\n"
            );
            std::fs::write(folder.join("SKILL.md"), text).unwrap();
        }
        let options = crate::resources::ResourceOptions::default();
        let (resources, _) = Resources::load(&options, dir.path(), dir.path()).unwrap();
        PromptOptions {
            cwd: dir.path().display().to_string(),
            resources: Arc::new(resources),
            ..PromptOptions::default()
        }
    }

    fn skills_section(options: &PromptOptions, tools: &[&str]) -> Option<String> {
        let tools: Vec<_> = tools.iter().map(|name| ToolSpec::new(*name, "")).collect();
        let all = sections(options, &tools.iter().collect::<Vec<_>>(), &BTreeSet::new());
        let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
        let at = names.iter().position(|name| *name == "skills")?;
        assert_eq!(names[at + 1..], ["cwd"]);
        Some(all[at].1.clone())
    }

    #[test]
    fn skills_are_listed_where_one_is_visible_and_a_tool_reads_files() {
        // M13
        let options = with_skills(&[("a", "Use & enjoy <it>.", false), ("b", "Never.", true)]);
        let section = skills_section(&options, &["bash", "read"]).unwrap();
        assert!(section.contains("with `read` first"), "{section}");
        let list = format!(
            "<available_skills>\n<skill>\n<name>a</name>\n<description>Use &amp; enjoy &lt;it&gt;.</description>\n<location>{}/skills/a/SKILL.md</location>\n</skill>\n</available_skills>\n</skills>",
            options.cwd
        );
        assert!(section.ends_with(&list), "{section}");
        let section = skills_section(&options, &["bash"]).unwrap();
        assert!(section.contains("with `bash` first"), "{section}");
        assert_eq!(skills_section(&options, &["write"]), None);
        let hidden = with_skills(&[("b", "Never.", true)]);
        assert_eq!(skills_section(&hidden, &["read"]), None);
        assert_eq!(skills_section(&with_skills(&[]), &["read"]), None);
    }

    #[test]
    fn sections_other_than_the_preamble_are_wrapped_in_their_name() {
        let read = ToolSpec::new("read", "").snippet("read a file");
        let all = sections(
            &PromptOptions {
                cwd: "/w".into(),
                ..PromptOptions::default()
            },
            &[&read],
            &BTreeSet::new(),
        );
        assert_eq!(
            all[1],
            (
                "tools".into(),
                "<tools>\n- read: read a file\n</tools>".into()
            )
        );
        assert_eq!(all.last().unwrap().1, "<cwd>\n/w\n</cwd>");
    }
}
