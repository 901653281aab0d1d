//! The commands (`interfaces.md` §8.2): a table for each group. A command gets the fields it was sent
//! with and answers data or an error; only `prompt` answers before it is done.

mod bash;
mod compaction;
mod model;
mod prompting;
mod queues;
mod reading;
mod resources;
mod sessions;
mod tree;

use std::pin::Pin;
use std::sync::Arc;

use pliant_kernel::Runtime;
use pliant_kernel::session::Session;

use super::output::Records;
use super::request::{Command, Data, Fields, Reply};

/// What commands work on.
pub struct Rpc {
    /// The open session, and how another takes its place.
    pub runtime: Runtime,
    /// For what is no answer to a command.
    pub records: Records,
}

impl Rpc {
    fn session(&self) -> Session {
        self.runtime.session()
    }
}

/// A command that runs. It answers by itself.
pub type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What a command answers.
type Answer = Result<Data, String>;

type Answering = fn(Call) -> Pin<Box<dyn Future<Output = Answer> + Send>>;

/// A command that was sent.
struct Call {
    rpc: Arc<Rpc>,
    command: Command,
}

impl Call {
    fn session(&self) -> Session {
        self.rpc.session()
    }

    fn fields(&self) -> &Fields {
        &self.command.fields
    }
}

/// One row of the table.
pub struct Entry {
    name: &'static str,
    /// It is usually done at once, and answers then come in the order of the questions.
    pub is_quick: bool,
    work: Work,
}

enum Work {
    Answers(Answering),
    /// Answers when it knows what becomes of it, and goes on.
    Goes(fn(Call, Reply) -> Running),
}

const fn quick(name: &'static str, work: Answering) -> Entry {
    Entry {
        name,
        is_quick: true,
        work: Work::Answers(work),
    }
}

const fn long(name: &'static str, work: Answering) -> Entry {
    Entry {
        name,
        is_quick: false,
        work: Work::Answers(work),
    }
}

const GROUPS: &[&[Entry]] = &[
    prompting::COMMANDS,
    queues::COMMANDS,
    reading::COMMANDS,
    model::COMMANDS,
    compaction::COMMANDS,
    bash::COMMANDS,
    sessions::COMMANDS,
    tree::COMMANDS,
    resources::COMMANDS,
];

/// The command of that name.
pub fn find(name: &str) -> Option<&'static Entry> {
    let mut all = GROUPS.iter().copied().flatten();
    all.find(|entry| entry.name == name)
}

impl Entry {
    /// Begins it; the answer is given when it is known.
    pub fn run(&self, rpc: Arc<Rpc>, command: Command, reply: Reply) -> Running {
        let call = Call { rpc, command };
        match self.work {
            Work::Goes(work) => work(call, reply),
            Work::Answers(work) => {
                let working = work(call);
                Box::pin(async move {
                    match working.await {
                        Ok(data) => reply.success(data),
                        Err(error) => reply.failure(&error),
                    }
                })
            }
        }
    }
}

/// An error as its sentence.
fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_command_of_the_contract_is_there_once() {
        // interfaces §8.2
        let contract = "prompt steer follow_up abort clear_queue new_session get_state get_messages \
            set_model cycle_model get_available_models set_thinking_level cycle_thinking_level \
            get_available_thinking_levels set_steering_mode set_follow_up_mode compact \
            set_auto_compaction set_auto_retry abort_retry bash abort_bash get_session_stats \
            export_html switch_session fork clone get_fork_messages get_entries get_tree \
            get_last_assistant_text set_session_name get_commands navigate_tree set_label reload get_plugins";
        let names = GROUPS.iter().copied().flatten().map(|entry| entry.name);
        let names: Vec<_> = names.collect();
        let unique: HashSet<_> = names.iter().copied().collect();
        assert_eq!(unique.len(), names.len());
        assert_eq!(unique, contract.split_whitespace().collect());
    }
}
