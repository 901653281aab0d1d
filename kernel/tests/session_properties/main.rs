//! What holds for a session whatever happens to it (`kernel.md` §9): a script is drawn, played against
//! a session in memory or on disk, and everything that was seen is checked against the invariants.
//!
//! The number of cases is small, so that this ends soon; `PROPTEST_CASES=20000` asks for more. A script
//! that breaks an invariant is made smaller and becomes a test with a name in [`found`].

#![allow(clippy::unwrap_used, reason = "test code")]

mod script;

mod extension;
mod model;
mod tools;

mod play;
mod record;

mod checks;
mod found;
mod input;

use proptest::prelude::*;
use proptest::test_runner::Config;

use script::{Script, script};

/// So many cases unless the environment says otherwise. A failure becomes a test with a name, not a
/// file with a seed.
fn cases(cases: u32) -> Config {
    let config = Config {
        failure_persistence: None,
        max_shrink_iters: 4_000,
        ..Config::default()
    };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => config,
        None => Config { cases, ..config },
    }
}

/// Plays a script and checks what was seen of it.
fn check(script: &Script) {
    let record = play::play(script);
    checks::all(script, &record);
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn whatever_happens_to_a_session_the_invariants_hold(script in script()) {
        // invariants 1-5, 8-12, 14-29, 34, 37-40
        check(&script);
    }
}
