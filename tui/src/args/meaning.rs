//! What the options mean to the kernel.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::bail;
use pliant_kernel::models::ModelWish;
use pliant_kernel::resources::ResourceOptions;
use pliant_kernel::session::ToolSelection;
use pliant_kernel::theme::ThemeChoice;
use pliant_kernel::{OpenOptions, SessionChoice, WhenHeld, textfile};
use pliant_sdk::message::ThinkingLevel;

use super::Options;
use super::options::{List, names};
use crate::say;

impl Options {
    /// Refuses what cannot go together, and warns of what has no effect.
    ///
    /// # Errors
    /// A sentence.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.provider.is_some() && self.model.is_none() {
            bail!(
                "--provider needs --model, which it restricts. Name the model, or write --model PROVIDER/MODEL."
            );
        }
        if self.api_key.is_some() && self.model.is_none() && self.models.is_none() {
            bail!(
                "--api-key needs --model or --models: a key goes to one service only. Name the model it is for."
            );
        }
        let stored = [
            ("--continue", self.continue_latest),
            ("--resume", self.resume),
            ("--session", self.session.is_some()),
        ];
        for (option, _) in stored.iter().filter(|(_, given)| *given && self.no_session) {
            say::warning(format_args!(
                "{option} has no effect with --no-session; --read-only continues a session without storing anything."
            ));
        }
        Ok(())
    }

    /// Which tools are wanted.
    pub fn tool_selection(&self) -> ToolSelection {
        let tools = self.tools.as_ref().map(|List(tools)| tools);
        let changes = tools.is_some_and(|tools| tools.iter().any(|tool| tool.starts_with('+')));
        let allow = match (tools, self.no_tools) {
            (None, true) => Some(Vec::new()),
            // Changes of nothing.
            (Some(tools), true) if changes => Some(
                tools
                    .iter()
                    .filter_map(|tool| Some(tool.strip_prefix('+')?.to_owned()))
                    .collect(),
            ),
            (tools, _) => tools.cloned(),
        };
        ToolSelection {
            allow,
            exclude: self.exclude_tools.clone().unwrap_or_default().0,
            defaults: self.no_builtin_tools.then(Vec::new),
        }
    }

    /// Which skills and prompt templates are wanted.
    pub fn resource_options(&self) -> ResourceOptions {
        ResourceOptions {
            skills: self.skill.clone(),
            no_skills: self.no_skills,
            templates: self.prompt_template.clone(),
            no_templates: self.no_prompt_templates,
            themes: self.theme.clone(),
            no_themes: self.no_themes,
            theme: self.use_theme.as_deref().and_then(ThemeChoice::parse),
            home: std::env::home_dir(),
            ..ResourceOptions::default()
        }
    }

    /// What the session is opened with.
    ///
    /// # Errors
    /// When a file with a part of the prompt cannot be read.
    pub fn open_options(&self) -> anyhow::Result<OpenOptions> {
        let session = match (&self.fork, &self.session) {
            _ if self.no_session => SessionChoice::InMemory,
            (Some(name), _) => SessionChoice::ForkOf(name.clone()),
            (_, Some(name)) => SessionChoice::Named(name.clone()),
            _ if self.continue_latest => SessionChoice::Continue,
            _ => SessionChoice::New,
        };
        let when_held = match (self.wait, self.read_only) {
            (true, _) => WhenHeld::Wait,
            (_, true) => WhenHeld::Read,
            _ => WhenHeld::Refuse,
        };
        let level = self.thinking.as_deref().and_then(ThinkingLevel::parse);
        if let (Some(word), None) = (&self.thinking, level) {
            say::warning(format_args!(
                "\"{word}\" is not a thinking level and is ignored; the levels are off, minimal, low, medium, high, xhigh, max."
            ));
        }
        let appended = self
            .append_system_prompt
            .iter()
            .map(|text| text_or_file(text))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let system_prompt = self.system_prompt.as_deref().map(text_or_file);
        Ok(OpenOptions {
            session,
            id: self.session_id.clone(),
            name: self.name.clone(),
            when_held,
            model: ModelWish {
                provider: self.provider.clone(),
                model: self.model.clone(),
            },
            level,
            scope: self.models.as_deref().map(names),
            system_prompt: system_prompt.transpose()?,
            append_system_prompt: (!appended.is_empty()).then(|| appended.join("\n\n")),
            ..OpenOptions::default()
        })
    }
}

/// A value that names a file stands for its content; one that names nothing is the text itself.
fn text_or_file(value: &str) -> anyhow::Result<String> {
    match textfile::read(Path::new(value)) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == ErrorKind::PermissionDenied || Path::new(value).exists() => {
            bail!("The prompt file {value} cannot be read: {error}.")
        }
        Err(_) => Ok(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;

    fn options(words: &[&str]) -> Options {
        Args::read(words.iter().map(Into::into)).unwrap().options
    }

    #[test]
    fn tools_are_chosen_named_changed_and_left_out() {
        // interfaces §1.2
        let allow = |words: &[&str]| options(words).tool_selection().allow;
        let list = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(allow(&[]), None);
        assert_eq!(allow(&["-t", " read, ,grep"]), list(&["read", "grep"]));
        assert_eq!(allow(&["-nt"]), list(&[]));
        assert_eq!(allow(&["-nt", "-t", "read"]), list(&["read"]));
        assert_eq!(allow(&["-nt", "-t", "+read,-bash"]), list(&["read"]));
        assert_eq!(allow(&["-t", "+read,-bash"]), list(&["+read", "-bash"]));
        assert_eq!(options(&["-nbt"]).tool_selection().defaults, Some(vec![]));
        let excluded = options(&["-xt", "a,*b"]).tool_selection().exclude;
        assert_eq!(excluded, ["a", "*b"]);
    }

    #[test]
    fn a_key_and_a_provider_need_a_model() {
        // interfaces §1.2
        let check = |words: &[&str]| options(words).check();
        assert!(check(&["--provider", "x"]).is_err());
        assert!(check(&["--api-key", "x"]).is_err());
        assert!(check(&["--api-key", "x", "--models", "a"]).is_ok());
        assert!(check(&["--api-key", "x", "--provider", "a", "--model", "b"]).is_ok());
    }

    #[test]
    fn a_prompt_is_a_text_or_a_file_that_can_be_read() {
        assert_eq!(text_or_file("Be brief.").unwrap(), "Be brief.");
        assert_eq!(text_or_file(&"long ".repeat(1000)).unwrap().len(), 5000);
        let manifest = text_or_file("Cargo.toml").unwrap();
        assert!(manifest.contains("[package]"));
        let error = text_or_file("src").unwrap_err().to_string();
        assert!(error.contains("src cannot be read"), "{error}");
    }
}
