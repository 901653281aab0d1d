//! Building plugins while they are written (`pliant dev`): their sources are watched, cargo builds the one
//! that changed, and what it says is told. Who reloads what was built watches the library itself; until a
//! build succeeds, what was built before goes on serving.

mod crates;
mod messages;
mod work;

use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use crate::watch::{Pauses, Told, Watcher};

pub use crates::{Crate, NoCrate};
pub use messages::CompilerError;

use work::{Message, Work};

/// How long sources have to be quiet: an editor may save several at once.
const QUIET: Duration = Duration::from_millis(40);

/// What became of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// It begins.
    Building {
        /// The package.
        package: String,
    },
    /// There is a library.
    Built {
        /// The package.
        package: String,
        /// The library.
        library: PathBuf,
        /// From the beginning of the build.
        took: Duration,
    },
    /// There is none, or the one from before.
    Failed {
        /// The package.
        package: String,
        /// What the compiler says, the first errors first.
        errors: Vec<CompilerError>,
        /// What else was said, where the compiler said nothing.
        cause: String,
    },
    /// Something else is odd; a sentence.
    Notice(String),
}

impl Report {
    /// In a few lines for people.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Building { package } => format!("{package} is being built."),
            Self::Built { package, took, .. } => {
                format!("{package} was built in {} ms.", took.as_millis())
            }
            Self::Failed {
                package,
                errors,
                cause,
            } => {
                const SHOWN: usize = 3;
                let shown: Vec<String> =
                    errors.iter().take(SHOWN).map(ToString::to_string).collect();
                let more = errors.len().saturating_sub(SHOWN);
                let what = match (shown.is_empty(), more) {
                    (true, _) => cause.clone(),
                    (false, 0) => shown.join("\n"),
                    (false, more) => format!("{}\nand {more} more", shown.join("\n")),
                };
                format!("{package} does not build, so what was built before goes on:\n{what}")
            }
            Self::Notice(sentence) => sentence.clone(),
        }
    }
}

/// Builds what changes, until it is dropped.
#[derive(Debug)]
pub struct Dev {
    messages: Sender<Message>,
    _watcher: Watcher,
}

impl Dev {
    /// Watches the sources of these crates, and builds first what was never built or is older than its
    /// sources. `tell` is called on a thread of its own.
    ///
    /// # Errors
    /// When there are no threads to be had.
    pub fn start(
        crates: Vec<Crate>,
        tell: impl Fn(Report) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (messages, inbox) = channel();
        let places = crates.iter().flat_map(Crate::places).collect();
        let changed = messages.clone();
        let pauses = Pauses {
            text: QUIET,
            ..Pauses::default()
        };
        let watcher = Watcher::start(places, None, pauses, move |told| {
            // Nobody listens at the end.
            let _ = changed.send(match told {
                Told::Changes(changes) => {
                    let all = changes.changed.into_iter().chain(changes.removed);
                    Message::Changed(all.collect())
                }
                Told::Notice(sentence) => Message::Notice(sentence),
            });
        })?;
        let work = Work::new(crates, messages.clone(), Box::new(tell));
        std::thread::Builder::new()
            .name("dev".to_owned())
            .spawn(move || work.run(&inbox))?;
        Ok(Self {
            messages,
            _watcher: watcher,
        })
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.messages.send(Message::Stop);
    }
}
