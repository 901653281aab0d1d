//! Skills, by the Agent Skills standard: a folder with `SKILL.md`, or a Markdown file with a
//! description. Only name, description and place are kept; the text is read when it is used
//! (`resources.md` §4).

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::frontmatter::Document;
use super::places::Place;
use super::walk::Walk;
use crate::settings::Scope;

/// A skill that can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// What it is called by.
    pub name: String,
    /// When it is good to use; the model sees it.
    pub description: String,
    /// Its text.
    pub file: PathBuf,
    /// Who brought it.
    pub scope: Scope,
    /// Only the user calls it; the model is not told of it.
    pub hidden: bool,
    /// All fields of its front matter, also those nobody enforces (`license`, `allowed-tools`, …).
    pub fields: Map<String, Value>,
}

impl Skill {
    /// What relative paths in its text begin at.
    #[must_use]
    pub fn base_dir(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new(""))
    }
}

/// Which Markdown files beside folders with `SKILL.md` count, if they have a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strays {
    /// Those directly in the place.
    AtRoot,
    /// Those in its folders.
    BelowRoot,
}

/// The skills of all places, in order. What is wrong with one is told in a sentence.
pub(super) fn find(places: &[Place], warnings: &mut Vec<String>) -> Vec<Skill> {
    let mut search = Search {
        walk: Walk::default(),
        skills: Vec::new(),
        warnings,
    };
    for place in places {
        search.place(place);
    }
    if search.walk.was_cut() {
        let sentence =
            "There are so many files in the folders of skills that not all were looked at.";
        search.warnings.push(sentence.to_owned());
    }
    search.skills
}

struct Search<'a> {
    walk: Walk,
    skills: Vec<Skill>,
    warnings: &'a mut Vec<String>,
}

/// What is asked of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// It says that it is a skill, so what is wrong with it is told.
    Declared,
    /// It may be something else.
    Stray,
}

impl Search<'_> {
    fn place(&mut self, place: &Place) {
        if !place.path.is_file() {
            self.folder(&place.path, place, 0);
        } else if super::is_markdown(&place.path) {
            self.take(&place.path, place, Claim::Declared);
        } else {
            self.refuse(&place.path, "it is no Markdown file");
        }
    }

    fn folder(&mut self, folder: &Path, place: &Place, depth: usize) {
        let Some(listing) = self.walk.enter(folder) else {
            return;
        };
        let declared = listing.files.iter().find(|file| file.ends_with("SKILL.md"));
        if let Some(file) = declared {
            self.take(file, place, Claim::Declared);
        } else {
            if (place.strays == Strays::AtRoot) == (depth == 0) {
                for file in listing.files.iter().filter(|file| super::is_markdown(file)) {
                    self.take(file, place, Claim::Stray);
                }
            }
            for folder in &listing.folders {
                self.folder(folder, place, depth + 1);
            }
        }
        self.walk.leave();
    }

    fn take(&mut self, file: &Path, place: &Place, claim: Claim) {
        if !place.takes(file) || !self.walk.meet(file) {
            return;
        }
        let refusal = match Document::read(file) {
            Ok(document) => match document.text("description") {
                Some(description) => {
                    let description = description.to_owned();
                    return self.add(file, place.scope, document, description);
                }
                None => "it has no description. Say in its front matter when to use it".to_owned(),
            },
            Err(error) => error.to_string(),
        };
        if claim == Claim::Declared {
            self.refuse(file, &refusal);
        }
    }

    fn add(&mut self, file: &Path, scope: Scope, document: Document, description: String) {
        let folder = file.parent().and_then(Path::file_name);
        let folder = folder.unwrap_or_default().to_string_lossy();
        let name = document.text("name").unwrap_or(&folder).to_owned();
        let wrong = [name_fault(&name), description_fault(&description)];
        for wrong in wrong.into_iter().flatten() {
            let file = file.display();
            self.warnings.push(format!("The skill {file} {wrong}."));
        }
        self.skills.push(Skill {
            name,
            description,
            file: file.to_owned(),
            scope,
            hidden: document.fields.get("disable-model-invocation") == Some(&Value::Bool(true)),
            fields: document.fields,
        });
    }

    fn refuse(&mut self, file: &Path, why: &str) {
        let file = file.display();
        self.warnings
            .push(format!("The skill {file} is not loaded, because {why}."));
    }
}

/// What the standard has against a name; the skill is loaded all the same.
fn name_fault(name: &str) -> Option<String> {
    const LIMIT: usize = 64;
    let length = name.chars().count();
    if length > LIMIT {
        return Some(format!(
            "has a name of {length} characters, more than the {LIMIT} that are allowed"
        ));
    }
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.chars().all(is_allowed) {
        return Some(format!(
            "is called \"{name}\", but names have only the letters a to z, digits and hyphens"
        ));
    }
    let hyphens = name.starts_with('-') || name.ends_with('-') || name.contains("--");
    hyphens.then(|| {
        format!("is called \"{name}\", but hyphens stand only between other letters of a name")
    })
}

fn description_fault(description: &str) -> Option<String> {
    const LIMIT: usize = 1024;
    let length = description.chars().count();
    (length > LIMIT).then(|| {
        format!("has a description of {length} characters, more than the {LIMIT} that are allowed")
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The skills of a folder with these files, and the warnings, with paths from the folder on.
    fn found(strays: Strays, files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        look(dir.path(), strays)
    }

    fn look(dir: &Path, strays: Strays) -> (Vec<String>, Vec<String>) {
        let place = Place {
            strays,
            ..Place::found(dir.to_owned(), Scope::User)
        };
        let mut warnings = Vec::new();
        let skills = find(&[place], &mut warnings);
        let root = format!("{}/", dir.display());
        let names = skills.into_iter().map(|skill| skill.name).collect();
        let warnings = warnings.iter().map(|text| text.replace(&root, ""));
        (names, warnings.collect())
    }

    fn skill(name: &str) -> String {
        format!("---\nname: {name}\ndescription: For {name}.\n---\nDo it.")
    }

    #[test]
    fn below_a_skill_there_is_no_other() {
        // resources.md §4.1
        let (names, warnings) = found(
            Strays::AtRoot,
            &[
                ("a/SKILL.md", &skill("a")),
                ("a/inner/SKILL.md", &skill("inner")),
                ("a/stray.md", &skill("stray")),
                ("group/b/SKILL.md", &skill("b")),
            ],
        );
        assert_eq!(names, ["a", "b"]);
        assert!(warnings.is_empty(), "{warnings:?}");
    }

    #[test]
    fn stray_files_count_with_a_description_at_the_root_or_below_it() {
        // resources.md §4.1
        let files = [
            ("root.md", &*skill("root")),
            ("README.md", "# No skill"),
            ("broken.md", "---\na: b: c\n---\n"),
            ("below/deep.md", &skill("deep")),
            ("below/notes.txt", &skill("notes")),
        ];
        for (strays, name) in [(Strays::AtRoot, "root"), (Strays::BelowRoot, "deep")] {
            let (names, warnings) = found(strays, &files);
            assert_eq!(names, [name]);
            assert!(warnings.is_empty(), "{warnings:?}");
        }
    }

    #[test]
    fn hidden_and_ignored_files_are_passed_by() {
        // resources.md §2
        let (names, _) = found(
            Strays::AtRoot,
            &[
                (".gitignore", "draft\n/top.md\n"),
                ("top.md", &skill("top")),
                ("draft/SKILL.md", &skill("draft")),
                (".old/SKILL.md", &skill("old")),
                ("node_modules/m/SKILL.md", &skill("m")),
                ("group/.ignore", "/*\n!kept\n"),
                ("group/kept/SKILL.md", &skill("kept")),
                ("group/lost/SKILL.md", &skill("lost")),
                ("half/.fdignore", "SKILL.md\n"),
                ("half/SKILL.md", &skill("half")),
                ("half/inner/SKILL.md", &skill("inner")),
                ("other/top.md/SKILL.md", &skill("deep-top")),
            ],
        );
        assert_eq!(names, ["kept", "deep-top"]);
    }

    #[test]
    fn a_skill_without_a_description_is_told_and_not_loaded() {
        // resources.md §4.2
        let (names, warnings) = found(
            Strays::AtRoot,
            &[
                ("a/SKILL.md", "Just text."),
                ("b/SKILL.md", "---\nname: b\ndescription: '  '\n---\n"),
                ("c/SKILL.md", "---\ndescription: [\n---\n"),
                ("d/SKILL.md", &skill("d")),
            ],
        );
        assert_eq!(names, ["d"]);
        assert_eq!(warnings.len(), 3);
        assert_eq!(
            warnings[0],
            "The skill a/SKILL.md is not loaded, because it has no description. Say in its front matter when to use it."
        );
        assert!(warnings[2].starts_with(
            "The skill c/SKILL.md is not loaded, because its front matter is not valid YAML: "
        ));
    }

    #[test]
    fn names_and_descriptions_against_the_standard_are_told_and_loaded() {
        // resources.md §4.2
        let long = "x".repeat(65);
        let wordy = format!("---\ndescription: {}\n---\n", "y".repeat(1025));
        let cases = [
            ("fine-2", None),
            (&*long, Some("has a name of 65 characters")),
            ("Shout", Some("is called \"Shout\", but names have only")),
            ("a_b", Some("names have only")),
            ("-a", Some("hyphens stand only between")),
            ("a-", Some("hyphens stand only between")),
            ("a--b", Some("hyphens stand only between")),
        ];
        for (name, fault) in cases {
            let (names, warnings) = found(Strays::AtRoot, &[("s/SKILL.md", &skill(name))]);
            assert_eq!(names, [name]);
            match fault {
                None => assert!(warnings.is_empty(), "{warnings:?}"),
                Some(fault) => assert!(warnings[0].contains(fault), "{warnings:?}"),
            }
        }
        let (names, warnings) = found(Strays::AtRoot, &[("folder-name/SKILL.md", &wordy)]);
        assert_eq!(names, ["folder-name"]);
        assert!(warnings[0].contains("a description of 1025 characters"));
    }

    #[test]
    fn only_a_plain_true_hides_a_skill_from_the_model() {
        // resources.md §4.2
        for (word, hidden) in [("true", true), ("\"true\"", false), ("yes", false)] {
            let dir = tempfile::tempdir().unwrap();
            let text = format!(
                "---\ndescription: D.\ndisable-model-invocation: {word}\nmetadata:\n  a: b\n---\n"
            );
            fs::write(dir.path().join("SKILL.md"), text).unwrap();
            let place = Place::found(dir.path().to_owned(), Scope::User);
            let skills = find(&[place], &mut Vec::new());
            assert_eq!(skills[0].hidden, hidden, "{word}");
            assert_eq!(skills[0].fields["metadata"]["a"], "b");
            assert_eq!(skills[0].base_dir(), dir.path());
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_once_and_circles_and_pipes_end_nothing() {
        // resources.md §2, §13.1
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("skills");
        let elsewhere = dir.path().join("elsewhere");
        for folder in [&root.join("loop"), &root.join("pipe"), &elsewhere] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(elsewhere.join("SKILL.md"), skill("linked")).unwrap();
        symlink(&elsewhere, root.join("one")).unwrap();
        symlink(&elsewhere, root.join("two")).unwrap();
        symlink(&root, root.join("loop/again")).unwrap();
        symlink("nowhere", root.join("broken")).unwrap();
        for pipe in ["pipe/SKILL.md", "pipe/.gitignore", "pipe/stray.md"] {
            let path = std::ffi::CString::new(root.join(pipe).to_str().unwrap()).unwrap();
            rustix::fs::mknodat(
                rustix::fs::CWD,
                &path,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RUSR,
                0,
            )
            .unwrap();
        }
        let (names, warnings) = look(&root, Strays::AtRoot);
        assert_eq!(names, ["linked"]);
        assert!(warnings.is_empty(), "{warnings:?}");
    }

    #[test]
    fn files_that_are_too_large_or_no_text_are_told() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("large", vec![b'x'; 2 << 20]), ("binary", vec![0xff; 9])] {
            fs::create_dir(dir.path().join(name)).unwrap();
            fs::write(dir.path().join(name).join("SKILL.md"), text).unwrap();
        }
        let (names, warnings) = look(dir.path(), Strays::AtRoot);
        assert!(names.is_empty());
        assert!(warnings[0].contains("cannot be read"), "{warnings:?}");
        assert!(warnings[1].contains("larger than 1 MB"), "{warnings:?}");
    }

    #[test]
    fn there_is_an_end_to_looking() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join(["d"; 40].join("/"));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("SKILL.md"), skill("deep")).unwrap();
        for number in 0..1_100 {
            fs::write(dir.path().join(format!("{number}.md")), skill("x")).unwrap();
        }
        let (names, warnings) = look(dir.path(), Strays::AtRoot);
        assert_eq!(names.len(), 1_000);
        assert!(warnings[0].contains("not all were looked at"));
    }

    #[test]
    fn a_folder_that_is_missing_holds_nothing() {
        let gone = look(Path::new("/nonexistent/skills"), Strays::AtRoot);
        assert_eq!(gone, (Vec::new(), Vec::new()));
    }

    /// Where pliant and the reference library of the standard (npm `skills-ref` 0.1.5) do not say the same of
    /// a skill, with the reason. All else of the fixture is judged alike.
    const OTHERWISE: [(&str, bool, &str); 12] = [
        (
            "bom",
            true,
            "a byte order mark is no reason to refuse a file (resources §3)",
        ),
        (
            "empty-name",
            true,
            "an empty name is none, so the folder names it",
        ),
        (
            "invocation",
            true,
            "a field that pliant and pi know (resources §4.2)",
        ),
        (
            "long-compat",
            true,
            "kept and not enforced (resources §4.2)",
        ),
        ("no-name", true, "the folder names it (resources §4.2)"),
        (
            "number-name",
            true,
            "the folder may have another name (resources §4.2)",
        ),
        (
            "other",
            true,
            "the folder may have another name (resources §4.2)",
        ),
        ("unknown", true, "unknown fields are kept (resources §4.2)"),
        (
            "anchor",
            false,
            "references are not followed: a few bytes could become gigabytes",
        ),
        (
            "bomb",
            false,
            "references are not followed: a few bytes could become gigabytes",
        ),
        ("list-description", false, "a list is no text"),
        ("null-description", false, "nothing is no description"),
    ];

    #[test]
    fn skills_are_judged_as_the_reference_library_does_or_for_a_reason() {
        let fixture = include_str!("../../../tests/fixtures/skills/reference.json");
        let cases: Vec<Value> = serde_json::from_str(fixture).unwrap();
        assert!(cases.len() > 40);
        let mut otherwise = Vec::new();
        for case in &cases {
            let text = |field: &str| case[field].as_str().unwrap();
            let file = format!("{}/SKILL.md", text("folder"));
            let (skills, warnings) = found(Strays::AtRoot, &[(&file, text("text"))]);
            let valid = skills.len() == 1 && warnings.is_empty();
            if case["valid"] != valid {
                otherwise.push((text("folder"), valid));
            }
        }
        otherwise.sort_unstable_by_key(|(folder, valid)| (!valid, *folder));
        assert_eq!(
            otherwise,
            OTHERWISE.map(|(folder, valid, _)| (folder, valid))
        );
    }
}
