//! `pliant dev`: a session with plugins that are being written, or only their builds.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use pliant_kernel::boot::check_plugin;
use pliant_kernel::dev::{Crate, Dev, Report};
use serde_json::{Value, json};

use crate::{args, launch, say};

/// Build plugins whenever they are saved, and check what was built, without a session.
#[derive(Parser)]
#[command(name = "dev", bin_name = "pliant dev")]
pub struct DevCommand {
    /// Folders of their crates; the working directory if none is named.
    folders: Vec<PathBuf>,
    /// Without a session: what becomes of each build is a line on stdout, until a signal ends it.
    #[arg(long)]
    headless: bool,
    /// Lines of JSON.
    #[arg(long, requires = "headless")]
    json: bool,
}

impl DevCommand {
    /// Reads the words, the first of which is its name; a mistake ends the process with status 1.
    /// `Err` with the words of an ordinary session if that is what is wanted: leading words are folders,
    /// the rest is what every session takes.
    pub fn read(words: &[OsString]) -> Result<Self, Vec<OsString>> {
        let is_headless = words.iter().any(|word| word == "--headless");
        let asks_help = words.iter().any(|word| word == "--help" || word == "-h");
        if is_headless || asks_help {
            return Ok(Self::try_parse_from(words).unwrap_or_else(|error| args::end(&error)));
        }
        let words = &words[1..];
        let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
        let folders = words.iter().take_while(|word| !is_option(word)).count();
        let (folders, rest) = words.split_at(folders);
        let here = [OsString::from(".")];
        let folders = if folders.is_empty() { &here } else { folders };
        let dev = folders
            .iter()
            .flat_map(|folder| ["--dev".into(), folder.clone()]);
        Err(dev.chain(rest.iter().cloned()).collect())
    }

    /// What there is to choose, for completions.
    pub fn definition() -> clap::Command {
        <Self as clap::CommandFactory>::command()
    }

    /// Builds until a signal ends the process.
    ///
    /// # Errors
    /// What stopped it, as a sentence.
    pub fn run(&self) -> anyhow::Result<u8> {
        let here = [PathBuf::from(".")];
        let folders = if self.folders.is_empty() {
            &here[..]
        } else {
            &self.folders
        };
        let crates = found(folders)?;
        for one in &crates {
            self.tell(
                &format!("{} is watched.", one.name()),
                &json!({"type": "watching", "package": one.name()}),
            );
        }
        let (tell, told) = std::sync::mpsc::channel();
        let _dev = Dev::start(crates, move |report| {
            // The receiver lives as long as this process.
            let _ = tell.send(report);
        })
        .context("The builds cannot be started.")?;
        let options = launch::bare_options()?;
        while let Ok(report) = told.recv() {
            self.tell(&report.sentence(), &as_json(&report));
            if let Report::Built {
                library, package, ..
            } = &report
            {
                match check_plugin(&options, library) {
                    Ok(checked) => {
                        let names: Vec<&str> = checked
                            .contributions
                            .iter()
                            .map(|item| item.name.as_str())
                            .collect();
                        let text = format!("{package} can be loaded: {}.", names.join(", "));
                        self.tell(
                            &text,
                            &json!({"type": "checked", "package": package,
                            "loads": true, "contributes": names, "problems": checked.problems}),
                        );
                        checked.problems.iter().for_each(say::warning);
                    }
                    Err(error) => self.tell(
                        &error.to_string(),
                        &json!({"type": "checked",
                        "package": package, "loads": false, "problems": [error.to_string()]}),
                    ),
                }
            }
        }
        Ok(0)
    }

    /// Who does not read on is not waited for: a signal ends this.
    fn tell(&self, text: &str, json: &Value) {
        let mut out = std::io::stdout().lock();
        let _ = match self.json {
            true => writeln!(out, "{json}"),
            false => writeln!(out, "{text}"),
        };
        let _ = out.flush();
    }
}

fn as_json(report: &Report) -> Value {
    match report {
        Report::Building { package } => json!({"type": "building", "package": package}),
        Report::Built {
            package,
            library,
            took,
        } => json!({"type": "built", "package": package,
            "library": library, "tookMs": u64::try_from(took.as_millis()).unwrap_or(u64::MAX)}),
        Report::Failed {
            package,
            errors,
            cause,
        } => {
            let errors: Vec<Value> = errors
                .iter()
                .map(|error| {
                    json!({"file": error.file, "line": error.line, "column": error.column,
                    "message": error.message, "rendered": error.rendered})
                })
                .collect();
            json!({"type": "failed", "package": package, "errors": errors, "cause": cause})
        }
        Report::Notice(sentence) => json!({"type": "notice", "message": sentence}),
    }
}

fn found(folders: &[PathBuf]) -> anyhow::Result<Vec<Crate>> {
    let cwd = launch::working_dir()?;
    let mut crates = Vec::new();
    for folder in folders {
        crates.extend(Crate::find(&cwd.join(folder))?);
    }
    Ok(crates)
}

/// The crates of `--dev`, built if they were not; one that does not build is worked on in the session.
///
/// # Errors
/// When a folder holds no plugin.
pub fn crates(folders: &[PathBuf]) -> anyhow::Result<Vec<Crate>> {
    let crates = found(folders)?;
    for one in &crates {
        if !one.build_if_outdated()? {
            say::warning(format_args!(
                "The plugin {} does not build. It is loaded when it does.",
                one.name()
            ));
        }
    }
    Ok(crates)
}
