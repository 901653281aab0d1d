//! Scripts that once broke an invariant, by what was wrong.

use pliant_kernel::registry::HookPoint;

use crate::check;
use crate::checks::requests::declared;
use crate::play::play;
use crate::script::{Act, After, Handler, Manner, Reply, Say, Script, Setting, Way, What};

fn script(acts: impl IntoIterator<Item = (After, What)>) -> Script {
    let acts = acts.into_iter().map(|(after, what)| Act { after, what });
    Script {
        setting: Setting {
            on_disk: true,
            threads: false,
            all_steering: false,
            all_follow_ups: false,
            max_retries: 0,
            compacts: false,
        },
        replies: Vec::new(),
        generations: Vec::new(),
        acts: acts.collect(),
    }
}

/// An answer that waits before it ends.
fn waiting(what: Say) -> Reply {
    Reply {
        what,
        gates: (false, true),
        input: 0,
    }
}

const STEER: What = What::Prompt(Some(Way::Steer));
const FOLLOW_UP: What = What::Prompt(Some(Way::FollowUp));

#[test]
fn a_run_that_goes_on_with_a_steering_message_does_not_take_a_second_one() {
    // L3, L8, invariant 26
    let acts = [What::Prompt(None), STEER, STEER].map(|what| (After::Quiet, what));
    check(&Script {
        replies: vec![waiting(Say::Fail(0, "400: wrong"))],
        ..script(acts)
    });
}

#[test]
fn an_abort_between_answer_and_end_leaves_follow_ups_queued() {
    // L11, invariants 25 and 27
    let acts = [What::Prompt(None), STEER, FOLLOW_UP, What::Cancel];
    check(&Script {
        generations: vec![vec![Handler {
            point: HookPoint::TurnEnd,
            manner: Manner::Gate,
        }]],
        ..script(acts.map(|what| (After::Quiet, what)))
    });
}

#[test]
fn a_tool_that_comes_back_after_a_move_is_there_as_in_any_new_place() {
    // T22, T24, invariant 14
    let acts = [
        What::Reload,
        What::Navigate(1, false),
        What::Reload,
        What::Prompt(None),
    ];
    let script = script(acts.map(|what| (After::Quiet, what)));
    let record = play(&script);
    assert!(declared(&record.requests[0].messages).contains("late"));
}
