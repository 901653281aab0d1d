//! What holds for every history, however damaged (`kernel.md` §9, 9–12; M16, M18).

use std::collections::HashSet;

use pliant_tests::histories::{self, Dice};

use super::*;

const CASES: u64 = 1000;

/// As the wires name the answers of [`histories`].
fn speaker() -> Model {
    let [provider, api, id] = histories::SPEAKER.map(str::to_owned);
    Model {
        provider,
        api,
        id,
        ..Model::default()
    }
}

fn of_json(history: Vec<Value>) -> Vec<Arc<Message>> {
    history.into_iter().map(message).collect()
}

fn damaged(seed: u64) -> Vec<Arc<Message>> {
    of_json(histories::damaged(&mut Dice::new(seed)))
}

#[test]
fn every_call_has_one_result_directly_behind_it_and_every_result_a_call() {
    // Invariants 9, 10 and 11.
    for seed in 0..CASES {
        let prepared = prepare(&damaged(seed), &speaker(), &Rule);
        let mut ids = HashSet::new();
        let mut open: HashSet<&str> = HashSet::new();
        for message in &prepared {
            if let Message::ToolResult(result) = &**message {
                assert!(open.remove(result.tool_call_id.as_str()), "seed {seed}");
                continue;
            }
            assert!(open.is_empty(), "seed {seed}");
            let calls = message.as_assistant().into_iter();
            for call in calls.flat_map(AssistantMessage::tool_calls) {
                assert!(
                    Rule.accepts(&call.id) && ids.insert(&call.id),
                    "seed {seed}"
                );
                assert_eq!(tool_name(&call.name), call.name, "seed {seed}");
                open.insert(&call.id);
            }
        }
        assert!(open.is_empty(), "seed {seed}");
    }
}

#[test]
fn only_messages_that_models_get_are_left_and_they_keep_their_order() {
    // M16; invariant 12: a summary, which is a user message here, stays where it leads.
    for seed in 0..CASES {
        let messages = damaged(seed);
        let kept = |messages: &[Arc<Message>], role: &str| -> Vec<i64> {
            let of_role = messages.iter().filter(|message| message.role() == role);
            of_role.map(|message| time(message)).collect()
        };
        let prepared = prepare(&messages, &speaker(), &Rule);
        for role in ["system", "user"] {
            assert_eq!(kept(&prepared, role), kept(&messages, role), "seed {seed}");
        }
        for message in &prepared {
            assert!(
                ["system", "user", "assistant", "toolResult"].contains(&message.role()),
                "seed {seed}"
            );
        }
    }
}

fn time(message: &Message) -> i64 {
    match message {
        Message::System(message) => message.timestamp,
        Message::User(message) => message.timestamp,
        _ => 0,
    }
}

#[test]
fn what_is_prepared_needs_no_repair_and_stays_as_it_is() {
    for seed in 0..CASES {
        let prepared = prepare(&damaged(seed), &speaker(), &Rule);
        let again = prepare(&prepared, &speaker(), &Rule);
        assert_eq!(again, prepared, "seed {seed}");
        assert_eq!(repairs(&prepared), [], "seed {seed}");
    }
}

#[test]
fn a_sound_history_of_the_same_model_needs_no_repair() {
    for seed in 0..CASES {
        let mut history = histories::sound(&mut Dice::new(seed));
        // Ids that begin anew are damage, told as such.
        let calls: Vec<Value> = history
            .iter()
            .flat_map(|message| message["content"].as_array().cloned().unwrap_or_default())
            .filter(|block| block["type"] == "toolCall")
            .map(|call| call["id"].clone())
            .collect();
        let unique: HashSet<String> = calls.iter().map(ToString::to_string).collect();
        if unique.len() < calls.len() {
            continue;
        }
        for message in &mut history {
            if message["role"] == "assistant" {
                message["model"] = json!(histories::SPEAKER[2]);
            }
        }
        let messages = of_json(history);
        assert_eq!(repairs(&messages), [], "seed {seed}");
        let failed = |message: &&Arc<Message>| {
            !message
                .as_assistant()
                .is_some_and(|answer| answer.stop_reason.is_failure())
        };
        let seeing = Model {
            input: vec!["text".into(), "image".into()],
            ..speaker()
        };
        let prepared = prepare(&messages, &seeing, &AnyId);
        assert!(
            prepared
                .iter()
                .zip(messages.iter().filter(failed))
                .all(|(sent, stored)| sent == stored),
            "seed {seed}"
        );
    }
}

/// Parts must give what the whole gives, or ask for the whole.
#[test]
fn a_history_prepared_in_parts_is_the_whole() {
    let words = [
        "u",
        "sP",
        "a1",
        "a1,2",
        "a1:v,1",
        "x1|2",
        "!1",
        "r1",
        "r2=y",
        "r1|2",
        "r1=No_result_provided",
        "a",
    ];
    let mut dice = Dice::new(7);
    let mut in_parts = 0;
    for _ in 0..CASES {
        let length = 1 + dice.roll(12);
        let script: Vec<&str> = (0..length).map(|_| *dice.pick(&words)).collect();
        let messages = transcript(&script.join(" "));
        let mut whole = Preparer::default();
        let prepared = whole.extend(&messages, &model(), &Rule).unwrap();
        let cut = dice.roll(length + 1);
        let mut preparer = Preparer::default();
        let mut parts = preparer.extend(&messages[..cut], &model(), &Rule).unwrap();
        let Some(rest) = preparer.extend(&messages[cut..], &model(), &Rule) else {
            continue;
        };
        parts.extend(rest);
        in_parts += 1;
        assert_eq!(parts, prepared, "{script:?} cut at {cut}");
        assert_eq!(
            preparer.repairs(),
            whole.repairs(),
            "{script:?} cut at {cut}"
        );
    }
    assert!(in_parts > 500, "{in_parts}");
}

/// What every service checks, for every order of calls and results.
#[test]
fn every_order_of_calls_and_results_becomes_a_sound_one() {
    let words = [
        "u", "sP", "a1", "a1,2", "a1:v,1", "x3|4", "!1", "r1", "r2=y", "r3|4", "r9", "a", "a,",
    ];
    let mut dice = Dice::new(1);
    for _ in 0..CASES {
        let script: Vec<&str> = (0..10).map(|_| *dice.pick(&words)).collect();
        let prepared = prepare(&transcript(&script.join(" ")), &model(), &Rule);
        assert_eq!(repairs(&prepared), [], "{script:?}");
        assert_eq!(prepare(&prepared, &model(), &Rule), prepared, "{script:?}");
    }
}
