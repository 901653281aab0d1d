//! Prompt templates: Markdown files whose name is a slash word (`resources.md` §5). The text is read
//! when it is used.

use std::path::{Path, PathBuf};

use super::frontmatter::{Document, DocumentError};
use super::places::Place;
use super::walk::Walk;
use crate::settings::Scope;

/// A template that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// The word behind the slash.
    pub name: String,
    /// What it is for, for lists of commands.
    pub description: String,
    /// What to say about its arguments there.
    pub argument_hint: Option<String>,
    /// Its text.
    pub file: PathBuf,
    /// Who brought it.
    pub scope: Scope,
}

impl Template {
    fn load(file: &Path, scope: Scope) -> Result<Self, DocumentError> {
        let document = Document::read(file)?;
        let described = document.text("description").map(str::to_owned);
        let hint = document.text("argument-hint").map(str::to_owned);
        Ok(Self {
            name: file
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into(),
            description: described.unwrap_or_else(|| first_line(&document.body)),
            argument_hint: hint,
            file: file.to_owned(),
            scope,
        })
    }
}

/// The templates of all places, which are folders or files, in order. What is wrong with one is told
/// in a sentence.
pub(super) fn find(places: &[Place], warnings: &mut Vec<String>) -> Vec<Template> {
    let mut walk = Walk::default();
    let mut templates = Vec::new();
    for place in places {
        for file in files(&place.path, &mut walk) {
            if !place.takes(&file) || !walk.meet(&file) {
                continue;
            }
            let loaded = match super::is_markdown(&file) {
                true => Template::load(&file, place.scope).map_err(|error| error.to_string()),
                false => Err("it is no Markdown file".to_owned()),
            };
            match loaded {
                Ok(template) => templates.push(template),
                Err(why) => warnings.push(format!(
                    "The prompt template {} is not loaded, because {why}.",
                    file.display()
                )),
            }
        }
    }
    if walk.was_cut() {
        let sentence = "There are so many files in the folders of prompt templates that not all were looked at.";
        warnings.push(sentence.to_owned());
    }
    templates
}

/// The file that the place is, or the Markdown files directly in it.
fn files(place: &Path, walk: &mut Walk) -> Vec<PathBuf> {
    if place.is_file() {
        return vec![place.to_owned()];
    }
    let Some(listing) = walk.enter(place) else {
        return Vec::new();
    };
    walk.leave();
    let mut files = listing.files;
    files.retain(|file| super::is_markdown(file));
    files
}

fn first_line(body: &str) -> String {
    const LIMIT: usize = 60;
    let mut lines = body.lines().map(str::trim);
    let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn find_in(files: &[(&str, &str)]) -> (Vec<Template>, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut warnings = Vec::new();
        let place = Place::found(dir.path().to_owned(), Scope::User);
        let templates = find(&[place], &mut warnings);
        (templates, warnings)
    }

    #[test]
    fn the_markdown_files_directly_in_the_folder_are_templates_named_after_them() {
        // P26
        let (templates, warnings) = find_in(&[
            ("review.md", "Review."),
            ("a.b.md", "X."),
            ("notes.txt", "No."),
            (".hidden.md", "No."),
            ("sub/deep.md", "No."),
        ]);
        let names: Vec<_> = templates.iter().map(|template| &template.name).collect();
        assert_eq!(names, ["a.b", "review"]);
        assert!(warnings.is_empty());
    }

    #[test]
    fn a_description_is_the_field_or_the_first_line_with_something_on_it() {
        // resources.md §5
        let long = "é".repeat(61);
        let (templates, _) = find_in(&[
            (
                "a.md",
                "---\ndescription: Said.\nargument-hint: <file>\n---\nBody",
            ),
            ("b.md", "\n\n  First line. \nSecond."),
            ("c.md", &long),
            ("d.md", ""),
        ]);
        let said: Vec<_> = templates
            .iter()
            .map(|template| template.description.as_str())
            .collect();
        let cut = format!("{}...", "é".repeat(60));
        assert_eq!(said, ["Said.", "First line.", &cut, ""]);
        assert_eq!(templates[0].argument_hint.as_deref(), Some("<file>"));
        assert_eq!(templates[1].argument_hint, None);
    }

    #[test]
    fn a_broken_template_is_told_and_the_others_are_there() {
        let (templates, warnings) =
            find_in(&[("bad.md", "---\na: b: c\n---\nX"), ("good.md", "Y")]);
        assert_eq!(templates.len(), 1);
        let [warning] = &warnings[..] else {
            panic!("{warnings:?}")
        };
        assert!(warning.contains("bad.md is not loaded, because its front matter"));
    }
}
