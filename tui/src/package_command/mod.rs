//! `pliant install`, `remove`, `list` and `update`: packages, and the settings that name them. One file a
//! command.

mod install;
mod list;
mod lock;
mod remove;
mod update;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};
use pliant_kernel::packages::{Entry, KEY, Source, entries};
use pliant_kernel::settings::{FILE, PROJECT_DIR, Settings, write_settings};
use serde_json::Value;

use crate::launch;
use crate::words::Words;

/// Install, remove, list and update packages.
#[derive(Parser)]
#[command(name = "pliant", bin_name = "pliant", disable_help_subcommand = true)]
pub struct PackageCommand {
    #[command(subcommand)]
    command: Command,
}

/// One variant a file.
#[derive(Subcommand)]
enum Command {
    Install(install::Install),
    #[command(alias = "uninstall")]
    Remove(remove::Remove),
    List(list::List),
    Update(update::Update),
}

impl PackageCommand {
    /// Reads the words, of which the first is one of these commands.
    pub fn of(words: &[OsString]) -> Self {
        let mut all = vec![OsString::from("pliant")];
        all.extend_from_slice(words);
        Self::read(&all)
    }

    /// Runs it and answers the exit status.
    ///
    /// # Errors
    /// What stopped it, as a sentence.
    pub fn run(&self) -> anyhow::Result<u8> {
        match &self.command {
            Command::Install(install) => install.run(),
            Command::Remove(remove) => remove.run(),
            Command::List(list) => list.run(),
            Command::Update(update) => update.run(),
        }
    }
}

/// The settings that packages are named in.
struct Named {
    agent_dir: PathBuf,
    cwd: PathBuf,
    home: Option<PathBuf>,
    settings: Settings,
}

impl Named {
    /// Reads them. Whoever runs these commands speaks for the project, so its settings count.
    fn read() -> anyhow::Result<Self> {
        let (agent_dir, cwd) = (launch::agent_dir()?, launch::working_dir()?);
        let options = launch::bare_options()?;
        let (settings, problems) = Settings::load(&agent_dir);
        let (settings, more) = settings.with_project(&cwd);
        if let Some(problem) = problems.into_iter().chain(more).next() {
            bail!("{problem}");
        }
        Ok(Self {
            agent_dir,
            cwd,
            home: options.resources.home,
            settings,
        })
    }

    /// The folder and the file of the user's settings, or the project's.
    fn file(&self, of_project: bool) -> (PathBuf, PathBuf) {
        let folder = match of_project {
            true => self.cwd.join(PROJECT_DIR),
            false => self.agent_dir.clone(),
        };
        let file = folder.join(FILE);
        (folder, file)
    }

    fn parse(&self, source: &str) -> anyhow::Result<Source> {
        Ok(Source::parse(source, &self.cwd, self.home.as_deref())?)
    }

    fn entries(&self) -> (Vec<Entry>, Vec<String>) {
        entries(&self.settings, self.home.as_deref())
    }

    /// Changes the list of one file: `change` gets the sources as they are written, with what they mean.
    fn change(&self, of_project: bool, change: impl FnOnce(&mut Vec<Value>)) -> anyhow::Result<()> {
        let (folder, file) = self.file(of_project);
        let mut lists = self.settings.written_lists(KEY);
        let own = lists.find(|(_, base, _)| *base == folder);
        let mut list = match own {
            None => Vec::new(),
            Some((_, _, Value::Array(list))) => list.clone(),
            Some(_) => bail!(
                "The setting \"{KEY}\" in {} is no list. Mend it, so that nothing in it is lost.",
                file.display()
            ),
        };
        change(&mut list);
        write_settings(&file, &[(KEY, Value::Array(list))])?;
        Ok(())
    }

    /// What an item of a list means; `None` for what is no source.
    fn meaning(&self, item: &Value, folder: &Path) -> Option<Source> {
        let written = item.as_str().or_else(|| item.get("source")?.as_str())?;
        Source::parse(written, folder, self.home.as_deref()).ok()
    }
}

/// A folder's name as the settings of a project have it: inside the project it is relative.
fn written(source: &Source, given: &str, cwd: &Path, of_project: bool) -> anyhow::Result<String> {
    let Source::Folder(folder) = source else {
        return Ok(given.trim().to_owned());
    };
    let folder = match folder.strip_prefix(cwd) {
        Ok(inside) if of_project => Path::new("..").join(inside),
        _ => folder.clone(),
    };
    let text = folder.to_str().map(str::to_owned);
    text.context("The path of the package is no UTF-8, so the settings cannot name it.")
}
