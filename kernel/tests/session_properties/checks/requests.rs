//! What the model was asked.

use std::collections::BTreeSet;
use std::sync::Arc;

use pliant_sdk::Message;
use pliant_sdk::history::replay;

use super::{Broken, require};
use crate::extension::has_late_tool;
use crate::model::Request;
use crate::record::Record;
use crate::script::{Script, What};

/// Invariants 9, 10, 12 and 14.
pub fn check(script: &Script, record: &Record) -> Broken {
    let mut earlier = 1;
    // Another place may have been without the tool that comes and goes (T24).
    let moves = script
        .acts
        .iter()
        .any(|act| matches!(act.what, What::Navigate(..)));
    for Request { loads, messages } in &record.requests {
        let (request, (sure, possible)) = (messages, loads);
        pairs(request)?;
        if !is_for_a_summary(request) {
            let between = earlier..=*possible;
            let elsewhere = moves.then_some(false);
            tools(
                request,
                between.map(has_late_tool).chain(elsewhere).collect(),
            )?;
            earlier = *sure;
        }
    }
    summaries(&record.messages)
}

fn is_for_a_summary(request: &[Arc<Message>]) -> bool {
    matches!(request.last().map(|last| &**last), Some(Message::User(user))
        if user.content.joined_text("").contains("<conversation>\n"))
}

/// Every call has one result right behind its answer, and every result has its call.
fn pairs(request: &[Arc<Message>]) -> Broken {
    let mut at = 0;
    while let Some(message) = request.get(at) {
        at += 1;
        let answer = match &**message {
            Message::System(_) | Message::User(_) => continue,
            Message::Assistant(answer) => answer,
            other => return Err(format!("a {} stands alone in a request", other.role())),
        };
        require(
            !answer.stop_reason.is_failure(),
            "a failed answer is sent again",
        )?;
        let mut wanted: Vec<&str> = answer.tool_calls().map(|call| &*call.id).collect();
        while let Some(Message::ToolResult(result)) = request.get(at).map(|next| &**next) {
            at += 1;
            let call = wanted.iter().position(|id| *id == result.tool_call_id);
            wanted.remove(call.ok_or("a result in a request has no call")?);
        }
        require(wanted.is_empty(), "a call in a request has no result")?;
    }
    Ok(())
}

/// The tools that a request declares.
pub fn declared(request: &[Arc<Message>]) -> BTreeSet<String> {
    let system = request.iter().filter_map(|message| match &**message {
        Message::System(system) => Some(system),
        _ => None,
    });
    let tools = replay(system).and_then(|system| system.tools_added);
    tools.into_iter().flatten().map(|tool| tool.name).collect()
}

/// The transcript declares what could be run at some time since the request before.
fn tools(request: &[Arc<Message>], late: BTreeSet<bool>) -> Broken {
    let declared = declared(request);
    let possible = late.into_iter().map(|late| {
        let late = if late { Some("late") } else { None };
        let names = ["echo", "slow"].into_iter().chain(late);
        names.map(str::to_owned).collect::<BTreeSet<_>>()
    });
    let possible: Vec<_> = possible.collect();
    require(
        possible.contains(&declared),
        format!("a request declares {declared:?} and not one of {possible:?}"),
    )
}

/// At most one summary, and nothing but the prompt before it.
fn summaries(messages: &[Arc<Message>]) -> Broken {
    let roles: Vec<&str> = messages.iter().map(|message| message.role()).collect();
    let Some(at) = roles.iter().position(|role| *role == "compactionSummary") else {
        return Ok(());
    };
    require(
        roles[..at].iter().all(|role| *role == "system") && at <= 1,
        format!("{:?} stand before the summary", &roles[..at]),
    )?;
    require(
        !roles[at + 1..].contains(&"compactionSummary"),
        "there are two summaries",
    )
}
