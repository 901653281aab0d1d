//! What can be called by a slash, for front ends: commands of extensions, prompt templates, skills, in
//! this order (`interfaces.md` §8.2, `get_commands`).

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde::Serialize;

use super::{Kernel, KernelOptions};
use crate::registry::{Rank, Registry, Source};
use crate::resources::LiveResources;
use crate::session::Surroundings;
use crate::settings::{self, LiveSettings};

/// Something that a prompt can begin with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SlashCommand {
    /// Its name without the slash; that of a skill begins with `skill:`.
    pub name: String,
    /// One line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it is.
    pub source: SlashSource,
    /// Where it comes from.
    pub source_info: SourceInfo,
}

/// What a slash word stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SlashSource {
    /// A command that an extension registered.
    Extension,
    /// A prompt template.
    Prompt,
    /// A skill.
    Skill,
}

/// Where something comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceInfo {
    /// Its file; `builtin:NAME` of what ships with pliant.
    pub path: String,
    /// How it was found: `auto` in a folder for it, `local` by the settings, `cli` on the command
    /// line, `builtin`.
    pub source: &'static str,
    /// Whose it is.
    pub scope: Scope,
    /// No package brought it.
    pub origin: &'static str,
    /// The folder that was looked through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_dir: Option<PathBuf>,
}

/// Whose something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The user's.
    User,
    /// The project's.
    Project,
    /// Of this process only.
    Temporary,
}

impl Kernel {
    /// What can be called by a slash.
    #[must_use]
    pub fn slash_commands(&self) -> Vec<SlashCommand> {
        self.slash.all()
    }
}

/// Where all of them are known.
pub(super) struct SlashCommands {
    pub(super) registry: Arc<Registry>,
    pub(super) resources: Arc<LiveResources>,
    pub(super) settings: Arc<LiveSettings>,
    pub(super) options: KernelOptions,
}

impl SlashCommands {
    /// What sessions may know of them.
    pub(super) fn surroundings(self: &Arc<Self>, trusts_project: bool) -> Surroundings {
        let slash = Arc::clone(self);
        Surroundings {
            commands: Box::new(move || serde_json::to_value(slash.all()).unwrap_or_default()),
            trusts_project,
            replaces: OnceLock::new(),
        }
    }

    /// As they are now.
    fn all(&self) -> Vec<SlashCommand> {
        let snapshot = self.registry.snapshot();
        let commands = snapshot.commands().map(|(name, command)| SlashCommand {
            name: name.clone(),
            description: command.spec.description.clone(),
            source: SlashSource::Extension,
            source_info: self.info_of(command.source()),
        });
        let resources = self.resources.current();
        let templates = resources.templates().iter().map(|template| SlashCommand {
            name: template.name.clone(),
            description: Some(template.description.clone()).filter(|text| !text.is_empty()),
            source: SlashSource::Prompt,
            source_info: self.info_of_resource(&template.file, template.scope),
        });
        let called = self.settings.now().get("enableSkillCommands").as_bool() != Some(false);
        let skills = resources.skills().iter().filter(|_| called);
        let skills = skills.map(|skill| SlashCommand {
            name: format!("skill:{}", skill.name),
            description: Some(skill.description.clone()).filter(|text| !text.is_empty()),
            source: SlashSource::Skill,
            source_info: self.info_of_resource(&skill.file, skill.scope),
        });
        commands.chain(templates).chain(skills).collect()
    }

    fn info_of(&self, source: &Source) -> SourceInfo {
        let (Some(path), Rank::CommandLine) = (&source.path, source.rank) else {
            return match &source.path {
                Some(path) if source.rank < Rank::BuiltIn => self.info_of_file(path),
                _ => SourceInfo {
                    path: format!("builtin:{}", source.name),
                    source: "builtin",
                    scope: Scope::Temporary,
                    origin: TOP_LEVEL,
                    base_dir: None,
                },
            };
        };
        named(path)
    }

    /// One that the settings list may lie anywhere, and is the user's or the project's all the same.
    fn info_of_resource(&self, file: &Path, scope: settings::Scope) -> SourceInfo {
        let found = self.info_of_file(file);
        let scope = match scope {
            settings::Scope::Run => return named(file),
            settings::Scope::Shipped => {
                return SourceInfo {
                    source: "builtin",
                    base_dir: None,
                    ..named(file)
                };
            }
            settings::Scope::User | settings::Scope::Package => Scope::User,
            settings::Scope::Project => Scope::Project,
        };
        match found.source {
            "cli" => SourceInfo {
                source: "local",
                scope,
                ..found
            },
            _ => SourceInfo { scope, ..found },
        }
    }

    /// The folders for it say whose a file is; any other place was named on the command line.
    fn info_of_file(&self, file: &Path) -> SourceInfo {
        let project = [".pliant", ".agents", ".pi"];
        let of_project = self.options.cwd.ancestors().find_map(|folder| {
            let folders = project.iter().map(|name| folder.join(name));
            let holds = |base: &PathBuf| file.starts_with(base);
            // A home that the project lies in is the user's all the same.
            let is_users = Some(folder) == self.options.resources.home.as_deref();
            folders.into_iter().find(|base| !is_users && holds(base))
        });
        let home = self.options.resources.home.iter();
        let of_user = home.flat_map(|home| project.map(|name| home.join(name)));
        let mut of_user = std::iter::once(self.options.agent_dir.clone()).chain(of_user);
        let (scope, base) = match of_user.find(|base| file.starts_with(base)) {
            Some(base) => (Scope::User, base),
            None => match of_project {
                Some(base) => (Scope::Project, base),
                None => return named(file),
            },
        };
        SourceInfo {
            path: file.display().to_string(),
            source: "auto",
            scope,
            origin: TOP_LEVEL,
            base_dir: Some(base),
        }
    }
}

const TOP_LEVEL: &str = "top-level";

fn named(path: &Path) -> SourceInfo {
    SourceInfo {
        path: path.display().to_string(),
        source: "cli",
        scope: Scope::Temporary,
        origin: TOP_LEVEL,
        base_dir: path.parent().map(Path::to_owned),
    }
}
