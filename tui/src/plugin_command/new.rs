//! `pliant plugin new`: a crate that builds, and whose tests pass, at once.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use crate::launch;
use crate::session_command::print;

const TOOL: &str = include_str!("template/tool.rs");
const PROVIDER: &str = include_str!("template/provider.rs");
const HOOK: &str = include_str!("template/hook.rs");
const MANIFEST: &str = include_str!("template/Cargo.toml.txt");
const README: &str = include_str!("template/README.md.txt");

/// Start a plugin of your own: a crate with an example and its test.
#[derive(Args)]
pub struct New {
    /// Its name, and that of the folder that is made.
    name: String,
    /// It brings a tool for the model (the default).
    #[arg(long, conflicts_with_all = ["provider", "hook"])]
    tool: bool,
    /// It brings a service with models.
    #[arg(long, conflicts_with = "hook")]
    provider: bool,
    /// It handles events.
    #[arg(long)]
    hook: bool,
    /// Where pliant-sdk is, if not beside this program's sources.
    #[arg(long, value_name = "FOLDER")]
    path_to_sdk: Option<PathBuf>,
}

impl New {
    pub fn run(&self) -> anyhow::Result<u8> {
        let name = &self.name;
        check_name(name)?;
        let folder = launch::working_dir()?.join(name);
        let is_empty =
            |folder: &Path| std::fs::read_dir(folder).is_ok_and(|mut all| all.next().is_none());
        if folder.exists() && !is_empty(&folder) {
            bail!(
                "{} is there already and not empty. Choose another name.",
                folder.display()
            );
        }
        let source = match (self.provider, self.hook) {
            (true, _) => PROVIDER,
            (_, true) => HOOK,
            _ => TOOL,
        };
        let fill = |text: &str| {
            text.replace("my-plugin", name)
                .replace("my_plugin", &name.replace('-', "_"))
        };
        let sdk = self.sdk()?;
        let manifest = fill(MANIFEST).replace("SDK", &sdk);
        let mut files = vec![
            ("Cargo.toml", manifest),
            ("src/lib.rs", fill(source)),
            ("README.md", fill(README)),
            (".gitignore", "/target\n".to_owned()),
        ];
        if let Some(mold) = mold() {
            files.push((".cargo/config.toml", mold));
        }
        for (file, text) in files {
            let file = folder.join(file);
            let written = file
                .parent()
                .map_or(Ok(()), std::fs::create_dir_all)
                .and_then(|()| std::fs::write(&file, text));
            written.with_context(|| format!("{} cannot be written.", file.display()))?;
        }
        print(&format!(
            "The plugin {name} is in {}. Its README.md says how to go on:\n    cd {name}\n    pliant dev\n",
            folder.display()
        ))
    }

    /// The dependency on the SDK: where the program's own sources are, or that of its version.
    fn sdk(&self) -> anyhow::Result<String> {
        let path = match &self.path_to_sdk {
            Some(path) => {
                let path = launch::working_dir()?.join(path);
                if !path.join("Cargo.toml").is_file() {
                    bail!("There is no crate at {}.", path.display());
                }
                Some(path)
            }
            None => {
                let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/sdk");
                built_from.canonicalize().ok()
            }
        };
        Ok(match path {
            Some(path) => format!("{{ path = {:?} }}", path.display().to_string()),
            None => format!("{:?}", env!("CARGO_PKG_VERSION")),
        })
    }
}

/// Words that no crate can be called.
const KEYWORDS: [&str; 50] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while",
];

/// What cargo takes for a package, and the kernel for a plugin.
fn check_name(name: &str) -> anyhow::Result<()> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let begins = name.chars().next().is_some_and(|c| c.is_ascii_lowercase());
    if !begins || !name.chars().all(fits) || name.len() > 64 {
        bail!(
            "\"{name}\" cannot be the name of a plugin: it begins with a small letter and has small letters, digits, - and _."
        );
    }
    if KEYWORDS.contains(&name) {
        bail!("\"{name}\" is a word of the Rust language. Choose another one.");
    }
    if ["test", "core", "std", "alloc", "pliant-sdk"].contains(&name) {
        bail!("\"{name}\" is the name of another crate. Choose another one.");
    }
    Ok(())
}

/// A faster linker, where it is there.
fn mold() -> Option<String> {
    let path = std::env::var_os("PATH")?;
    let has =
        |program: &str| std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    (cfg!(target_os = "linux") && has("mold") && (has("cc") || has("gcc"))).then(|| {
        "# mold links a plugin in a fraction of the time.\n[target.'cfg(target_os = \"linux\")']\nrustflags = [\"-C\", \"link-arg=-fuse-ld=mold\"]\n".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cargo_or_the_kernel_would_refuse_are_refused_in_words() {
        for name in ["a", "my-tool", "tool_2"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "2a", "A", "a b", "-a", "../a", "std", "ä"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
