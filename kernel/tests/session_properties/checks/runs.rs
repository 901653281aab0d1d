//! Turns, runs, attempts, compactions and the settling.

use pliant_kernel::session::Disposition;
use pliant_sdk::event::CompactionReason;
use pliant_sdk::message::StopReason;
use pliant_sdk::{Event, Message};

use super::{Broken, require, user_begins};
use crate::record::Record;
use crate::script::Script;

/// Invariants 18 to 22 and 40.
pub struct Runs {
    max_retries: u32,
    run: bool,
    turn: bool,
    /// Low-level runs since the last settling.
    runs: usize,
    settled: usize,
    /// The last end of a run said that an attempt follows.
    attempt_follows: bool,
    attempts: u32,
    /// Those that have no end yet. The session is idle before the end of one that the user wanted is
    /// told (R26), so on several threads the next may start before that.
    compactions: Vec<CompactionReason>,
    threads: bool,
    /// A request was made shorter, and nothing good came since.
    recovered: bool,
}

impl Runs {
    pub fn new(script: &Script) -> Self {
        Self {
            max_retries: script.setting.max_retries,
            run: false,
            turn: false,
            runs: 0,
            settled: 0,
            attempt_follows: false,
            attempts: 0,
            compactions: Vec::new(),
            threads: script.setting.threads,
            recovered: false,
        }
    }

    pub fn see(&mut self, event: &Event) -> Broken {
        if user_begins(event).is_some() {
            self.recovered = false;
        }
        match event {
            Event::AgentStart => {
                require(!self.run && !self.turn, "a run starts inside a run")?;
                require(
                    !self.attempt_follows,
                    "an attempt was promised, and a run starts without one",
                )?;
                self.run = true;
                self.runs += 1;
                Ok(())
            }
            Event::TurnStart => {
                require(self.run && !self.turn, "a turn starts outside a run")?;
                self.turn = true;
                Ok(())
            }
            Event::TurnEnd { .. } => {
                require(self.turn, "a turn ends that has not started")?;
                self.turn = false;
                Ok(())
            }
            Event::AgentEnd { will_retry, .. } => {
                require(self.run && !self.turn, "a run ends inside a turn, or twice")?;
                self.run = false;
                self.attempt_follows = *will_retry;
                Ok(())
            }
            Event::AgentSettled { aborted } => self.settles(*aborted),
            Event::AutoRetryStart {
                attempt,
                max_attempts,
                ..
            } => {
                self.attempt_follows = false;
                self.attempts += 1;
                require(
                    *attempt == self.attempts && *max_attempts == self.max_retries,
                    "attempts are not counted one by one",
                )?;
                require(*attempt <= self.max_retries, "there are too many attempts")
            }
            Event::AutoRetryEnd { attempt, .. } => {
                require(
                    *attempt > 0 && *attempt == self.attempts,
                    "a series of attempts ends that has not begun, or with another number",
                )?;
                self.attempts = 0;
                Ok(())
            }
            Event::CompactionStart { reason } => {
                require(
                    self.threads || self.compactions.is_empty(),
                    "a compaction starts inside one",
                )?;
                self.compactions.push(*reason);
                Ok(())
            }
            Event::CompactionEnd { .. } => self.compacted(event),
            Event::MessageEnd { message } => {
                self.answered(message);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn settles(&mut self, aborted: bool) -> Broken {
        require(!self.run && !self.turn, "the session settles inside a run")?;
        require(self.runs > 0, "the session settles without a run")?;
        require(
            !self.attempt_follows || aborted,
            "an attempt was promised and none came",
        )?;
        require(self.attempts == 0, "a series of attempts has no end")?;
        require(
            self.threads || self.compactions.is_empty(),
            "a compaction has no end",
        )?;
        self.attempt_follows = false;
        self.runs = 0;
        self.settled += 1;
        Ok(())
    }

    fn compacted(&mut self, event: &Event) -> Broken {
        let Event::CompactionEnd {
            reason,
            result,
            will_retry,
            error_message,
            aborted,
        } = event
        else {
            return Ok(());
        };
        let started = self
            .compactions
            .iter()
            .position(|started| started == reason);
        match started {
            Some(started) => drop(self.compactions.remove(started)),
            None => require(
                *reason == CompactionReason::Overflow && !will_retry && error_message.is_some(),
                "a compaction ends that has not started",
            )?,
        }
        require(
            usize::from(result.is_some())
                + usize::from(error_message.is_some())
                + usize::from(*aborted)
                == 1,
            "a compaction is done, failed or stopped",
        )?;
        if *will_retry {
            require(!self.recovered, "a request was made shorter twice")?;
            self.recovered = true;
        }
        Ok(())
    }

    fn answered(&mut self, message: &Message) {
        let Some(answer) = message.as_assistant() else {
            return;
        };
        if !matches!(answer.stop_reason, StopReason::Error | StopReason::Length) {
            self.recovered = false;
        }
    }

    /// Every prompt that started a run settled, and nothing else did (invariants 18 and 40).
    pub fn end(&self, record: &Record) -> Broken {
        require(!self.run && self.runs == 0, "a run has not settled")?;
        require(self.compactions.is_empty(), "a compaction has no end")?;
        let started = record
            .prompts
            .iter()
            .filter(|prompt| prompt.told().contains(&Disposition::Started));
        // One more is the probe's; messages may have started some too.
        let least = started.count() + 1;
        require(
            (least..=least + record.triggering).contains(&self.settled),
            "there are more or fewer settlings than prompts that started a run",
        )
    }
}
