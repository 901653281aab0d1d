//! Extensions of the user that decide on a project (`project_trust`, `extensions.md` §3). They are asked
//! before anything of the project counts, so a kernel without it is started for them; whether that is
//! worth it is looked up first.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pliant_sdk::Error;
use pliant_sdk::host::Services;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::plugins::Wanted;
use super::project::{needing_trust, of_user, user_extension_files};
use super::{Kernel, KernelOptions};
use crate::host::HostServices;
use crate::registry::{
    Callers, Dispatcher, Grace, HandlerFailure, HookPoint, Kind, Lender, Patience, Source,
};
use crate::textfile;
use crate::trust::TrustStore;

const POINT: HookPoint = HookPoint::ProjectTrust;

/// Whether there is something to decide on, and an extension that may want to: a script of the user with
/// that ending, one of `scripts`, or a plugin.
#[must_use]
pub fn has_gatekeeper(options: &KernelOptions, ending: &str, scripts: &[PathBuf]) -> bool {
    if options.trust.decided.is_some() || needing_trust(options).is_empty() {
        return false;
    }
    let found = user_extension_files(options, ending);
    let mut files = found.iter().chain(scripts);
    let speaks_of_it = |file: &PathBuf| {
        let text = textfile::read(&options.cwd.join(file));
        text.is_ok_and(|text| text.contains(POINT.name()))
    };
    let plugin_hooks = || {
        let (settings, _) = of_user(options);
        let found = Wanted::of(options, &settings).find();
        found
            .plugins
            .iter()
            .flat_map(|plugin| &plugin.manifest.provides)
            .any(|item| item.kind == Kind::Hook && item.name == POINT.name())
    };
    files.any(speaks_of_it) || plugin_hooks()
}

/// An answer of a handler.
#[derive(Deserialize)]
struct Answer {
    trusted: Word,
    #[serde(default)]
    remember: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Yes,
    No,
    Undecided,
}

impl Kernel {
    /// What the extensions that are registered say of the project in the working directory: the first
    /// yes or no counts. Failures are answered as sentences.
    pub async fn ask_about_project(&self) -> (Option<bool>, Vec<String>) {
        let snapshot = self.registry.snapshot();
        let lender = HostLender {
            host: Arc::clone(&self.host),
            failures: Mutex::default(),
        };
        let limit = self.settings.now().handler_limit();
        let patience = Patience::new(CancellationToken::new(), limit, Grace::default());
        let callers = Callers::new(&lender, patience);
        let mut said: Option<Answer> = None;
        if let Some(dispatcher) = Dispatcher::new(&snapshot, POINT, callers) {
            let event = json!({"type": POINT.name(), "cwd": self.options.cwd});
            let take = |said: &mut Option<Answer>, answer: Value| {
                let answer = Answer::deserialize(answer).map_err(|error| {
                    Error::invalid(format!(
                        "its answer is ignored: {error}. Answer #{{trusted: \"yes\", \"no\" or \"undecided\"}}"
                    ))
                })?;
                if matches!(answer.trusted, Word::Undecided) {
                    return Ok(ControlFlow::Continue(()));
                }
                *said = Some(answer);
                Ok(ControlFlow::Break(()))
            };
            // The point does not fail closed: who fails is passed by.
            let _ = dispatcher.each(&mut said, |_| event.clone(), take).await;
        }
        let mut told = lender.told();
        let decision = said.map(|answer| {
            let trusted = matches!(answer.trusted, Word::Yes);
            if answer.remember {
                let store = TrustStore::new(&self.options.agent_dir);
                let saved = store.save(&[(&self.options.cwd, Some(trusted))]);
                told.extend(saved.err().map(|error| error.to_string()));
            }
            trusted
        });
        (decision, told)
    }
}

/// Services without a session.
struct HostLender {
    host: Arc<HostServices>,
    failures: Mutex<Vec<String>>,
}

impl HostLender {
    fn told(&self) -> Vec<String> {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut failures)
    }
}

impl Lender for HostLender {
    fn services(&self, source: &Source) -> Arc<dyn Services> {
        self.host.for_source(source, None)
    }

    fn report(&self, failure: HandlerFailure) {
        let HandlerFailure { source, error, .. } = failure;
        let sentence = format!("{} failed at {}: {error}", source.name, POINT.name());
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.push(sentence);
    }
}
