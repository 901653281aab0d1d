//! The loop between surroundings that a session never makes: every answer of a boundary, and hooks that
//! fail.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use pliant_sdk::StreamEvent;
use pliant_sdk::message::{Content, StopReason, ToolCall, joined_text};

use super::*;

/// Surroundings that answer from lists and note what happens.
#[derive(Default)]
struct Script(Mutex<Lists>);

#[derive(Default)]
struct Lists {
    answers: VecDeque<AssistantMessage>,
    /// What the next answer streams first.
    streamed: Vec<StreamEvent>,
    steering: VecDeque<&'static str>,
    follow_up: VecDeque<&'static str>,
    boundaries: VecDeque<NextStep>,
    preparations: VecDeque<Result<(), Error>>,
    /// Messages that can be stored; more cannot.
    room: Option<usize>,
    cancel: CancellationToken,
    log: Vec<String>,
}

fn said(text: &str) -> AssistantMessage {
    AssistantMessage {
        content: vec![Content::text(text)],
        ..AssistantMessage::default()
    }
}

/// Calls a tool that there is not, which is a result like any other.
fn calls() -> AssistantMessage {
    let call = ToolCall {
        id: "a".into(),
        name: "none".into(),
        ..ToolCall::default()
    };
    AssistantMessage {
        content: vec![Content::ToolCall(call)],
        stop_reason: StopReason::ToolUse,
        ..AssistantMessage::default()
    }
}

fn user(text: &str) -> Message {
    Message::user(text, 1)
}

impl Script {
    fn new(answers: impl IntoIterator<Item = AssistantMessage>) -> Self {
        let script = Self::default();
        script.lists().answers = answers.into_iter().collect();
        script
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.0.lock().unwrap()
    }

    /// The run's outcome, and what was noted.
    async fn run(&self, begin: Begin) -> (RunOutcome, Vec<String>) {
        let cancel = self.lists().cancel.clone();
        let outcome = run(self, begin, &cancel).await;
        (outcome, std::mem::take(&mut self.lists().log))
    }
}

fn shown(message: &Message) -> String {
    match message {
        Message::User(user) => user.content.joined_text(""),
        Message::Assistant(answer) if answer.stop_reason.is_failure() => {
            let why = answer.error_message.as_deref().unwrap_or_default();
            format!("{}: {why}", answer.stop_reason.as_str())
        }
        Message::Assistant(answer) => joined_text(&answer.content, ""),
        other => other.role().to_owned(),
    }
}

impl Driver for Script {
    async fn emit(&self, event: Event) {
        let word = match &event {
            Event::AgentStart => "agent_start",
            Event::TurnStart => "turn_start",
            Event::TurnEnd { .. } => "turn_end",
            _ => return,
        };
        self.lists().log.push(word.to_owned());
    }

    async fn message_end(&self, message: Message) -> Result<Arc<Message>, Error> {
        let mut lists = self.lists();
        if let Some(room) = &mut lists.room {
            *room = room
                .checked_sub(1)
                .ok_or_else(|| Error::failed("the disk is full"))?;
        }
        lists.log.push(shown(&message));
        Ok(Arc::new(message))
    }

    async fn poll_steering(&self) -> Vec<Message> {
        self.lists()
            .steering
            .pop_front()
            .map(user)
            .into_iter()
            .collect()
    }

    async fn poll_follow_up(&self) -> Vec<Message> {
        self.lists()
            .follow_up
            .pop_front()
            .map(user)
            .into_iter()
            .collect()
    }

    async fn prepare_next_turn(&self) -> Result<Vec<Message>, Error> {
        let mut lists = self.lists();
        let prepared = lists.preparations.pop_front().unwrap_or(Ok(()));
        if prepared
            .as_ref()
            .is_err_and(|error| error.message == "aborted")
        {
            lists.cancel.cancel();
        }
        prepared.map(|()| Vec::new())
    }

    async fn declare(&self, batch: Vec<Message>) -> Vec<Message> {
        batch
    }

    fn template(&self) -> AssistantMessage {
        AssistantMessage::default()
    }

    async fn request(&self, _: &CancellationToken) -> Result<Answer, Error> {
        let answer = self.lists().answers.pop_front();
        let answer = answer.ok_or_else(|| Error::failed("no answer is left"))?;
        let (sender, events) = event_channel();
        sender.send(std::mem::take(&mut self.lists().streamed));
        Ok(Answer {
            template: AssistantMessage::default(),
            events,
            done: Box::pin(std::future::ready(Ok(answer))),
        })
    }

    fn tool(&self, _: &str, _: Reach) -> Option<Arc<dyn ToolRunner>> {
        None
    }

    fn tool_names(&self, _: Reach) -> Vec<String> {
        Vec::new()
    }

    fn execution_mode(&self) -> ExecutionMode {
        ExecutionMode::Parallel
    }

    async fn before_tool_call(
        &self,
        _: &Call,
        arguments: Map<String, Value>,
    ) -> Result<Verdict, Error> {
        Ok(Verdict::Run(arguments))
    }

    async fn after_tool_call(
        &self,
        _: &Call,
        _: &Map<String, Value>,
        result: ToolResult,
    ) -> ToolResult {
        result
    }

    async fn finish_turn(
        &self,
        _: &Arc<Message>,
        _: &[Arc<Message>],
        _: bool,
    ) -> Result<NextStep, Error> {
        let next = self.lists().boundaries.pop_front();
        Ok(next.unwrap_or_default())
    }

    fn now_ms(&self) -> i64 {
        1
    }

    fn thinking_level(&self) -> ThinkingLevel {
        ThinkingLevel::Off
    }
}

#[tokio::test]
async fn a_boundary_that_continues_gets_exactly_one_more_request() {
    // L18
    let script = Script::new([said("one"), said("two"), said("three")]);
    script.lists().boundaries = [NextStep::Continue].into();
    let (outcome, log) = script.run(Begin::Prompt(vec![user("hi")])).await;
    assert_eq!(
        log,
        [
            "agent_start",
            "turn_start",
            "hi",
            "one",
            "turn_end",
            "turn_start",
            "two",
            "turn_end"
        ]
    );
    // L17
    assert_eq!(outcome.messages.len(), 3);
}

#[tokio::test]
async fn what_comes_anyway_satisfies_a_boundary_that_continues() {
    // L18: tool results, steering, follow-ups
    let script = Script::new([calls(), said("two"), said("three"), said("four")]);
    script.lists().boundaries = [NextStep::Continue; 3].into();
    script.lists().steering = [].into();
    script.lists().follow_up = ["later"].into();
    let (_, log) = script.run(Begin::Prompt(vec![user("hi")])).await;
    let turns = log.iter().filter(|word| *word == "turn_end").count();
    // The calls' turn, the answer to them, the follow-up's; the last of them continued for nothing.
    assert_eq!(turns, 4, "{log:?}");
    assert_eq!(script.lists().answers.len(), 0);

    let script = Script::new([said("one"), said("two"), said("three")]);
    script.lists().boundaries = [NextStep::Continue].into();
    script.lists().steering = ["first", "second"].into();
    let (_, log) = script.run(Begin::Queued(vec![user("hi")])).await;
    let turns = log.iter().filter(|word| *word == "turn_end").count();
    assert_eq!(turns, 3, "{log:?}");
}

#[tokio::test]
async fn a_boundary_that_ends_the_run_leaves_the_queues_as_they_are() {
    // L18
    let script = Script::new([calls(), said("never")]);
    script.lists().boundaries = [NextStep::End].into();
    script.lists().follow_up = ["later"].into();
    let (_, log) = script.run(Begin::Tail).await;
    assert_eq!(
        log,
        ["agent_start", "turn_start", "", "toolResult", "turn_end"]
    );
    assert_eq!(script.lists().follow_up.len(), 1);
}

#[tokio::test]
async fn a_failed_answer_ends_the_run_whatever_the_boundary_says() {
    // L16
    let failed = AssistantMessage {
        stop_reason: StopReason::Error,
        error_message: Some("down".into()),
        ..calls()
    };
    let script = Script::new([failed, said("never")]);
    script.lists().boundaries = [NextStep::Continue].into();
    script.lists().follow_up = ["later"].into();
    let (_, log) = script.run(Begin::Prompt(vec![user("hi")])).await;
    assert_eq!(
        log,
        ["agent_start", "turn_start", "hi", "error: down", "turn_end"]
    );
    assert_eq!(script.lists().follow_up.len(), 1);
}

#[tokio::test]
async fn a_batch_from_a_queue_is_not_joined_by_another_one() {
    // L3, L8: the prompt of a run is no batch
    let script = Script::new([said("one"), said("two")]);
    script.lists().steering = ["steer"].into();
    let (_, log) = script.run(Begin::Queued(vec![user("batch")])).await;
    assert_eq!(
        log,
        [
            "agent_start",
            "turn_start",
            "batch",
            "one",
            "turn_end",
            "turn_start",
            "steer",
            "two",
            "turn_end"
        ]
    );
    let script = Script::new([said("one")]);
    script.lists().steering = ["steer"].into();
    let (_, log) = script.run(Begin::Prompt(vec![user("prompt")])).await;
    assert_eq!(log[2..4], ["prompt", "steer"]);
}

#[tokio::test]
async fn a_run_whose_hook_fails_ends_with_an_answer_that_says_why() {
    // L7, L32
    for (why, answer) in [
        ("no room", "error: no room"),
        ("aborted", "aborted: aborted"),
    ] {
        let script = Script::new([calls(), said("never")]);
        script.lists().preparations = [Err(Error::failed(why))].into();
        let (outcome, log) = script.run(Begin::Prompt(vec![user("hi")])).await;
        assert!(outcome.failure.is_none());
        assert_eq!(
            log,
            [
                "agent_start",
                "turn_start",
                "hi",
                "",
                "toolResult",
                "turn_end",
                "turn_start",
                answer,
                "turn_end"
            ]
        );
        let last = outcome.messages.last().unwrap().as_assistant().unwrap();
        assert_eq!(last.content, [Content::text("")]);
        assert_eq!(last.usage, pliant_sdk::message::Usage::default());
    }
}

#[tokio::test]
async fn a_run_that_cannot_be_stored_stops_where_it_is() {
    // L7, S12
    let script = Script::new([said("lost")]);
    script.lists().room = Some(1);
    let (outcome, log) = script.run(Begin::Prompt(vec![user("hi")])).await;
    assert_eq!(outcome.failure.unwrap().message, "the disk is full");
    assert_eq!(log, ["agent_start", "turn_start", "hi"]);
    assert_eq!(outcome.messages.len(), 1);
}

#[tokio::test]
async fn steering_comes_before_follow_ups_and_each_waits_for_an_answer() {
    // L9, measured: S1, S2, F1 and F2 are queued during the first answer
    let script = Script::new(["1", "2", "3", "4", "5"].map(said));
    script.lists().steering = ["S1", "S2"].into();
    script.lists().follow_up = ["F1", "F2"].into();
    let (_, log) = script.run(Begin::Queued(vec![user("hi")])).await;
    let talk: Vec<_> = log.iter().filter(|word| word.len() < 3).collect();
    assert_eq!(
        talk,
        ["hi", "1", "S1", "2", "S2", "3", "F1", "4", "F2", "5"]
    );
}

#[tokio::test]
async fn an_answer_of_nothing_but_beginnings_is_cut_off_like_any_that_never_ends() {
    // L21, L22
    let script = Script::new([said("never read")]);
    let begins = |content_index| StreamEvent::TextStart { content_index };
    let endless = (0..70_000).map(begins);
    script.lists().streamed = std::iter::once(StreamEvent::Start).chain(endless).collect();
    let (_, log) = script.run(Begin::Prompt(vec![user("go")])).await;
    let cut = "error: the answer is longer than 64 MB and was cut off";
    assert!(log.iter().any(|line| line == cut), "{log:?}");
}
