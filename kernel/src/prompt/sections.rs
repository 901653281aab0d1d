//! The sections that the inputs of the prompt come down to, in their order (`kernel.md` §1.4).

use serde_json::Value;

use super::{ContextFile, PromptInputs};

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

/// Names and texts; all but the preamble are wrapped in a tag of their name. A section of a plugin comes
/// last, or takes the place of the built-in one whose name it has; one that is empty is left out.
#[must_use]
pub fn sections(inputs: &PromptInputs) -> Vec<(String, String)> {
    let mut sections = built_in(inputs);
    for (name, text) in &inputs.sections {
        let text = text.as_str().unwrap_or_default().to_owned();
        match sections.iter_mut().find(|(other, _)| other == name) {
            Some((_, replaced)) => *replaced = text,
            None => sections.push((name, text)),
        }
    }
    let wrapped = |(name, text): (&str, String)| match name {
        "preamble" => (name.to_owned(), text),
        _ => (name.to_owned(), format!("<{name}>\n{text}\n</{name}>")),
    };
    let said = sections.into_iter().filter(|(_, text)| !text.is_empty());
    said.map(wrapped).collect()
}

/// The prompt as one text (M10).
#[must_use]
pub fn rendered(sections: &[(String, String)]) -> String {
    let texts: Vec<_> = sections.iter().map(|(_, text)| text.as_str()).collect();
    texts.join("\n\n")
}

fn built_in(inputs: &PromptInputs) -> Vec<(&str, String)> {
    let preamble = inputs.custom_prompt.as_deref().unwrap_or(PREAMBLE);
    let mut sections = vec![("preamble", preamble.to_owned())];
    if inputs.custom_prompt.is_none() {
        sections.push(("tools", tool_list(inputs)));
        sections.push(("rules", rule_list(inputs)));
        sections.push(("docs", DOCS.to_owned()));
    }
    sections.push(("addendum", inputs.append_system_prompt.clone()));
    sections.push(("project_context", project_context(&inputs.context_files)));
    sections.push(("skills", skill_list(inputs).unwrap_or_default()));
    sections.push(("cwd", inputs.cwd.replace('\\', "/")));
    sections
}

fn tool_list(inputs: &PromptInputs) -> String {
    let line = |name: &String| {
        let snippet = inputs.tool_snippets.get(name)?.as_str()?;
        Some(format!("- {name}: {snippet}"))
    };
    let lines: Vec<String> = inputs.shown_tools().filter_map(line).collect();
    if lines.is_empty() {
        "(none)".to_owned()
    } else {
        lines.join("\n")
    }
}

/// Bulleted and without repetitions.
fn rule_list(inputs: &PromptInputs) -> String {
    let mut rules: Vec<&str> = Vec::new();
    let of_tools = inputs
        .shown_tools()
        .filter_map(|name| inputs.tool_guidelines.get(name)?.as_array())
        .flatten()
        .filter_map(Value::as_str);
    let others = inputs.prompt_guidelines.iter().map(String::as_str);
    for rule in of_tools.chain(others).chain(RULES) {
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

fn project_context(files: &[ContextFile]) -> String {
    let one = |ContextFile { path, content }: &ContextFile| {
        format!("<project_instructions path=\"{path}\">\n{content}\n</project_instructions>")
    };
    files.iter().map(one).collect::<Vec<_>>().join("\n\n")
}

/// The skills that a model may choose, if it has a tool to read them with; one that it is not told of is
/// not named (M13).
fn skill_list(inputs: &PromptInputs) -> Option<String> {
    let selected = |name: &&str| inputs.selected_tools.iter().any(|tool| tool == name);
    let reader = ["read", "bash"].into_iter().find(selected)?;
    let told = !inputs.hidden_tools.iter().any(|tool| tool == reader);
    let with = if told {
        format!(" with `{reader}`")
    } else {
        String::new()
    };
    let skills = inputs.skills.iter();
    let mut visible = skills
        .filter(|skill| !skill.disable_model_invocation)
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
            escape(&skill.file_path)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use pliant_sdk::tool::ToolSpec;
    use serde_json::json;

    use super::*;
    use crate::prompt::PromptOptions;
    use crate::resources::Resources;

    fn of(options: &PromptOptions, tools: &[&ToolSpec], hidden: &[&str]) -> Vec<(String, String)> {
        let hidden: BTreeSet<String> = hidden.iter().map(|name| (*name).to_owned()).collect();
        sections(&PromptInputs::new(options, tools, &hidden))
    }

    fn names(sections: &[(String, String)]) -> Vec<&str> {
        sections.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn a_custom_prompt_leaves_out_tools_rules_and_docs() {
        // M13
        let options = PromptOptions {
            custom: Some("Be a poet.".into()),
            cwd: "/w".into(),
            ..PromptOptions::default()
        };
        assert_eq!(names(&of(&options, &[], &[])), ["preamble", "cwd"]);
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

    fn skills_section(options: &PromptOptions, tools: &[&str], hidden: &[&str]) -> Option<String> {
        let tools: Vec<_> = tools.iter().map(|name| ToolSpec::new(*name, "")).collect();
        let all = of(options, &tools.iter().collect::<Vec<_>>(), hidden);
        let names = names(&all);
        let at = names.iter().position(|name| *name == "skills")?;
        assert_eq!(names[at + 1..], ["cwd"]);
        Some(all[at].1.clone())
    }

    #[test]
    fn skills_are_listed_where_one_is_visible_and_a_tool_reads_files() {
        // M13
        let options = with_skills(&[("a", "Use & enjoy <it>.", false), ("b", "Never.", true)]);
        let section = skills_section(&options, &["bash", "read"], &[]).unwrap();
        assert!(section.contains("with `read` first"), "{section}");
        let list = format!(
            "<available_skills>\n<skill>\n<name>a</name>\n<description>Use &amp; enjoy &lt;it&gt;.</description>\n<location>{}/skills/a/SKILL.md</location>\n</skill>\n</available_skills>\n</skills>",
            options.cwd
        );
        assert!(section.ends_with(&list), "{section}");
        let section = skills_section(&options, &["bash"], &[]).unwrap();
        assert!(section.contains("with `bash` first"), "{section}");
        assert_eq!(skills_section(&options, &["write"], &[]), None);
        let section = skills_section(&options, &["read"], &["read"]).unwrap();
        assert!(section.contains("look at the file first"), "{section}");
        let hidden = with_skills(&[("b", "Never.", true)]);
        assert_eq!(skills_section(&hidden, &["read"], &[]), None);
        assert_eq!(skills_section(&with_skills(&[]), &["read"], &[]), None);
    }

    #[test]
    fn sections_other_than_the_preamble_are_wrapped_in_their_name() {
        let read = ToolSpec::new("read", "").snippet("read a file");
        let all = of(
            &PromptOptions {
                cwd: "/w".into(),
                ..PromptOptions::default()
            },
            &[&read],
            &[],
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

    #[test]
    fn a_section_of_a_plugin_comes_last_or_takes_the_place_of_a_built_in_one() {
        // extensions §3.6
        let inputs: PromptInputs = serde_json::from_value(json!({
            "cwd": "/w", "promptGuidelines": ["Rhyme."],
            "sections": {"style": "Short.", "docs": "None.", "tools": ""}
        }))
        .unwrap();
        let all = sections(&inputs);
        assert_eq!(names(&all), ["preamble", "rules", "docs", "cwd", "style"]);
        assert!(all[1].1.starts_with("<rules>\n- Rhyme.\n"), "{}", all[1].1);
        assert_eq!(all[2].1, "<docs>\nNone.\n</docs>");
        assert_eq!(all[4].1, "<style>\nShort.\n</style>");
        assert!(rendered(&all).ends_with("</cwd>\n\n<style>\nShort.\n</style>"));
    }

    #[test]
    fn tools_that_the_model_is_not_told_of_are_not_spoken_of() {
        let read = ToolSpec::new("read", "").snippet("read a file");
        let edit = ToolSpec::new("edit", "").snippet("edit a file");
        let all = of(&PromptOptions::default(), &[&read, &edit], &["edit"]);
        assert_eq!(all[1].1, "<tools>\n- read: read a file\n</tools>");
    }
}
