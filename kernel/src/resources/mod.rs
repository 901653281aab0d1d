//! What is contributed by files of a convention: skills, prompt templates and themes. Places come in, in the
//! order of their precedence; what can be used comes out, with sentences about what cannot.
//!
//! On equal names the first wins (`resources.md` §2). A project's own resources are looked at where the
//! options say that it is trusted.

mod frontmatter;
mod places;
mod walk;

mod extensions;
mod skills;
mod templates;
mod themes;

mod live;
mod watched;

mod arguments;
mod block;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use crate::packages;
use crate::settings::{ResourceList, Scope};
use crate::theme::{ThemeChoice, Themes};

pub use arguments::{split_arguments, substitute};
pub use block::SkillBlock;
pub use extensions::extension_files;
pub use frontmatter::{Document, DocumentError};
pub use live::{LiveResources, Reread};
pub use skills::Skill;
pub use templates::Template;

use places::{places, skills_wanted, templates_wanted, themes_wanted};

/// Which resources are wanted beside those that are found.
#[derive(Clone, Default)]
pub struct ResourceOptions {
    /// Skills named on the command line: files or folders.
    pub skills: Vec<PathBuf>,
    /// Only those.
    pub no_skills: bool,
    /// Prompt templates named on the command line: files or folders.
    pub templates: Vec<PathBuf>,
    /// Only those.
    pub no_templates: bool,
    /// Themes named on the command line: files or folders.
    pub themes: Vec<PathBuf>,
    /// Only those and the ones that are built in.
    pub no_themes: bool,
    /// The theme named on the command line, over that of the settings.
    pub theme: Option<ThemeChoice>,
    /// The user's home, with the folders of other agents; `None` leaves those out.
    pub home: Option<PathBuf>,
    /// Leave pi's directories out.
    pub no_pi: bool,
    /// The project is trusted: its own count too.
    pub project: bool,
    /// What the settings list of skills.
    pub skill_lists: Vec<ResourceList>,
    /// What the settings list of prompt templates.
    pub template_lists: Vec<ResourceList>,
    /// What the settings list of themes.
    pub theme_lists: Vec<ResourceList>,
    /// The folder of those that ship, if there is one.
    pub shipped: Option<PathBuf>,
    /// Whether one that ships is switched off, by its kind and name.
    pub shipped_off: Option<IsOff>,
    /// Packages that the settings name.
    pub packages: Arc<[packages::Entry]>,
    /// What extensions name.
    pub discovered: Arc<Discovered>,
}

/// Files and folders that extensions name once a session has begun; absolute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discovered {
    /// Of skills.
    pub skills: Vec<PathBuf>,
    /// Of prompt templates.
    pub templates: Vec<PathBuf>,
    /// Of themes.
    pub themes: Vec<PathBuf>,
}

/// Answers whether something is switched off: `skills` or `prompts`, and its name.
pub type IsOff = Arc<dyn Fn(&str, &str) -> bool + Send + Sync>;

impl std::fmt::Debug for ResourceOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ResourceOptions")
    }
}

impl ResourceOptions {
    fn wants(&self, kind: &str, scope: Scope, name: &str) -> bool {
        let is_off = self.shipped_off.as_ref();
        scope != Scope::Shipped || is_off.is_none_or(|is_off| !is_off(kind, name))
    }
}

/// What is there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Resources {
    skills: Vec<Skill>,
    templates: Vec<Template>,
    themes: Themes,
}

/// A path on the command line that is not there.
#[derive(Debug, Error)]
#[error("There is no file or folder {}, which the command line names as {kind}.", path.display())]
pub struct MissingResource {
    kind: &'static str,
    path: PathBuf,
}

impl Resources {
    /// Looks for all resources for the first time. What is broken is a sentence beside them.
    ///
    /// # Errors
    /// When a path named on the command line does not exist.
    pub fn load(
        options: &ResourceOptions,
        agent_dir: &Path,
        cwd: &Path,
    ) -> Result<(Self, Vec<String>), MissingResource> {
        Self::load_after(&Self::default(), options, agent_dir, cwd)
    }

    /// Looks for all resources, where others counted so far: a theme that was good once stays.
    fn load_after(
        before: &Self,
        options: &ResourceOptions,
        agent_dir: &Path,
        cwd: &Path,
    ) -> Result<(Self, Vec<String>), MissingResource> {
        let (packages, mut warnings) = packages::places_of(&options.packages, agent_dir);
        let skills = places(
            &skills_wanted(options, &packages),
            options,
            agent_dir,
            cwd,
            &mut warnings,
        )?;
        let mut skills = skills::find(&skills, &mut warnings);
        skills.retain(|skill| options.wants("skills", skill.scope, &skill.name));
        let templates = places(
            &templates_wanted(options, &packages),
            options,
            agent_dir,
            cwd,
            &mut warnings,
        )?;
        let mut templates = templates::find(&templates, &mut warnings);
        templates.retain(|one| options.wants("prompts", one.scope, &one.name));
        let themes = places(
            &themes_wanted(options, &packages),
            options,
            agent_dir,
            cwd,
            &mut warnings,
        )?;
        let choice = options.theme.clone().unwrap_or_default();
        let themes = themes::find(&themes, &choice, &before.themes, &mut warnings);
        warnings.extend(themes.problem(&choice));
        let resources = Self {
            skills: first_of_each(
                "skill",
                skills,
                &mut warnings,
                |skill| skill.scope == Scope::Shipped,
                |skill| (&skill.name, &skill.file),
            ),
            templates: first_of_each(
                "prompt template",
                templates,
                &mut warnings,
                |template| template.scope == Scope::Shipped,
                |template| (&template.name, &template.file),
            ),
            themes,
        };
        Ok((resources, warnings))
    }

    /// All skills, nearest first.
    #[must_use]
    pub fn skills(&self) -> &[Skill] {
        &self.skills
    }

    /// The skill of that name.
    #[must_use]
    pub fn skill(&self, name: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.name == name)
    }

    /// All prompt templates, nearest first.
    #[must_use]
    pub fn templates(&self) -> &[Template] {
        &self.templates
    }

    /// The prompt template of that name.
    #[must_use]
    pub fn template(&self, name: &str) -> Option<&Template> {
        self.templates.iter().find(|template| template.name == name)
    }

    /// The themes, those of files first.
    #[must_use]
    pub fn themes(&self) -> &Themes {
        &self.themes
    }
}

/// On equal names the first wins, and the others are told.
fn first_of_each<T>(
    kind: &str,
    all: Vec<T>,
    warnings: &mut Vec<String>,
    is_shipped: impl Fn(&T) -> bool,
    key: impl Fn(&T) -> (&String, &PathBuf),
) -> Vec<T> {
    let mut kept: Vec<T> = Vec::with_capacity(all.len());
    for one in all {
        let (name, file) = key(&one);
        match kept.iter().map(&key).find(|(other, _)| *other == name) {
            // What ships is there to be replaced.
            Some(_) if is_shipped(&one) => {}
            Some((_, winner)) => warnings.push(format!(
                "The {kind} \"{name}\" of {} is not used, because {} has the same name and comes first.",
                file.display(),
                winner.display()
            )),
            None => kept.push(one),
        }
    }
    kept
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Home {
        dir: tempfile::TempDir,
        options: ResourceOptions,
    }

    impl Home {
        fn with(files: &[&str]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            for path in files {
                let file = dir.path().join(path);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, format!("---\nname: one\ndescription: {path}\n---\n")).unwrap();
            }
            let options = ResourceOptions {
                home: Some(dir.path().to_owned()),
                ..ResourceOptions::default()
            };
            Self { dir, options }
        }

        fn load(&self) -> Result<(Resources, Vec<String>), MissingResource> {
            let agent_dir = self.dir.path().join("agent");
            Resources::load(&self.options, &agent_dir, self.dir.path())
        }
    }

    #[test]
    fn the_nearest_wins_and_the_others_are_told_with_both_paths() {
        // resources.md §2, §13.3
        let mut home = Home::with(&[
            ".pi/agent/skills/one/SKILL.md",
            ".agents/skills/one/SKILL.md",
            "agent/skills/one/SKILL.md",
            "named/SKILL.md",
            ".pi/agent/prompts/t.md",
            "agent/prompts/t.md",
        ]);
        let (resources, warnings) = home.load().unwrap();
        let winner = resources.skill("one").unwrap();
        assert_eq!(winner.description, "agent/skills/one/SKILL.md");
        assert_eq!(
            resources.template("t").unwrap().description,
            "agent/prompts/t.md"
        );
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        assert!(warnings[0].contains(".agents/skills") && warnings[0].contains("agent/skills"));
        home.options.skills = vec!["named".into()];
        let (resources, _) = home.load().unwrap();
        assert_eq!(
            resources.skill("one").unwrap().description,
            "named/SKILL.md"
        );
    }

    #[test]
    fn the_same_file_twice_is_silent() {
        // resources.md §2
        let mut home = Home::with(&["agent/skills/one/SKILL.md", "agent/prompts/t.md"]);
        home.options.skills = vec!["agent/skills/one/SKILL.md".into(), "agent/skills".into()];
        home.options.templates = vec!["agent/prompts/t.md".into()];
        let (resources, warnings) = home.load().unwrap();
        assert_eq!(
            (resources.skills().len(), resources.templates().len()),
            (1, 1)
        );
        assert!(warnings.is_empty(), "{warnings:?}");
    }

    #[test]
    fn what_is_found_can_be_left_out_but_not_what_is_named() {
        // resources.md §2
        let mut home = Home::with(&["agent/skills/one/SKILL.md", "agent/prompts/t.md", "x.md"]);
        home.options.no_skills = true;
        home.options.no_templates = true;
        assert_eq!(home.load().unwrap().0, Resources::default());
        home.options.skills = vec!["x.md".into()];
        home.options.templates = vec!["x.md".into()];
        let (resources, _) = home.load().unwrap();
        assert_eq!(resources.skill("one").unwrap().description, "x.md");
        assert!(resources.template("x").is_some());
    }

    #[test]
    fn other_agents_folders_can_be_left_out() {
        let mut home = Home::with(&[".pi/agent/prompts/t.md", ".agents/skills/one/SKILL.md"]);
        home.options.no_pi = true;
        let (resources, _) = home.load().unwrap();
        assert!(resources.template("t").is_none() && resources.skill("one").is_some());
        home.options.home = None;
        assert_eq!(home.load().unwrap().0, Resources::default());
    }

    #[test]
    fn a_named_path_that_is_missing_is_an_error() {
        // resources.md §2
        let mut home = Home::with(&[]);
        home.options.templates = vec!["gone.md".into()];
        let error = home.load().unwrap_err().to_string();
        assert!(error.contains("gone.md, which the command line names as a prompt template"));
        home.options.templates.clear();
        home.options.skills = vec!["/dev/null".into()];
        assert!(home.load().is_err());
    }

    #[test]
    fn a_trusted_projects_come_before_the_users_and_pis_come_last() {
        // resources.md §2, §13.3; interfaces.md §3.1
        let mut home = Home::with(&[
            ".pi/agent/prompts/t.md",
            "p/.pi/prompts/t.md",
            "agent/prompts/t.md",
            "p/.pliant/prompts/t.md",
            "p/.agents/skills/one/SKILL.md",
            "agent/skills/one/SKILL.md",
        ]);
        let load = |options: &ResourceOptions| {
            let root = home.dir.path();
            Resources::load(options, &root.join("agent"), &root.join("p")).unwrap()
        };
        let of = |resources: &Resources| {
            let template = resources.template("t").unwrap();
            let skill = resources.skill("one").unwrap();
            (template.description.clone(), skill.description.clone())
        };
        let (untrusted, warnings) = load(&home.options);
        assert_eq!(of(&untrusted).0, "agent/prompts/t.md");
        assert_eq!(untrusted.template("t").unwrap().scope, Scope::User);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        home.options.project = true;
        let (trusted, warnings) = load(&home.options);
        let expected = ("p/.pliant/prompts/t.md", "p/.agents/skills/one/SKILL.md");
        assert_eq!(of(&trusted), (expected.0.to_owned(), expected.1.to_owned()));
        assert_eq!(trusted.skill("one").unwrap().scope, Scope::Project);
        assert_eq!(warnings.len(), 4, "{warnings:?}");
        assert!(warnings[2].contains("p/.pi/prompts"), "{warnings:?}");
    }

    #[test]
    fn skills_of_folders_above_count_up_to_the_root_of_the_repository() {
        // resources.md §4.1
        for (repository, counts) in [("", true), ("r/p", false), ("r", true)] {
            let mut home = Home::with(&["r/.agents/skills/one/SKILL.md", "r/p/x"]);
            if !repository.is_empty() {
                fs::create_dir(home.dir.path().join(repository).join(".git")).unwrap();
            }
            home.options.project = true;
            let root = home.dir.path();
            let (resources, _) =
                Resources::load(&home.options, &root.join("agent"), &root.join("r/p")).unwrap();
            assert_eq!(resources.skill("one").is_some(), counts, "{repository:?}");
        }
    }

    #[test]
    fn lists_of_the_settings_add_places_and_leave_out() {
        // resources.md §2
        let mut home = Home::with(&[
            "agent/skills/one/SKILL.md",
            "agent/prompts/t.md",
            "more/u.md",
        ]);
        let list = |entries: &[&str]| {
            let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
            let agent = home.dir.path().join("agent");
            vec![ResourceList::new(Scope::User, &agent, &entries, None)]
        };
        let (skills, templates) = (
            list(&["!one"]),
            list(&["../more", "../gone", "-prompts/t.md"]),
        );
        home.options.skill_lists = skills;
        home.options.template_lists = templates;
        let (resources, warnings) = home.load().unwrap();
        assert!(resources.skill("one").is_none() && resources.template("t").is_none());
        assert!(resources.template("u").is_some());
        assert!(warnings[0].contains("gone, which the settings list as a prompt template"));
    }
}
