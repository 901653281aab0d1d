//! What holds for session trees whatever is done to them and whatever their files hold (`kernel.md`
//! §2, §9 invariants 1–8, 12, 13, 34–36).
//!
//! The numbers of cases are small, so that this ends soon; `PROPTEST_CASES=20000` asks for more.

#![allow(clippy::unwrap_used, reason = "test code")]

mod operation;
mod values;

mod reference;
mod session;

mod files;
mod forks;
#[cfg(unix)]
mod full;
mod operations;

#[path = "../../../tests/fuzz/checks/read_session.rs"]
mod read_session;

use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use pliant_kernel::tree::{Ids, SessionTree};
use proptest::test_runner::Config;

/// So many cases unless the environment says otherwise. A failure becomes a test with a name, not
/// a file with a seed.
fn cases(cases: u32) -> Config {
    let config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => config,
        None => Config { cases, ..config },
    }
}

/// A clock that ticks and dice that differ by their seed and nothing else.
fn ids(seed: u64) -> Ids {
    let clock = AtomicI64::new(1_767_225_600_000 + i64::try_from(seed).unwrap() * 1_000_000);
    let dice = AtomicU64::new(seed << 32);
    let roll = move || {
        let mut x = dice.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        u128::from(x ^ (x >> 31))
    };
    Ids::new(
        move || clock.fetch_add(1000, Ordering::Relaxed),
        move || roll() << 64 | roll(),
    )
}

fn cwd() -> &'static Path {
    Path::new("/work/demo")
}

fn open(path: &Path, seed: u64) -> SessionTree {
    SessionTree::open(path, cwd(), ids(seed)).unwrap()
}
