use std::fs;
use std::path::PathBuf;

use serde_json::json;
use tempfile::TempDir;

use super::*;

fn parsed(text: &str) -> Result<Source, String> {
    let home = Some(Path::new("/home/u"));
    Source::parse(text, Path::new("/base"), home).map_err(|error| error.message)
}

#[test]
fn a_source_is_a_folder_or_a_repository() {
    // resources §9
    for (text, folder) in [
        ("./a", "/base/a"),
        ("../b", "/b"),
        ("/c/../d/", "/d"),
        ("~/e", "/home/u/e"),
    ] {
        assert_eq!(parsed(text), Ok(Source::Folder(folder.into())), "{text}");
    }
    for (text, url, reference, place) in [
        (
            "git:example.com/u/r",
            "https://example.com/u/r",
            None,
            "example.com/u/r",
        ),
        (
            "git:example.com/u/r@v1.0",
            "https://example.com/u/r",
            Some("v1.0"),
            "example.com/u/r",
        ),
        (
            "https://example.com/u/r.git@main",
            "https://example.com/u/r.git",
            Some("main"),
            "example.com/u/r",
        ),
        (
            "git@example.com:u/r.git",
            "git@example.com:u/r.git",
            None,
            "example.com/u/r",
        ),
        (
            "git:git@example.com:u/r@a/b",
            "git@example.com:u/r",
            Some("a/b"),
            "example.com/u/r",
        ),
        (
            "ssh://git@example.com:2222/u/r",
            "ssh://git@example.com:2222/u/r",
            None,
            "example.com_2222/u/r",
        ),
        ("file:///srv/r", "file:///srv/r", None, "local/srv/r"),
    ] {
        let Ok(Source::Git(git)) = parsed(text) else {
            panic!("{text}: {:?}", parsed(text));
        };
        assert_eq!(
            (git.url.as_str(), git.reference.as_deref()),
            (url, reference),
            "{text}"
        );
        let folder = Source::Git(git).folder(Path::new("/agent"));
        assert_eq!(
            folder,
            Path::new("/agent/packages/git").join(place),
            "{text}"
        );
    }
}

#[test]
fn hostile_sources_are_refused_in_a_sentence() {
    // issue "Everything a user writes", Bad input
    for (text, part) in [
        ("", "no path and no URL"),
        ("-x", "no path and no URL"),
        ("--upload-pack=touch x", "no path and no URL"),
        ("a\nb", "no path and no URL"),
        ("npm:thing", "another runtime"),
        ("ext::sh -c x", "only https"),
        ("git:ext::sh -c x", "take for something else"),
        ("git:-oProxyCommand=x", "take for something else"),
        ("git:ftp://x/y", "only https"),
        ("ftp://x/y", "only https"),
        ("https://u:secret@example.com/r", "plain text"),
        ("https://token@example.com/r", "plain text"),
        ("https://example.com/../../r", "leads nowhere"),
        ("git:example.com/a/.git/hooks", "leads nowhere"),
        ("https://example.com/", "leads nowhere"),
        ("https://example.com", "no path"),
        ("git:example.com/u/r@-x", "no name of a tag"),
        ("git:example.com/u/r@a..b", "no name of a tag"),
    ] {
        let error = parsed(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
}

#[test]
fn of_one_source_there_is_one_identity_whatever_its_version() {
    let identity = |text: &str| parsed(text).unwrap().identity();
    assert_eq!(
        identity("git:example.com/u/r@v1"),
        identity("https://example.com/u/r.git@main")
    );
    assert_eq!(identity("./a"), identity("/base/a/"));
    assert_ne!(
        identity("git:example.com/u/r"),
        identity("git:example.com/u/s")
    );
}

struct Folder(TempDir);

impl Folder {
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (path, text) in files {
            let file = folder.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        folder
    }

    /// As the package itself sees it.
    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn short(&self, paths: &[PathBuf]) -> Vec<String> {
        let root = self.path();
        let short = |path: &PathBuf| path.strip_prefix(&root).unwrap().display().to_string();
        paths.iter().map(short).collect()
    }
}

#[test]
fn a_package_says_what_it_brings_or_has_the_folders_of_the_convention() {
    // resources §2.1, §9
    let plain = Folder::with(&[
        ("skills/a/SKILL.md", ""),
        ("prompts/p.md", ""),
        ("other/x", ""),
    ]);
    let (package, odd) = Package::read(&plain.path()).unwrap();
    assert_eq!(
        (plain.short(&package.skills), plain.short(&package.prompts)),
        (vec!["skills".to_owned()], vec!["prompts".to_owned()])
    );
    assert!(package.extensions.is_empty() && odd.is_empty());

    let manifest = r#"
        skills = ["know/*", "gone"]
        prompts = []
        build = "make"
        [package]
        name = "mine"
        version = "0.2.0"
        [extensions]
        entries = ["main.rhai"]
    "#;
    let own = Folder::with(&[
        ("pliant.toml", manifest),
        ("main.rhai", ""),
        ("know/a/SKILL.md", ""),
        ("know/b/SKILL.md", ""),
        ("prompts/p.md", ""),
    ]);
    let (package, odd) = Package::read(&own.path()).unwrap();
    assert_eq!(
        (package.name.as_str(), package.version.as_deref()),
        ("mine", Some("0.2.0"))
    );
    assert_eq!(own.short(&package.skills), ["know/a", "know/b"]);
    assert_eq!(own.short(&package.extensions), ["main.rhai"]);
    assert!(package.prompts.is_empty());
    assert_eq!(package.build.as_deref(), Some("make"));
    assert!(odd[0].contains("\"gone\""), "{odd:?}");

    let pi =
        json!({"name": "p", "version": "1.0.0", "pi": {"skills": ["s"], "extensions": ["x.ts"]}});
    let pi = Folder::with(&[
        ("package.json", &pi.to_string()),
        ("s/SKILL.md", ""),
        ("x.ts", ""),
    ]);
    let (package, _) = Package::read(&pi.path()).unwrap();
    assert_eq!(pi.short(&package.skills), ["s"]);
    assert!(package.extensions.is_empty());
}

#[test]
fn a_manifest_that_cannot_be_read_or_leads_out_is_told() {
    let broken = Folder::with(&[("pliant.toml", "skills = [")]);
    let error = Package::read(&broken.path()).unwrap_err();
    assert!(error.message.contains("pliant.toml: "), "{error}");
    let error = Package::read(Path::new("/nowhere/at/all")).unwrap_err();
    assert!(error.message.contains("no folder"), "{error}");
    let outside = Folder::with(&[("secret.md", "")]);
    let hostile = Folder::with(&[(
        "pliant.toml",
        "prompts = [\"../..\", \"/etc\", \"link.md\"]",
    )]);
    std::os::unix::fs::symlink(
        outside.path().join("secret.md"),
        hostile.path().join("link.md"),
    )
    .unwrap();
    let (package, odd) = Package::read(&hostile.path()).unwrap();
    assert!(package.prompts.is_empty(), "{package:?}");
    assert_eq!(
        odd.iter().filter(|said| said.contains("leads out")).count(),
        3,
        "{odd:?}"
    );
}

fn settings(user: serde_json::Value, project: serde_json::Value) -> (TempDir, Settings) {
    let dir = tempfile::tempdir().unwrap();
    for (folder, list) in [("agent", user), ("p/.pliant", project)] {
        fs::create_dir_all(dir.path().join(folder)).unwrap();
        let text = json!({ KEY: list }).to_string();
        fs::write(dir.path().join(folder).join("settings.json"), text).unwrap();
    }
    let (settings, _) = Settings::load(&dir.path().join("agent"));
    let (settings, _) = settings.with_project(&dir.path().join("p"));
    (dir, settings)
}

#[test]
fn a_projects_entry_replaces_the_users_or_narrows_it() {
    // resources §9
    let user = json!(["git:x.example/a@v1", {"source": "git:x.example/b", "skills": ["one"]}]);
    let project = json!([{"source": "git:x.example/a@v2", "prompts": []}, {"source": "git:x.example/b", "autoload": false, "prompts": []}]);
    let (_dir, settings) = settings(user, project);
    let (all, odd) = entries(&settings, None);
    assert!(odd.is_empty(), "{odd:?}");
    let written: Vec<&str> = all.iter().map(|entry| &*entry.written).collect();
    assert_eq!(written, ["git:x.example/a@v2", "git:x.example/b"]);
    assert_eq!((all[0].scope, all[1].scope), (Scope::Project, Scope::User));
    assert_eq!(all[0].filters.prompts, Some(Vec::new()));
    assert_eq!(
        (&all[1].filters.skills, &all[1].filters.prompts),
        (&Some(vec!["one".to_owned()]), &Some(Vec::new()))
    );
}

#[test]
fn odd_entries_are_told_and_the_others_count() {
    let user = json!([7, {"skills": []}, "npm:x", "git:x.example/a"]);
    let (_dir, settings) = settings(user, json!("no list"));
    let (all, odd) = entries(&settings, None);
    assert_eq!(all.len(), 1);
    assert_eq!(odd.len(), 4, "{odd:?}");
}

#[test]
fn filters_choose_among_what_a_package_brings() {
    let folder = Folder::with(&[
        ("skills/a/SKILL.md", ""),
        ("skills/b/SKILL.md", ""),
        ("prompts/p.md", ""),
    ]);
    let taken = |filters: serde_json::Value| {
        let entry = Entry {
            scope: Scope::User,
            written: "x".to_owned(),
            source: Source::Folder(folder.path()),
            filters: serde_json::from_value(filters).unwrap(),
        };
        let (places, odd) = places_of(&[entry], Path::new("/agent"));
        assert!(odd.is_empty(), "{odd:?}");
        let skills =
            ["a", "b"].map(|name| folder.path().join("skills").join(name).join("SKILL.md"));
        let takes = |file: &PathBuf| places.skills.iter().any(|place| place.takes(file));
        (skills.map(|file| takes(&file)), places.prompts.len())
    };
    assert_eq!(taken(json!({})), ([true, true], 1));
    assert_eq!(taken(json!({"skills": []})), ([false, false], 1));
    assert_eq!(
        taken(json!({"skills": ["skills/a"], "prompts": []})),
        ([true, false], 0)
    );
    assert_eq!(taken(json!({"skills": ["!skills/a"]})), ([false, true], 1));
    assert_eq!(
        taken(json!({"skills": ["skills/b", "-skills/b"]})),
        ([false, false], 1)
    );
}
