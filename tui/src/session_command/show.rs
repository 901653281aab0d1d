//! `pliant session show`: a session as a tree. The active branch stands at the margin; what branched
//! off stands indented before it goes on, so that only branches cost width.

use std::collections::HashSet;
use std::fmt::Write;

use clap::Args;
use pliant_kernel::boot::SessionFolders;
use pliant_kernel::tree::{
    Entry, EntryBody, EntryId, Ids, Node, Replacement, SessionTree, ms_from_iso, one_line,
};
use pliant_sdk::message::{AssistantMessage, Content, Message, MessageContent, SystemMessage};

use super::{first_words, minute, print, tell_damage};
use crate::say::printable;

/// Characters of what an entry says.
const WORDS: usize = 72;

/// Branches of branches are indented so often; a tree that goes deeper is still shown whole.
const DEEPEST: usize = 24;

/// Show a session as a tree; the active branch is marked.
#[derive(Args)]
pub struct Show {
    /// Its file, or the beginning of its id.
    session: String,
}

impl Show {
    pub fn run(&self, folders: &SessionFolders) -> anyhow::Result<u8> {
        let path = folders.find(&self.session)?;
        let session = SessionTree::read(&path, Ids::system())?;
        tell_damage(session.damage());
        let path = one_line(&path.display().to_string());
        print(&format!(
            "{}{}\n\n{}",
            head(&session),
            printable(&path),
            tree(&session)
        ))
    }
}

/// What is known of the whole session.
fn head(session: &SessionTree) -> String {
    let header = session.header();
    let name = first_words(session.name().unwrap_or("(no name)"), WORDS);
    let begun = match ms_from_iso(&header.timestamp) {
        Some(ms) => format!("{} UTC", minute(ms)),
        None => "at an unknown time".to_owned(),
    };
    let usage = session.usage_totals();
    let mut head = format!(
        "{name}\n{}, begun {begun}\n{} entries, {} tokens in, {} out, ${:.4}\n{}\n",
        first_words(header.id.as_str(), WORDS),
        session.entries().len(),
        usage.input + usage.cache_read + usage.cache_write,
        usage.output,
        usage.cost.total,
        printable(&one_line(&header.cwd.to_string_lossy())),
    );
    if let Some(parent) = &header.parent_session {
        let parent = one_line(&parent.to_string_lossy());
        let _ = writeln!(head, "forked from {}", printable(&parent));
    }
    head
}

/// Where a node stands in the picture.
#[derive(Clone, Copy)]
struct Place {
    number: usize,
    depth: usize,
    /// The first of a branch.
    branches: bool,
}

fn tree(session: &SessionTree) -> String {
    let nodes = session.nodes();
    let active: HashSet<&EntryId> = session.path_to_leaf().iter().map(|e| e.id()).collect();
    let is_active = |number: &usize| active.contains(nodes.all[*number].entry.id());
    let mut text = String::new();
    let mut open = Vec::new();
    push(&mut open, &nodes.roots, 0, is_active);
    // A session may be as deep as it is long, so this does not call itself.
    while let Some(place) = open.pop() {
        let node = &nodes.all[place.number];
        text.push_str(&line(node, place, is_active(&place.number)));
        push(&mut open, &node.children, place.depth, is_active);
    }
    text
}

/// Puts the nodes that follow another one on the stack, so that the one that goes on (the active one,
/// else the latest) is taken last.
fn push(open: &mut Vec<Place>, nodes: &[usize], depth: usize, is_active: impl Fn(&usize) -> bool) {
    let Some(goes_on) = nodes
        .iter()
        .position(is_active)
        .or(nodes.len().checked_sub(1))
    else {
        return;
    };
    open.push(Place {
        number: nodes[goes_on],
        depth,
        branches: false,
    });
    for (at, number) in nodes.iter().enumerate().rev() {
        if at != goes_on {
            open.push(Place {
                number: *number,
                depth: depth + 1,
                branches: true,
            });
        }
    }
}

fn line(node: &Node, place: Place, active: bool) -> String {
    let entry = &node.entry;
    let margin = match place.depth {
        0 => String::from(if active { "* " } else { "  " }),
        depth => {
            let outer = "│ ".repeat(depth.min(DEEPEST) - 1);
            outer + if place.branches { "├─" } else { "│ " }
        }
    };
    let label = node.label.as_ref();
    let label = label.map_or_else(String::new, |label| {
        format!("[{}] ", first_words(&label.text, WORDS))
    });
    let id = first_words(entry.id().as_str(), WORDS);
    let line = format!("{margin}{id}  {:10}  {label}{}", kind(entry), gist(entry));
    format!("{}\n", line.trim_end())
}

/// The role of a message, the type of anything else.
fn kind(entry: &Entry) -> String {
    let body = entry.body();
    let kind = match body {
        EntryBody::Message(message) => message.role(),
        body => body.type_name(),
    };
    first_words(kind, WORDS)
}

/// The first words of an entry.
fn gist(entry: &Entry) -> String {
    let text = match entry.body() {
        EntryBody::Message(message) => message_gist(message),
        EntryBody::CustomMessage(custom) => {
            format!("{}: {}", custom.custom_type, content_gist(&custom.content))
        }
        EntryBody::Compaction(compaction) => compaction.summary.clone(),
        EntryBody::BranchSummary(summary) => summary.summary.clone(),
        EntryBody::ContextEdit(edit) => match &edit.replacement {
            Replacement::Omit => format!("{} is left out", edit.target_id),
            Replacement::Content(content) => {
                format!("{} reads: {}", edit.target_id, content_gist(content))
            }
        },
        EntryBody::ModelChange(change) => format!("{}/{}", change.provider, change.model_id),
        EntryBody::ThinkingLevelChange(change) => change.thinking_level.clone(),
        EntryBody::Usage(usage) => {
            format!("{}: {} tokens", usage.kind, usage.usage.context_tokens())
        }
        EntryBody::Custom(custom) => custom.custom_type.clone(),
        EntryBody::Label(change) => match &change.label {
            Some(label) => format!("{}: {label}", change.target_id),
            None => format!("{} has none", change.target_id),
        },
        EntryBody::SessionInfo(info) => info.name.clone(),
        EntryBody::Other(_) => String::new(),
    };
    first_words(&text, WORDS)
}

fn message_gist(message: &Message) -> String {
    match message {
        Message::System(system) => system_gist(system),
        Message::User(user) => content_gist(&user.content),
        Message::Assistant(answer) => answer_gist(answer),
        Message::ToolResult(result) => {
            let failed = if result.is_error { " failed" } else { "" };
            let said = blocks_gist(&result.content);
            format!("{}{failed}: {said}", result.tool_name)
        }
        Message::BashExecution(run) => format!("$ {}", run.command),
        Message::Custom(custom) => {
            format!("{}: {}", custom.custom_type, content_gist(&custom.content))
        }
        Message::CompactionSummary(summary) => summary.summary.clone(),
        Message::BranchSummary(summary) => summary.summary.clone(),
        Message::Other(_) => String::new(),
    }
}

/// What a system message changes.
fn system_gist(system: &SystemMessage) -> String {
    let mut parts = vec![system.content.joined_text(" ")];
    if let Some(sections) = &system.sections {
        let names: Vec<&str> = sections.keys().map(String::as_str).collect();
        parts.push(format!("sections {}", names.join(", ")));
    }
    let added = system.tools_added.iter().flatten();
    let removed = system.tools_removed.iter().flatten();
    parts.extend(added.map(|tool| format!("+{}", tool.name)));
    parts.extend(removed.map(|tool| format!("-{}", tool.name)));
    parts.join(" ")
}

/// What was said, what was called, and why it ended early.
fn answer_gist(answer: &AssistantMessage) -> String {
    let said = blocks_gist(&answer.content);
    let calls = answer.tool_calls().map(|call| {
        let arguments = serde_json::to_string(&call.arguments).unwrap_or_default();
        format!("→ {} {arguments}", call.name)
    });
    let calls = calls.collect::<Vec<_>>().join(" ");
    let failed = match &answer.error_message {
        Some(cause) if answer.stop_reason.is_failure() => format!("({cause})"),
        _ if answer.stop_reason.is_failure() => format!("({})", answer.stop_reason.as_str()),
        _ => String::new(),
    };
    let said = if calls.is_empty() {
        said
    } else {
        first_words(&said, WORDS / 2)
    };
    format!("{said} {calls} {failed}")
}

fn content_gist(content: &MessageContent) -> String {
    match content {
        MessageContent::Text(text) => text.clone(),
        MessageContent::Blocks(blocks) => blocks_gist(blocks),
    }
}

fn blocks_gist(blocks: &[Content]) -> String {
    let words: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            Content::Text(text) => Some(&*text.text),
            Content::Image(_) => Some("(image)"),
            _ => None,
        })
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pliant_kernel::tree::CustomEntry;

    use super::*;

    fn append(session: &mut SessionTree, custom_type: &str) -> EntryId {
        let entry = CustomEntry {
            custom_type: custom_type.to_owned(),
            data: None,
        };
        let entry = session.append(EntryBody::Custom(entry));
        entry.expect("memory takes everything").id().clone()
    }

    /// The picture without the ids.
    fn picture(session: &SessionTree) -> String {
        let mut text = tree(session);
        for entry in session.entries() {
            text = text.replace(&format!("{}  custom      ", entry.id()), "");
        }
        text
    }

    #[test]
    fn only_branches_cost_width_and_the_active_one_costs_none() {
        // S24
        let mut session = SessionTree::in_memory(Path::new("/"), None, Ids::system());
        append(&mut session, "other root");
        session.reset_leaf();
        let root = append(&mut session, "root");
        let a = append(&mut session, "a");
        append(&mut session, "a1");
        session.branch(&a).expect("it is there");
        append(&mut session, "a2");
        append(&mut session, "a3");
        session.branch(&root).expect("it is there");
        append(&mut session, "b");
        append(&mut session, "c");
        let wanted = "\
├─other root
* root
├─a
│ ├─a1
│ a2
│ a3
* b
* c
";
        assert_eq!(picture(&session), wanted);
    }

    #[test]
    fn a_tree_of_any_depth_is_shown_with_lines_of_bounded_width() {
        // S24
        let mut session = SessionTree::in_memory(Path::new("/"), None, Ids::system());
        let root = append(&mut session, "root");
        let mut deepest = root.clone();
        for _ in 0..3000 {
            session.branch(&deepest).expect("it is there");
            let next = append(&mut session, "down");
            session.branch(&deepest).expect("it is there");
            append(&mut session, "aside");
            deepest = next;
        }
        session.branch(&root).expect("it is there");
        append(&mut session, "leaf");
        let text = tree(&session);
        assert_eq!(text.lines().count(), 6002);
        assert!(
            text.lines()
                .all(|line| line.chars().count() < 2 * DEEPEST + WORDS)
        );
    }
}
