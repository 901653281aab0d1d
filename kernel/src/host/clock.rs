//! The wall clock, and waiting. How a time is written in files belongs to the session tree.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Unix milliseconds. A clock set before 1970 reads 0.
#[must_use]
pub fn now_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Waits. Dropping the future ends the wait.
pub async fn sleep_ms(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}
