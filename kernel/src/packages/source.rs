//! Where a package comes from: a folder, or a repository of git.

use std::path::{Component, Path, PathBuf};

use pliant_sdk::Error;

/// The source of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A folder, which is used in place; absolute.
    Folder(PathBuf),
    /// A repository.
    Git(GitSource),
}

/// A repository of git, with or without a tag, branch or commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSource {
    /// What git is given.
    pub url: String,
    /// The tag, branch or commit wanted; `None` is what the repository says.
    pub reference: Option<String>,
    /// Host and path, which name its folder.
    place: PathBuf,
}

/// What a URL may begin with.
const SCHEMES: [&str; 4] = ["https://", "http://", "ssh://", "file://"];

impl Source {
    /// Reads a source. Relative paths begin in `base`.
    ///
    /// # Errors
    /// `invalid`, with what would be one.
    pub fn parse(written: &str, base: &Path, home: Option<&Path>) -> Result<Self, Error> {
        let text = written.trim();
        let refused = |why: &str| {
            Err(Error::invalid(format!(
                "The package \"{}\" cannot be used: {why}.",
                without_secret(text)
            )))
        };
        if text.is_empty() || text.starts_with('-') || text.chars().any(char::is_control) {
            return refused("its source is no path and no URL");
        }
        if text.starts_with("npm:") {
            return refused(
                "packages of npm are programs for another runtime; take its repository, as git:URL, if only skills, prompts or themes are wanted",
            );
        }
        if let Some(url) = text.strip_prefix("git:") {
            return git(url, true).or_else(|why| refused(&why));
        }
        if SCHEMES.iter().any(|scheme| text.starts_with(scheme)) || text.starts_with("git@") {
            return git(text, false).or_else(|why| refused(&why));
        }
        if text.contains("://") || text.contains("::") {
            return refused("only https, http, ssh and file are fetched from");
        }
        let path = match (text.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => base.join(text),
        };
        Ok(Self::Folder(normal(&path)))
    }

    /// What two sources of one package have in common: the folder, or the URL without a version.
    #[must_use]
    pub fn identity(&self) -> String {
        match self {
            Self::Folder(path) => path.display().to_string(),
            Self::Git(git) => format!("git:{}", git.place.display()),
        }
    }

    /// Where its files are, or will be.
    #[must_use]
    pub fn folder(&self, agent_dir: &Path) -> PathBuf {
        match self {
            Self::Folder(path) => path.clone(),
            Self::Git(git) => agent_dir.join("packages").join("git").join(&git.place),
        }
    }
}

fn git(text: &str, by_prefix: bool) -> Result<Source, String> {
    let scheme = SCHEMES.iter().find(|scheme| text.starts_with(**scheme));
    if text.starts_with('-') || text.contains("::") {
        return Err("its URL is one that git would take for something else".to_owned());
    }
    let (scheme, rest) = match scheme {
        Some(scheme) => (*scheme, &text[scheme.len()..]),
        None if text.starts_with("git@") => ("", text),
        None if by_prefix && !text.contains("://") => ("https://", text),
        None => return Err("only https, http, ssh and file are fetched from".to_owned()),
    };
    // The version is behind an @ in the path; one before that belongs to the host.
    let path_at = match scheme {
        "" => rest.find(':'),
        "file://" => Some(0),
        _ => rest.find('/'),
    };
    let path_at = path_at.ok_or("its URL has no path")?;
    let (host, path) = rest.split_at(path_at);
    let (path, reference) = match path.rsplit_once('@') {
        Some((path, reference)) if !path.is_empty() => (path, Some(reference.to_owned())),
        _ => (path, None),
    };
    if reference.as_ref().is_some_and(|name| !is_reference(name)) {
        return Err("what stands behind the @ is no name of a tag, branch or commit".to_owned());
    }
    if scheme.starts_with("http") && host.contains('@') {
        return Err("a URL with a name or password would be kept in plain text; let git's credential helper know them instead".to_owned());
    }
    let host_name = host.rsplit('@').next().unwrap_or_default();
    let host_name = host_name.replace(':', "_");
    let inner = path.trim_start_matches([':', '/']).trim_end_matches('/');
    let inner = inner.strip_suffix(".git").unwrap_or(inner);
    let place = Path::new(match &*host_name {
        "" => "local",
        name => name,
    })
    .join(inner);
    let is_plain = |part: Component<'_>| match part {
        Component::Normal(part) => part != ".git",
        _ => false,
    };
    if inner.is_empty() || !place.components().all(is_plain) {
        return Err("its path leads nowhere".to_owned());
    }
    Ok(Source::Git(GitSource {
        url: format!("{scheme}{host}{path}"),
        reference,
        place,
    }))
}

fn is_reference(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._/-+".contains(c);
    !name.is_empty()
        && name.chars().all(plain)
        && !name.starts_with(['-', '/'])
        && !name.contains("..")
}

/// For messages: what stands before an @ of a URL may be a password.
fn without_secret(text: &str) -> String {
    match (text.find("://"), text.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme && text[scheme + 3..at].contains(':') => {
            format!("{}…{}", &text[..scheme + 3], &text[at..])
        }
        _ => text.to_owned(),
    }
}

/// Without `.` and `..`, as far as that can be told from the path alone.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            part => normal.push(part),
        }
    }
    normal
}
