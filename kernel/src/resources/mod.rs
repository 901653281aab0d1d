//! What is contributed by files of a convention: skills and prompt templates. Places come in, in the
//! order of their precedence; what can be used comes out, with sentences about what cannot.
//!
//! Places, nearest first; on equal names the first wins (`resources.md` §2): the command line, the
//! user's directory, the folder that agents share (`~/.agents`), pi's directory. A project's own
//! resources need trust, which this version cannot give, so they are not looked at.

mod frontmatter;
mod walk;

mod skills;
mod templates;

mod arguments;
mod block;

use std::path::{Path, PathBuf};

use thiserror::Error;

pub use arguments::{split_arguments, substitute};
pub use block::SkillBlock;
pub use frontmatter::{Document, DocumentError};
pub use skills::Skill;
pub use templates::Template;

use skills::{Place, Strays};

/// Which resources are wanted beside those that are found.
#[derive(Debug, Clone, Default)]
pub struct ResourceOptions {
    /// Skills named on the command line: files or folders.
    pub skills: Vec<PathBuf>,
    /// Only those.
    pub no_skills: bool,
    /// Prompt templates named on the command line: files or folders.
    pub templates: Vec<PathBuf>,
    /// Only those.
    pub no_templates: bool,
    /// The user's home, with the folders of other agents; `None` leaves those out.
    pub home: Option<PathBuf>,
    /// Leave pi's directory out.
    pub no_pi: bool,
}

/// What is there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Resources {
    skills: Vec<Skill>,
    templates: Vec<Template>,
}

/// A path on the command line that is not there.
#[derive(Debug, Error)]
#[error("There is no file or folder {}, which the command line names as a {kind}.", path.display())]
pub struct MissingResource {
    kind: &'static str,
    path: PathBuf,
}

impl Resources {
    /// Looks for all resources. What is broken is a sentence beside them.
    ///
    /// # Errors
    /// When a path named on the command line does not exist.
    pub fn load(
        options: &ResourceOptions,
        agent_dir: &Path,
        cwd: &Path,
    ) -> Result<(Self, Vec<String>), MissingResource> {
        let mut warnings = Vec::new();
        let skills = skill_places(options, agent_dir, cwd)?;
        let skills = skills::find(&skills, &mut warnings);
        let templates = template_places(options, agent_dir, cwd)?;
        let templates = templates::find(&templates, &mut warnings);
        let resources = Self {
            skills: first_of_each("skill", skills, &mut warnings, |skill| {
                (&skill.name, &skill.file)
            }),
            templates: first_of_each("prompt template", templates, &mut warnings, |template| {
                (&template.name, &template.file)
            }),
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
}

fn skill_places(
    options: &ResourceOptions,
    agent_dir: &Path,
    cwd: &Path,
) -> Result<Vec<Place>, MissingResource> {
    let place = |path, strays| Place { path, strays };
    let named = named("skill", &options.skills, cwd)?;
    let mut places: Vec<Place> = named.map(|path| place(path, Strays::AtRoot)).collect();
    if options.no_skills {
        return Ok(places);
    }
    places.push(place(agent_dir.join("skills"), Strays::AtRoot));
    if let Some(home) = &options.home {
        places.push(place(home.join(".agents/skills"), Strays::BelowRoot));
    }
    places.extend(pi_dir(options).map(|pi| place(pi.join("skills"), Strays::AtRoot)));
    Ok(places)
}

fn template_places(
    options: &ResourceOptions,
    agent_dir: &Path,
    cwd: &Path,
) -> Result<Vec<PathBuf>, MissingResource> {
    let mut places: Vec<PathBuf> = named("prompt template", &options.templates, cwd)?.collect();
    if options.no_templates {
        return Ok(places);
    }
    places.push(agent_dir.join("prompts"));
    places.extend(pi_dir(options).map(|pi| pi.join("prompts")));
    Ok(places)
}

/// Pi's directory, which is only read (`interfaces.md` §3.1).
fn pi_dir(options: &ResourceOptions) -> Option<PathBuf> {
    let home = options.home.as_ref().filter(|_| !options.no_pi);
    home.map(|home| home.join(".pi/agent"))
}

fn named(
    kind: &'static str,
    paths: &[PathBuf],
    cwd: &Path,
) -> Result<impl Iterator<Item = PathBuf>, MissingResource> {
    let paths: Vec<PathBuf> = paths.iter().map(|path| cwd.join(path)).collect();
    // A pipe or a device is neither.
    match paths.iter().find(|path| !path.is_file() && !path.is_dir()) {
        Some(path) => Err(MissingResource {
            kind,
            path: path.clone(),
        }),
        None => Ok(paths.into_iter()),
    }
}

/// On equal names the first wins, and the others are told.
fn first_of_each<T>(
    kind: &str,
    all: Vec<T>,
    warnings: &mut Vec<String>,
    key: impl Fn(&T) -> (&String, &PathBuf),
) -> Vec<T> {
    let mut kept: Vec<T> = Vec::with_capacity(all.len());
    for one in all {
        let (name, file) = key(&one);
        match kept.iter().map(&key).find(|(other, _)| *other == name) {
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
}
