//! What of a project needs trust.

use std::path::{Path, PathBuf};

use crate::settings::PROJECT_DIR;

/// What changes how pliant works, or is run by it.
const OWN: [&str; 8] = [
    "settings.json",
    "mcp.json",
    "extensions",
    "skills",
    "prompts",
    "themes",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
];

/// What is read of pi's project folder.
const OF_PI: [&str; 2] = ["skills", "prompts"];

/// The files and folders of a project that need trust. The folder alone needs none, and what lies in
/// the user's home for all projects is the user's own.
#[must_use]
pub fn needing_trust(cwd: &Path, home: Option<&Path>, with_pi: bool) -> Vec<PathBuf> {
    let of_pi: &[&str] = if with_pi { &OF_PI } else { &[] };
    let own = OWN.iter().map(|name| cwd.join(PROJECT_DIR).join(name));
    let of_pi = of_pi.iter().map(|name| cwd.join(".pi").join(name));
    let is_home = |folder: &Path| {
        home.is_some_and(|home| {
            folder == home
                || matches!((folder.canonicalize(), home.canonicalize()), (Ok(a), Ok(b)) if a == b)
        })
    };
    let shared = cwd.ancestors().filter(|folder| !is_home(folder));
    let shared = shared.map(|folder| folder.join(".agents/skills"));
    own.chain(of_pi)
        .chain(shared)
        .filter(|path| path.exists())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn check(there: &str, needs: bool) {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().join("home/work/p");
        let home = dir.path().join("home");
        fs::create_dir_all(&cwd).unwrap();
        fs::create_dir_all(cwd.join(there)).unwrap();
        let found = needing_trust(&cwd, Some(&home), true);
        assert_eq!(!found.is_empty(), needs, "{there}: {found:?}");
    }

    #[test]
    fn each_of_them_needs_trust_and_the_bare_folder_does_not() {
        // interfaces §14, resources §13.9
        for name in OWN {
            check(&format!(".pliant/{name}"), true);
        }
        for there in [
            ".pliant",
            ".pliant/agent",
            ".pliant/sessions",
            ".pi",
            ".pi/extensions",
            ".agents",
        ] {
            check(there, false);
        }
        check(".pi/prompts", true);
        check(".agents/skills", true);
        check("../.agents/skills", true);
        check("../../../.agents/skills", true);
        check("../../.agents/skills", false);
    }

    #[test]
    fn the_home_itself_is_no_project_for_what_is_the_users() {
        // resources §11
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join(".agents/skills")).unwrap();
        fs::create_dir_all(dir.path().join(".pi/skills")).unwrap();
        assert!(needing_trust(dir.path(), Some(dir.path()), false).is_empty());
    }
}
