//! Sessions that are talked in, compacted, and sent about in their trees at random: what a place says is
//! what its branch says, whenever and from wherever the session comes there (`kernel.md` §9).

use std::collections::HashMap;
use std::sync::Arc;

use pliant_kernel::compaction::CompactionError;
use pliant_kernel::run::NavigateOptions;
use pliant_kernel::session::Session;
use pliant_kernel::tree::{EntryId, Ids, SessionTree};
use pliant_sdk::{Message, Plugin};
use pliant_tests::histories::Dice;
use serde_json::json;

use crate::compaction::{TOO_LARGE, small};
use crate::support::*;

const LIVES: u64 = 12;
const STEPS: usize = 30;

/// What the model answers next, for as long as anybody asks.
fn replies(dice: &mut Dice) -> Vec<Reply> {
    let said = |at: usize, length: usize| {
        let text = format!("answer-{at} {}", "word ".repeat(length));
        Reply::Answer(json!({"content": [{"type": "text", "text": text}]}))
    };
    let reply = |at| match dice.roll(10) {
        0 => Reply::Fail(TOO_LARGE),
        1 => Reply::Fail("503 unavailable"),
        2 | 3 => calls([(
            "call",
            "echo",
            json!({"text": "word ".repeat(dice.roll(40))}),
        )]),
        _ => said(at, dice.roll(40)),
    };
    (0..STEPS * 12).map(reply).collect()
}

#[tokio::test]
async fn a_place_says_the_same_whenever_the_session_comes_there() {
    // R38-R41, R25, invariants 1, 8, 12, 13, 34
    let (mut moved, mut compacted) = (0, 0);
    for seed in 0..LIVES {
        let mut dice = Dice::new(seed);
        let plugin = Plugin::new().tool(echo("echo"));
        let script = Script::new(replies(&mut dice));
        let mut scene = scene_with(script, plugin, small()).await;
        let mut places = Places::default();
        for step in 0..STEPS {
            match dice.roll(8) {
                0..=3 => drop(scene.prompt(&format!("prompt-{step}")).await),
                4 | 5 => moved += usize::from(wander(&scene.session, &mut dice).await),
                6 => compacted += usize::from(compact(&scene.session, seed).await),
                _ => name_a_place(&scene.session, &mut dice),
            }
            scene.events();
            places.check(&scene.session, &format!("seed {seed}, step {step}"));
        }
    }
    // The lives are ones in which something happens.
    assert!(moved > 40 && compacted > 5, "{moved} {compacted}");
}

async fn wander(session: &Session, dice: &mut Dice) -> bool {
    let entries = session.entries();
    let target = dice.pick(&entries).id().clone();
    let options = NavigateOptions {
        summarize: dice.once_in(2),
        label: dice.once_in(4).then(|| "here".to_owned()),
        ..NavigateOptions::default()
    };
    let before = session.messages();
    let gone = session.navigate_tree(&target, options).await;
    let after = session.messages();
    // One that failed may have cost something, which is an entry that says nothing.
    assert!(gone.is_ok() || before == after);
    gone.is_ok()
}

/// What stays are the last messages of before, and a second time nothing happens.
async fn compact(session: &Session, seed: u64) -> bool {
    let before = conversation(session);
    match session.compact(None).await {
        Ok(_) => {
            let kept = conversation(session);
            assert!(before.ends_with(&kept), "seed {seed}: {before:?} {kept:?}");
            let first = kept.first().map(|message| message.role());
            assert_ne!(first, Some("toolResult"), "seed {seed}");
            let again = session.compact(None).await;
            assert_eq!(again, Err(CompactionError::Compacted), "seed {seed}");
            true
        }
        Err(_) => {
            assert_eq!(conversation(session), before, "seed {seed}");
            false
        }
    }
}

fn name_a_place(session: &Session, dice: &mut Dice) {
    let entries = session.entries();
    let target = dice.pick(&entries).id().clone();
    session.set_label(&target, Some("a name")).unwrap();
    assert_eq!(session.label(&target).as_deref(), Some("a name"));
}

fn conversation(session: &Session) -> Vec<Arc<Message>> {
    let mut messages = session.messages();
    messages.retain(|message| !matches!(message.role(), "system" | "compactionSummary"));
    messages
}

/// What was said at each place when the session was there.
#[derive(Default)]
struct Places(HashMap<Option<EntryId>, Vec<Message>>);

impl Places {
    fn check(&mut self, session: &Session, when: &str) {
        assert!(session.is_idle(), "{when}");
        let leaf = session.leaf();
        let messages: Vec<Message> = session
            .messages()
            .iter()
            .map(|m| Message::clone(m))
            .collect();
        if let Some(file) = session.file().filter(|file| file.exists()) {
            let stored = SessionTree::read(&file, Ids::system()).unwrap();
            assert!(
                leaf.as_ref()
                    .is_none_or(|leaf| stored.entry(leaf).is_some())
            );
            let projection = stored.projection_at(leaf.as_ref());
            let stored = projection.messages().iter().map(|m| Message::clone(m));
            assert_eq!(messages, stored.collect::<Vec<_>>(), "{when}");
        }
        let roles: Vec<&str> = messages.iter().map(Message::role).collect();
        let summary = roles.iter().rposition(|role| *role == "compactionSummary");
        assert!(
            matches!(summary, None | Some(0))
                || roles[..2] == ["system", "compactionSummary"] && summary == Some(1),
            "{when}: {roles:?}"
        );
        let known = self.0.entry(leaf).or_insert_with(|| messages.clone());
        assert_eq!(*known, messages, "{when}");
    }
}
