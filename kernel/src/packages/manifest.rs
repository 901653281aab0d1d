//! What a package says of itself: `pliant.toml`, the `pi` key of `package.json`, or nothing, and then the
//! folders of the convention.

use std::fs;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use ignore::gitignore::GitignoreBuilder;
use pliant_sdk::Error;
use pliant_sdk::error::code;
use serde::Deserialize;
use serde_json::Value;

/// A manifest is a small file, bytes.
const LARGEST: u64 = 1 << 20;

/// What a glob is looked for in, folders deep.
const DEEPEST: usize = 8;

/// A package that is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version, if it says one.
    pub version: Option<String>,
    /// Its folder.
    pub folder: PathBuf,
    /// Files and folders of extensions.
    pub extensions: Vec<PathBuf>,
    /// Files and folders of skills.
    pub skills: Vec<PathBuf>,
    /// Files and folders of prompt templates.
    pub prompts: Vec<PathBuf>,
    /// Files and folders of themes.
    pub themes: Vec<PathBuf>,
    /// The command that makes what is not in it yet; run when the user installs it and at no other time.
    pub build: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Manifest {
    package: About,
    extensions: Option<Extensions>,
    skills: Option<Vec<String>>,
    prompts: Option<Vec<String>>,
    themes: Option<Vec<String>>,
    build: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct About {
    name: Option<String>,
    version: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Extensions {
    List(Vec<String>),
    Table { entries: Vec<String> },
}

impl Package {
    /// Reads the package in a folder. What is odd is told.
    ///
    /// # Errors
    /// `not_found` without the folder, `invalid` for a manifest that cannot be read.
    pub fn read(folder: &Path) -> Result<(Self, Vec<String>), Error> {
        let shown = folder.display();
        let folder = folder.canonicalize().ok().filter(|folder| folder.is_dir());
        let Some(folder) = folder else {
            let message = format!("There is no folder {shown}.");
            return Err(Error::new(code::NOT_FOUND, message));
        };
        let manifest = read(&folder).map_err(|why| {
            Error::invalid(format!("The package in {shown} cannot be read: {why}."))
        })?;
        let mut warnings = Vec::new();
        let mut listed = |kind: &str, entries: Option<Vec<String>>| match entries {
            Some(entries) => expand(&folder, &entries, &mut warnings),
            None => {
                let by_convention = folder.join(kind);
                Vec::from_iter(by_convention.is_dir().then_some(by_convention))
            }
        };
        let extensions = manifest.extensions.map(|extensions| match extensions {
            Extensions::List(entries) | Extensions::Table { entries } => entries,
        });
        let package = Self {
            extensions: listed("extensions", extensions),
            skills: listed("skills", manifest.skills),
            prompts: listed("prompts", manifest.prompts),
            themes: listed("themes", manifest.themes),
            name: manifest.package.name.unwrap_or_else(|| {
                let name = folder.file_name().unwrap_or_default();
                name.to_string_lossy().into_owned()
            }),
            version: manifest.package.version,
            build: manifest.build,
            folder,
        };
        Ok((package, warnings))
    }

    /// Whether it brings anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self {
            extensions,
            skills,
            prompts,
            themes,
            ..
        } = self;
        [extensions, skills, prompts, themes]
            .iter()
            .all(|list| list.is_empty())
    }
}

fn read(folder: &Path) -> Result<Manifest, String> {
    if let Some(text) = text_of(&folder.join("pliant.toml"))? {
        return toml::from_str(&text).map_err(|error| {
            let error = error.to_string();
            format!("pliant.toml: {}", error.trim().replace('\n', " "))
        });
    }
    let Some(text) = text_of(&folder.join("package.json"))? else {
        return Ok(Manifest::default());
    };
    let json: Value =
        serde_json::from_str(&text).map_err(|error| format!("package.json: {error}"))?;
    let text = |key: &str| json.get(key).and_then(Value::as_str).map(str::to_owned);
    let about = About {
        name: text("name"),
        version: text("version"),
    };
    let Some(pi) = json.get("pi") else {
        return Ok(Manifest {
            package: about,
            ..Manifest::default()
        });
    };
    let list = |key: &str| Vec::<String>::deserialize(pi.get(key)?).ok();
    Ok(Manifest {
        package: about,
        // Its programs are for another runtime.
        extensions: Some(Extensions::List(Vec::new())),
        skills: list("skills"),
        prompts: list("prompts"),
        themes: list("themes"),
        build: None,
    })
}

fn text_of(path: &Path) -> Result<Option<String>, String> {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    match fs::metadata(path) {
        Err(_) => return Ok(None),
        Ok(metadata) if !metadata.is_file() => return Err(format!("{name} is no file")),
        Ok(metadata) if metadata.len() > LARGEST => return Err(format!("{name} is too large")),
        Ok(_) => {}
    }
    let text = fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    Ok(Some(text))
}

/// Paths and globs of a manifest. What leads out of the package, by a link or otherwise, is none of its
/// own.
fn expand(folder: &Path, entries: &[String], warnings: &mut Vec<String>) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in entries {
        let found = match entry.contains(['*', '?', '[']) {
            true => matching(folder, entry),
            false => vec![folder.join(entry.trim_start_matches("./"))],
        };
        for path in found {
            match path.canonicalize() {
                Ok(real) if real.starts_with(folder) => all.push(path),
                Ok(_) => warnings.push(format!(
                    "\"{entry}\" of the package in {} leads out of it and is left out.",
                    folder.display()
                )),
                Err(_) => warnings.push(format!(
                    "\"{entry}\" of the package in {} is not there.",
                    folder.display()
                )),
            }
        }
    }
    all
}

fn matching(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut builder = GitignoreBuilder::new(folder);
    let anchored = format!(
        "/{}",
        pattern.trim_start_matches("./").trim_start_matches('/')
    );
    if builder.add_line(None, &anchored).is_err() {
        return Vec::new();
    }
    let Ok(pattern) = builder.build() else {
        return Vec::new();
    };
    let walk = WalkBuilder::new(folder)
        .standard_filters(false)
        .follow_links(false)
        .max_depth(Some(DEEPEST))
        .sort_by_file_path(Path::cmp)
        .build();
    let found = walk.flatten().filter(|entry| {
        let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        entry.depth() > 0 && pattern.matched(entry.path(), is_dir).is_ignore()
    });
    found.map(ignore::DirEntry::into_path).collect()
}
