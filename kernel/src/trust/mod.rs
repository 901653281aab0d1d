//! Whether a project's own files count: its settings, skills, templates, extensions and prompt files
//! (`interfaces.md` §14). The working directory and what is said about it come in, a [`Verdict`] comes
//! out. Trust is no sandbox: it only decides what is loaded.
//!
//! In order: what the command line says; the nearest decision that was stored, upwards; the setting
//! `defaultProjectTrust`; the user, where there is one to ask. Nobody to ask means no. Of a project that
//! was trusted, extensions that are others since then are asked about once more (`trust.recheck`).

mod needs;
mod seen;
mod store;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::settings::ProjectTrust;

use seen::Seen;

pub use needs::needing_trust;
pub use store::TrustStore;

/// Who is asked.
pub type AskTrust = Arc<dyn Fn(&TrustQuestion) -> TrustAnswer + Send + Sync>;

/// What is known before anything is looked at.
#[derive(Clone, Default)]
pub struct TrustPolicy {
    /// What the command line, or an extension of the user, says.
    pub decided: Option<bool>,
    /// Asks the user; `None` where nobody is.
    pub ask: Option<AskTrust>,
}

impl std::fmt::Debug for TrustPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrustPolicy")
            .field("decided", &self.decided)
            .field("ask", &self.ask.is_some())
            .finish()
    }
}

/// A project that nobody has decided on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustQuestion {
    /// Its folder.
    pub project: PathBuf,
    /// What of it needs trust.
    pub files: Vec<PathBuf>,
    /// It was trusted, and what of it runs is another one since then.
    pub has_changed: bool,
}

/// What the settings say of trust.
#[derive(Debug, Clone, Copy, Default)]
pub struct TrustRules {
    /// For a project that nobody has decided on.
    pub default: ProjectTrust,
    /// Whether a change of what runs is asked about.
    pub recheck: bool,
}

/// What the user answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustAnswer {
    /// From now on.
    Trust,
    /// From now on, with all that lies in the folder above.
    TrustParent,
    /// In this run.
    TrustOnce,
    /// From now on not.
    Refuse,
    /// Not in this run.
    RefuseOnce,
}

/// What came out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the project's files count.
    pub trusted: bool,
    /// They do by a decision that was stored, for what runs as it is now.
    pub by_decision: bool,
    /// What to tell the user.
    pub notices: Vec<String>,
}

/// Decides on a project. What needs trust is [`needing_trust`]; where that is nothing, there is nothing
/// to decide either, and the project is as good as trusted.
#[must_use]
pub fn decide(
    policy: &TrustPolicy,
    agent_dir: &Path,
    cwd: &Path,
    files: Vec<PathBuf>,
    rules: TrustRules,
) -> Verdict {
    let trusted = |trusted| Verdict {
        trusted,
        ..Verdict::default()
    };
    if let Some(decided) = policy.decided {
        return trusted(decided);
    }
    if files.is_empty() {
        return trusted(true);
    }
    let store = TrustStore::new(agent_dir);
    match (store.nearest(cwd), rules.default) {
        // Who decided what cannot be known, so the file is left alone and nothing is trusted.
        (Err(problem), _) => Verdict {
            notices: vec![problem, left_out(cwd, &files)],
            ..Verdict::default()
        },
        (Ok(Some(true)), _) if rules.recheck => {
            let seen = Seen::of(agent_dir, cwd);
            if !seen.is_other() {
                return Verdict {
                    trusted: true,
                    by_decision: true,
                    ..Verdict::default()
                };
            }
            let Some(ask) = &policy.ask else {
                return Verdict {
                    notices: vec![changed(cwd, &files)],
                    ..Verdict::default()
                };
            };
            let question = TrustQuestion {
                project: cwd.to_owned(),
                files,
                has_changed: true,
            };
            let answer = ask(&question);
            if matches!(answer, TrustAnswer::Trust | TrustAnswer::TrustParent) {
                seen.agree();
            }
            keep(&store, cwd, answer)
        }
        (Ok(Some(stored)), _) => trusted(stored),
        (Ok(None), ProjectTrust::Always) => trusted(true),
        (Ok(None), ProjectTrust::Never) => trusted(false),
        (Ok(None), ProjectTrust::Ask) => match &policy.ask {
            Some(ask) => {
                let question = TrustQuestion {
                    project: cwd.to_owned(),
                    files,
                    has_changed: false,
                };
                let answer = ask(&question);
                if matches!(answer, TrustAnswer::Trust | TrustAnswer::TrustParent) {
                    Seen::of(agent_dir, cwd).agree();
                }
                keep(&store, cwd, answer)
            }
            None => Verdict {
                notices: vec![left_out(cwd, &files)],
                ..Verdict::default()
            },
        },
    }
}

fn keep(store: &TrustStore, cwd: &Path, answer: TrustAnswer) -> Verdict {
    let own = |decision| store.save(&[(cwd, decision)]);
    let saved = match answer {
        TrustAnswer::TrustOnce | TrustAnswer::RefuseOnce => Ok(()),
        TrustAnswer::Trust => own(Some(true)),
        TrustAnswer::Refuse => own(Some(false)),
        TrustAnswer::TrustParent => match cwd.parent() {
            Some(parent) => store.save(&[(cwd, None), (parent, Some(true))]),
            None => own(Some(true)),
        },
    };
    Verdict {
        trusted: !matches!(answer, TrustAnswer::Refuse | TrustAnswer::RefuseOnce),
        by_decision: matches!(answer, TrustAnswer::Trust | TrustAnswer::TrustParent),
        notices: saved
            .err()
            .map(|error| format!("The decision holds in this run only. {error}"))
            .into_iter()
            .collect(),
    }
}

/// The user has worked with what there is, so it is what he agreed to: he may have changed it himself
/// while the session was open.
pub fn agree_to_what_runs(agent_dir: &Path, cwd: &Path) {
    Seen::of(agent_dir, cwd).agree();
}

fn changed(cwd: &Path, files: &[PathBuf]) -> String {
    format!(
        "This project was trusted, but its extensions or servers are others since then (\"trust.recheck\"). {}",
        left_out(cwd, files)
    )
}

fn left_out(cwd: &Path, files: &[PathBuf]) -> String {
    const SHOWN: usize = 4;
    let shown = |file: &PathBuf| file.strip_prefix(cwd).unwrap_or(file).display().to_string();
    let mut names: Vec<String> = files.iter().take(SHOWN).map(shown).collect();
    if let Some(more @ 1..) = files.len().checked_sub(SHOWN) {
        names.push(format!("{more} more"));
    }
    format!(
        "Files of this project were left out, because it is not trusted: {}. --approve uses them in \
         this run; a start at a terminal asks and can remember the answer.",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Mutex;

    use super::*;

    struct Place {
        dir: tempfile::TempDir,
        default: ProjectTrust,
        asked: Arc<Mutex<usize>>,
    }

    impl Place {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir_all(dir.path().join("up/p/.pliant")).unwrap();
            fs::create_dir(dir.path().join("agent")).unwrap();
            Self {
                dir,
                default: ProjectTrust::Ask,
                asked: Arc::default(),
            }
        }

        fn cwd(&self) -> PathBuf {
            self.dir.path().join("up/p")
        }

        fn store(&self) -> TrustStore {
            TrustStore::new(&self.dir.path().join("agent"))
        }

        fn decide(&self, decided: Option<bool>, answer: Option<TrustAnswer>) -> Verdict {
            let asked = Arc::clone(&self.asked);
            let ask = answer.map(|answer| -> AskTrust {
                Arc::new(move |question| {
                    *asked.lock().unwrap() += 1;
                    assert_eq!(question.files, [PathBuf::from("x")]);
                    answer
                })
            });
            let agent = self.dir.path().join("agent");
            let policy = TrustPolicy { decided, ask };
            let rules = TrustRules {
                default: self.default,
                recheck: true,
            };
            decide(&policy, &agent, &self.cwd(), vec!["x".into()], rules)
        }
    }

    #[test]
    fn the_command_line_goes_before_what_is_stored_and_that_before_the_setting_and_the_user() {
        // interfaces §14, resources §13.9
        let mut place = Place::new();
        let yes = Some(TrustAnswer::TrustOnce);
        assert!(place.decide(None, yes).trusted);
        place.default = ProjectTrust::Never;
        assert_eq!(place.decide(None, yes), Verdict::default());
        place.store().save(&[(&place.cwd(), Some(true))]).unwrap();
        assert!(place.decide(None, None).trusted);
        assert!(!place.decide(Some(false), yes).trusted);
        place.default = ProjectTrust::Always;
        place.store().save(&[(&place.cwd(), Some(false))]).unwrap();
        assert!(!place.decide(None, yes).trusted);
        assert!(place.decide(Some(true), None).trusted);
        place.store().save(&[(&place.cwd(), None)]).unwrap();
        assert!(place.decide(None, None).trusted);
        assert_eq!(*place.asked.lock().unwrap(), 1);
    }

    #[test]
    fn where_nobody_can_be_asked_nothing_is_trusted_and_that_is_said() {
        // interfaces §14
        let verdict = Place::new().decide(None, None);
        assert!(!verdict.trusted);
        assert!(verdict.notices[0].contains("not trusted: x. --approve"));
    }

    #[test]
    fn the_five_answers_and_what_is_remembered_of_them() {
        // interfaces §14
        for (answer, trusted, of_project, of_parent) in [
            (TrustAnswer::Trust, true, Some(true), None),
            (TrustAnswer::TrustParent, true, Some(true), Some(true)),
            (TrustAnswer::TrustOnce, true, None, None),
            (TrustAnswer::Refuse, false, Some(false), None),
            (TrustAnswer::RefuseOnce, false, None, None),
        ] {
            let place = Place::new();
            assert_eq!(
                place.decide(None, Some(answer)).trusted,
                trusted,
                "{answer:?}"
            );
            let nearest = |path: &Path| place.store().nearest(path).unwrap();
            assert_eq!(nearest(&place.cwd()), of_project, "{answer:?}");
            assert_eq!(
                nearest(&place.dir.path().join("up")),
                of_parent,
                "{answer:?}"
            );
        }
    }

    #[test]
    fn what_runs_and_is_another_one_since_is_asked_about_once_more() {
        // resources §11, pliant additions
        let place = Place::new();
        let script = place.cwd().join(".pliant/extensions/a/index.rhai");
        fs::create_dir_all(script.parent().unwrap()).unwrap();
        fs::write(&script, "1").unwrap();
        let asked = || *place.asked.lock().unwrap();
        let trust = Some(TrustAnswer::Trust);
        assert!(place.decide(None, trust).trusted);
        assert!(place.decide(None, None).trusted);
        fs::write(place.cwd().join(".pliant/settings.json"), "{}").unwrap();
        assert!(place.decide(None, None).trusted, "it runs nothing");
        fs::write(&script, "2").unwrap();
        let verdict = place.decide(None, None);
        assert!(!verdict.trusted);
        assert!(
            verdict.notices[0].contains("are others since then"),
            "{verdict:?}"
        );
        assert!(place.decide(None, Some(TrustAnswer::TrustOnce)).trusted);
        assert!(!place.decide(None, None).trusted);
        assert!(place.decide(None, trust).trusted);
        assert!(place.decide(None, None).trusted);
        assert_eq!(asked(), 3);
        fs::write(place.cwd().join(".pliant/mcp.json"), "{}").unwrap();
        assert!(!place.decide(None, Some(TrustAnswer::Refuse)).trusted);
        assert!(
            !place.decide(None, trust).trusted,
            "it is refused from now on"
        );
    }

    #[test]
    fn a_decision_of_another_agent_or_an_earlier_version_counts_for_what_there_is() {
        let place = Place::new();
        let script = place.cwd().join(".pliant/extensions/a.rhai");
        fs::create_dir_all(script.parent().unwrap()).unwrap();
        fs::write(&script, "1").unwrap();
        place.store().save(&[(&place.cwd(), Some(true))]).unwrap();
        assert!(place.decide(None, None).trusted);
        fs::write(&script, "2").unwrap();
        assert!(!place.decide(None, None).trusted);
        agree_to_what_runs(&place.dir.path().join("agent"), &place.cwd());
        assert!(place.decide(None, None).trusted);
    }

    #[test]
    fn a_store_that_cannot_be_read_trusts_nothing_and_is_left_alone() {
        // resources §11
        let place = Place::new();
        let file = place.dir.path().join("agent/trust.json");
        fs::write(&file, "{\"/\": true,").unwrap();
        let verdict = place.decide(None, Some(TrustAnswer::Trust));
        assert!(!verdict.trusted && verdict.notices[0].contains("trust.json"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "{\"/\": true,");
    }
}
