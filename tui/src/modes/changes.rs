//! What a reload did, in lines for people.

use pliant_sdk::event::{SourceChange, SourceOutcome};

/// A line for each source that changed or could not, and how many were only started anew.
pub fn lines(changes: &[SourceChange]) -> Vec<String> {
    let mut lines: Vec<String> = changes.iter().filter_map(line).collect();
    let restarted = changes.iter();
    let restarted = restarted.filter(|change| is_plain_restart(change)).count();
    match restarted {
        0 => {}
        1 => lines.push("1 unchanged source was started anew".to_owned()),
        more => lines.push(format!("{more} unchanged sources were started anew")),
    }
    lines
}

fn is_plain_restart(change: &SourceChange) -> bool {
    change.outcome == SourceOutcome::Restarted && change.message.is_none()
}

fn line(change: &SourceChange) -> Option<String> {
    let SourceChange {
        source,
        outcome,
        from,
        to,
        message,
        ..
    } = change;
    let done = match outcome {
        SourceOutcome::Unchanged => return None,
        SourceOutcome::Restarted if message.is_none() => return None,
        SourceOutcome::Failed => {
            let why = message.as_deref().unwrap_or("no reason is known");
            return Some(format!("{source} was not reloaded: {why}"));
        }
        SourceOutcome::Added => with(format!("{source} is new"), to.as_deref()),
        SourceOutcome::Reloaded => match (from, to) {
            (Some(from), Some(to)) => format!("{source} was reloaded ({from} is now {to})"),
            _ => with(format!("{source} was reloaded"), to.as_deref()),
        },
        SourceOutcome::Restarted => format!("{source} was started anew"),
        SourceOutcome::Removed => format!("{source} is gone"),
    };
    Some(match message {
        Some(message) => format!("{done}. {message}"),
        None => done,
    })
}

/// With the content, where it is one that has a hash.
fn with(done: String, content: Option<&str>) -> String {
    match content {
        Some(content) => format!("{done} ({content})"),
        None => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(source: &str, outcome: SourceOutcome) -> SourceChange {
        SourceChange {
            source: source.to_owned(),
            path: None,
            outcome,
            generation: Some(2),
            from: Some("0a".to_owned()),
            to: Some("0b".to_owned()),
            message: None,
        }
    }

    #[test]
    fn what_changed_has_a_line_with_both_contents_and_what_was_only_started_anew_is_counted() {
        // E07
        let failed = SourceChange {
            message: Some("It has no end.".to_owned()),
            ..change("c", SourceOutcome::Failed)
        };
        let changes = [
            change("a", SourceOutcome::Reloaded),
            change("b", SourceOutcome::Restarted),
            failed,
            change("d", SourceOutcome::Unchanged),
            change("e", SourceOutcome::Removed),
        ];
        let expected = [
            "a was reloaded (0a is now 0b)",
            "c was not reloaded: It has no end.",
            "e is gone",
            "1 unchanged source was started anew",
        ];
        assert_eq!(lines(&changes), expected);
    }

    #[test]
    fn what_has_no_hash_is_told_without_one() {
        let texts = [
            SourceChange::new("skill:tidy", None, SourceOutcome::Added),
            SourceChange::new("settings.json", None, SourceOutcome::Reloaded).saying("a changed."),
        ];
        let expected = [
            "skill:tidy is new",
            "settings.json was reloaded. a changed.",
        ];
        assert_eq!(lines(&texts), expected);
    }
}
