//! The rules of `style.md` that can be checked: which crate and which module may use which, what
//! lies where, what is left over. The rules are the tables; what is below them only applies them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pliant_tests::workspace;

/// What the top folder may hold, beside dotfiles.
const TOP: &[&str] = &[
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "kernel",
    "plugins",
    "scripts",
    "tests",
    "tui",
];

/// Each crate's folder, and the workspace's crates that it may use. The first match counts.
const CRATES: &[(&str, &[&str])] = &[
    ("tui", &["pliant-scripts", "pliant-kernel", "pliant-sdk"]),
    ("scripts", &["pliant-kernel", "pliant-sdk"]),
    ("kernel", &["pliant-sdk", "pliant-abi"]),
    ("plugins/sdk", &["pliant-abi"]),
    ("plugins/abi", &[]),
    ("plugins/*", &["pliant-sdk"]),
    ("tests/plugins/*", &["pliant-sdk"]),
    ("tests", &["pliant-abi", "pliant-sdk"]),
];

/// The harness holds rules and histories that the tests of the other crates use too. Nothing that
/// ships may use it.
const FOR_TESTS: &str = "pliant-tests";

/// Libraries with a place of their own: who else uses one has the wrong job.
const LIBRARIES: &[(&str, &[&str])] = &[
    ("abi_stable", &["plugins/abi"]),
    ("anyhow", &["tui", "tests"]),
    ("clap", &["tui"]),
    ("clap_complete", &["tui"]),
    ("crossterm", &["tui"]),
    ("ratatui", &["tui"]),
    ("reqwest", &["kernel"]),
    ("rhai", &["scripts"]),
    ("tokio", &["kernel", "scripts", "tui", "plugins/mcp"]),
];

/// The kernel's modules from the bottom up, and the other modules each may use. Everything may use
/// the SDK; nobody may use what stands further down in this table.
const MODULES: &[(&str, &[&str])] = &[
    ("agent", &[]),
    ("tree", &[]),
    ("export", &["tree"]),
    ("registry", &[]),
    ("digest", &[]),
    ("watch", &["digest"]),
    ("dev", &["watch"]),
    ("textfile", &[]),
    ("near", &[]),
    ("theme", &["near"]),
    ("environment", &[]),
    ("jsonfile", &["textfile"]),
    ("keys", &["near", "jsonfile", "watch"]),
    ("reload", &["registry", "digest", "jsonfile", "watch"]),
    ("settings", &["textfile", "jsonfile"]),
    ("trust", &["settings", "jsonfile", "digest"]),
    ("packages", &["settings"]),
    (
        "host",
        &["registry", "settings", "environment", "digest", "jsonfile"],
    ),
    ("dylib", &["registry", "host", "settings", "digest"]),
    (
        "resources",
        &[
            "registry", "textfile", "settings", "watch", "theme", "packages",
        ],
    ),
    (
        "models",
        &[
            "agent",
            "registry",
            "host",
            "settings",
            "environment",
            "textfile",
        ],
    ),
    (
        "prompt",
        &["registry", "resources", "settings", "textfile", "watch"],
    ),
    ("compaction", &["tree", "agent", "settings"]),
    (
        "run",
        &[
            "compaction",
            "tree",
            "agent",
            "registry",
            "host",
            "models",
            "prompt",
            "settings",
        ],
    ),
    (
        "pipeline",
        &["registry", "resources", "host", "models", "settings"],
    ),
    (
        "session",
        &[
            "pipeline",
            "run",
            "compaction",
            "export",
            "tree",
            "agent",
            "registry",
            "host",
            "models",
            "prompt",
            "reload",
            "resources",
            "settings",
            "theme",
            "watch",
        ],
    ),
    (
        "boot",
        &[
            "session",
            "pipeline",
            "run",
            "compaction",
            "tree",
            "agent",
            "registry",
            "host",
            "models",
            "prompt",
            "resources",
            "settings",
            "environment",
            "trust",
            "textfile",
            "packages",
            "theme",
            "keys",
            "dylib",
            "digest",
            "dev",
            "reload",
            "watch",
        ],
    ),
];

/// What belongs to the process, not to the kernel in it, and the kernel's files that may look at it. All
/// else is told them (`interfaces.md` §15): several kernels fit one process.
const OF_PROCESS: &[(&str, &[&str])] = &[
    // The host's name, where the system has no other way to it.
    ("env::var(", &["tree/lease/holder.rs"]),
    ("env::var_os(", &[]),
    ("env::vars", &["environment.rs"]),
    ("env::home_dir(", &["environment.rs"]),
    ("env::args", &[]),
    ("env::current_dir(", &["boot/builder.rs"]),
    ("env::current_exe(", &["boot/builder.rs"]),
    (
        "env::temp_dir(",
        &["boot/services.rs", "session/bash/whole.rs"],
    ),
    ("env::set_", &[]),
    ("env::remove_var(", &[]),
    // The process of a plugin is the kernel's own.
    ("io::stdin(", &["dylib/child/mod.rs"]),
    ("io::stdout(", &[]),
    ("io::stderr(", &[]),
    ("println!(", &[]),
    ("print!(", &[]),
    ("process::exit(", &[]),
];

/// Words of unfinished work, in two halves: this file is searched too.
const LEFTOVERS: &[(&str, &str)] = &[
    ("to", "do!("),
    ("TO", "DO"),
    ("FIX", "ME"),
    ("XX", "X"),
    ("unimpl", "emented!("),
    ("db", "g!("),
    ("#[ig", "nore"),
];

/// Names that say nothing of what a module holds.
const EMPTY_NAMES: &[&str] = &[
    "util", "utils", "helper", "helpers", "manager", "managers", "misc",
];

#[test]
fn the_top_folder_holds_the_parts_and_nothing_else() {
    let strangers: Vec<String> = entries(workspace())
        .iter()
        .map(|path| name(path).to_owned())
        .filter(|name| !TOP.contains(&name.as_str()))
        .collect();
    assert!(
        strangers.is_empty(),
        "these belong elsewhere: {strangers:?}"
    );
}

#[test]
fn crates_use_only_what_is_below_them() {
    let crates = crates();
    let ours: Vec<&str> = crates
        .values()
        .map(|manifest| manifest.name.as_str())
        .collect();
    let mut wrong = Vec::new();
    for (folder, manifest) in &crates {
        let row = CRATES.iter().find(|(pattern, _)| matches(pattern, folder));
        let Some((_, allowed)) = row else {
            wrong.push(format!("{folder} has no row in CRATES"));
            continue;
        };
        let for_tests = manifest.dev_dependencies.iter();
        let for_tests = for_tests.filter(|used| *used != FOR_TESTS);
        for used in manifest.dependencies.iter().chain(for_tests) {
            if ours.contains(&used.as_str()) && !allowed.contains(&used.as_str()) {
                wrong.push(format!("{folder} uses {used}"));
            }
            let library = LIBRARIES.iter().find(|(library, _)| library == used);
            if library.is_some_and(|(_, users)| !users.contains(&folder.as_str())) {
                wrong.push(format!("{folder} uses the library {used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_kernels_modules_use_only_what_is_below_them() {
    let root = workspace().join("kernel/src");
    let modules: Vec<String> = entries(&root)
        .iter()
        .map(|path| stem(path).to_owned())
        .collect();
    let mut wrong = Vec::new();
    for file in rust_files(&root) {
        let inside = file.strip_prefix(&root).expect("the file is in the kernel");
        let module = stem(Path::new(inside.iter().next().expect("a file has a name")));
        if module == "lib" {
            continue;
        }
        let row = MODULES.iter().find(|(known, _)| *known == module);
        let Some((_, allowed)) = row else {
            wrong.push(format!("{module} has no row in MODULES"));
            continue;
        };
        // `super` of a file at this depth is the root's.
        let depth = inside.components().count() - usize::from(stem(inside) == "mod");
        for used in roots_used(&read(&file), depth) {
            let own = used == module || allowed.contains(&used.as_str());
            if modules.contains(&used) && !own {
                wrong.push(format!("{} uses {used}", inside.display()));
            } else if !modules.contains(&used) {
                wrong.push(format!(
                    "{} hides the module behind crate::{used}",
                    inside.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_table_of_modules_has_no_circles() {
    let mut below = Vec::new();
    for (module, allowed) in MODULES {
        let above = allowed.iter().find(|used| !below.contains(*used));
        assert_eq!(above, None, "{module} uses what stands above it");
        below.push(module);
    }
}

#[test]
fn nothing_unfinished_is_left_and_no_name_is_empty() {
    let mut wrong = Vec::new();
    for file in rust_files(workspace()) {
        let shown = file.strip_prefix(workspace()).expect("the file is ours");
        let mut words = shown
            .iter()
            .flat_map(|part| stem(Path::new(part)).split('_'));
        if let Some(word) = words.find(|word| EMPTY_NAMES.contains(word)) {
            wrong.push(format!(
                "{}: say what it holds, not {word:?}",
                shown.display()
            ));
        }
        for (number, line) in read(&file).lines().enumerate() {
            let left = |(one, two): &(&str, &str)| has_word(line, &format!("{one}{two}"));
            if LEFTOVERS.iter().any(left) {
                wrong.push(format!(
                    "{}:{}: {}",
                    shown.display(),
                    number + 1,
                    line.trim()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_kernel_is_told_what_belongs_to_the_process() {
    // interfaces §15
    let root = workspace().join("kernel/src");
    let mut wrong = Vec::new();
    for file in rust_files(&root) {
        let inside = file.strip_prefix(&root).expect("the file is in the kernel");
        let shown = inside.display().to_string();
        let source = read(&file);
        let is_test = inside.iter().any(|part| stem(Path::new(part)) == "tests");
        let code = source.split("#[cfg(test)]\nmod tests {").next();
        let code = code.filter(|_| !is_test).unwrap_or_default();
        for (word, allowed) in OF_PROCESS {
            let mut lines = code
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"));
            let used = lines.find(|line| has_word(line, word));
            if let Some(line) = used.filter(|_| !allowed.contains(&shown.as_str())) {
                wrong.push(format!("{shown}: {}", line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_crate_follows_the_workspaces_lints() {
    for folder in crates().keys().filter(|folder| *folder != "plugins/abi") {
        let manifest = read(&workspace().join(folder).join("Cargo.toml"));
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{folder}/Cargo.toml"
        );
    }
}

#[test]
fn the_readers_of_these_rules_read() {
    let source = "
        use crate::tree::Entry;
        use crate::{agent, registry::{Hook, Source}};
        use super::super::host;
        fn f() { crate::run::go(); crate::shout!(); } // crate::session
        use super::sibling;
        use pliant_sdk::crate_like::x;
        use crate::Facade;
    ";
    let mut found = roots_used(source, 2);
    found.sort();
    assert_eq!(
        found,
        ["Facade", "agent", "host", "registry", "run", "tree"]
    );

    let manifest = Manifest::parse(
        "[package]\nname = \"one\"\n[dependencies]\na.workspace = true\nb = \"1\"\n\
         [target.'cfg(unix)'.dependencies]\nc = \"1\"\n[dev-dependencies.d]\npath = \"x\"\n\
         [features]\ne = []\n[dev-dependencies]\nf.workspace = true",
    );
    assert_eq!(manifest.name, "one");
    assert_eq!(manifest.dependencies, ["a", "b", "c"]);
    assert_eq!(manifest.dev_dependencies, ["d", "f"]);
    assert!(has_word("// XY: z", "XY") && !has_word("uXYZ", "XY") && has_word("do!(x)", "do!("));
    assert!(matches("plugins/*", "plugins/mcp") && !matches("plugins/*", "tests/plugins/x"));
}

/// A crate's manifest, as far as the rules need it.
#[derive(Debug, Default)]
struct Manifest {
    name: String,
    dependencies: Vec<String>,
    dev_dependencies: Vec<String>,
}

impl Manifest {
    fn parse(text: &str) -> Self {
        let mut manifest = Self::default();
        let mut section = "";
        for line in text.lines().map(str::trim) {
            if let Some(header) = line.strip_prefix('[') {
                section = header.trim_end_matches(']');
                if let Some((_, name)) = section.split_once("dependencies.") {
                    manifest.used_by(section).push(name.to_owned());
                }
            } else if let Some((key, value)) = line.split_once('=') {
                let key = key.split('.').next().unwrap_or_default().trim();
                if section.ends_with("dependencies") {
                    manifest.used_by(section).push(key.to_owned());
                } else if section == "package" && key == "name" {
                    value
                        .trim()
                        .trim_matches('"')
                        .clone_into(&mut manifest.name);
                }
            }
        }
        manifest
    }

    fn used_by(&mut self, section: &str) -> &mut Vec<String> {
        match section.contains("dev-dependencies") {
            true => &mut self.dev_dependencies,
            false => &mut self.dependencies,
        }
    }
}

/// The workspace's crates by folder. `tests/fixtures` holds other workspaces.
fn crates() -> BTreeMap<String, Manifest> {
    let folders = ["", "plugins", "tests/plugins"];
    let folders = folders
        .iter()
        .flat_map(|folder| entries(&workspace().join(folder)));
    let manifests = folders.filter(|folder| folder.join("Cargo.toml").exists());
    let crates: BTreeMap<_, _> = manifests
        .map(|folder| {
            let shown = folder
                .strip_prefix(workspace())
                .expect("the folder is ours");
            let manifest = Manifest::parse(&read(&folder.join("Cargo.toml")));
            (shown.display().to_string(), manifest)
        })
        .collect();
    assert!(
        crates.contains_key("kernel") && crates.contains_key("plugins/sdk"),
        "{crates:?}"
    );
    crates
}

fn matches(pattern: &str, folder: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => folder
            .strip_prefix(start)
            .is_some_and(|rest| !rest.contains('/')),
        None => pattern == folder,
    }
}

/// The names right below the crate's root that a source text uses, by `crate::` or by `super::`.
fn roots_used(source: &str, depth: usize) -> Vec<String> {
    let to_root = "super::".repeat(depth);
    let code: Vec<&str> = source
        .lines()
        .map(|line| line.split("//").next().unwrap_or(""))
        .collect();
    let code = code.join("\n");
    let mut used = Vec::new();
    for start in ["crate::", to_root.as_str()] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            let inside_a_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == '$';
            if !before.is_some_and(inside_a_path) {
                used.extend(names(&code[at + start.len()..]));
            }
        }
    }
    used.sort();
    used.dedup();
    used
}

/// The first name of a path, or of each path of a group in braces.
fn names(path: &str) -> Vec<String> {
    let Some(group) = path.strip_prefix('{') else {
        let end = path
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(path.len());
        let is_name = end > 0 && &path[..end] != "super" && !path[end..].starts_with('!');
        return is_name
            .then(|| path[..end].to_owned())
            .into_iter()
            .collect();
    };
    let mut found = Vec::new();
    let (mut depth, mut fresh) = (0, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            _ if fresh && !c.is_whitespace() => {
                fresh = false;
                found.extend(names(&group[at..]));
            }
            _ => {}
        }
    }
    found
}

/// Whether the word stands by itself in the line.
fn has_word(line: &str, word: &str) -> bool {
    let letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    line.match_indices(word).any(|(at, _)| {
        let after = line[at + word.len()..].chars().next();
        let bounded = !word.ends_with(char::is_alphanumeric) || !letter(after);
        bounded && !letter(line[..at].chars().next_back())
    })
}

/// Every source file below a folder, except in fixtures.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in entries(folder) {
        if path.is_dir() && !path.ends_with("tests/fixtures") {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// What a folder holds, without dotfiles and what cargo builds.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.map(|entry| entry.expect("the folder is readable").path());
    let ours = |path: &PathBuf| !name(path).starts_with('.') && !path.join("CACHEDIR.TAG").exists();
    let mut paths: Vec<PathBuf> = paths.filter(ours).collect();
    paths.sort();
    paths
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .expect("names are plain text")
}

fn stem(path: &Path) -> &str {
    path.file_stem()
        .and_then(|stem| stem.to_str())
        .expect("names are plain text")
}
