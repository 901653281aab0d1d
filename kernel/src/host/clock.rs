//! Time for plugins, scripts and the kernel: the wall clock in milliseconds, its text form in
//! files and on the wire, elapsed time, and waiting. What is not here: calendars and time zones;
//! everything is UTC.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const DAY_MS: u64 = 86_400_000;

/// The last millisecond that still has a year of four digits, 9999-12-31T23:59:59.999Z.
const LAST_MS: u64 = 253_402_300_799_999;

/// Milliseconds since 1970, UTC. A clock before that reads 0.
#[must_use]
pub fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, whole_ms)
}

/// A point in time as session files write it: `2026-11-30T12:00:00.000Z`. Times after the year
/// 9999 read as its last millisecond, so that the text sorts as the times do.
#[must_use]
pub fn iso8601(ms: u64) -> String {
    let ms = ms.min(LAST_MS);
    let (year, month, day) = date_of(ms / DAY_MS);
    let of_day = ms % DAY_MS;
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, milli) = (of_day / 1000 % 60, of_day % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Measures elapsed time, whatever happens to the wall clock meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts at zero.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Whole milliseconds since the start.
    #[must_use]
    pub fn elapsed_ms(&self) -> u64 {
        whole_ms(self.0.elapsed())
    }
}

/// Waits. Dropping the future ends the wait.
pub async fn sleep_ms(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The date of a day counted from 1970-01-01, in the proleptic Gregorian calendar.
///
/// Years are counted from March, so that the leap day is the last day of a year and the months
/// before it have a fixed pattern of 153 days per five months.
fn date_of(day: u64) -> (u64, u64, u64) {
    const DAYS_PER_ERA: u64 = 146_097; // 400 years
    let day = day + 719_468; // from 0000-03-01
    let (era, of_era) = (day / DAYS_PER_ERA, day % DAYS_PER_ERA);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12 + 1;
    let next_year = u64::from(month <= 2);
    (era * 400 + year + next_year, month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_utc_with_milliseconds() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_796_040_000_000, "2026-11-30T12:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (LAST_MS, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(iso8601(ms), text);
        }
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut before = date_of(0);
        for day in 1..80_000 {
            let (year, month, of_month) = date_of(day);
            let next_day = (year, month, of_month) == (before.0, before.1, before.2 + 1);
            let next_month = (year, month, of_month) == (before.0, before.1 + 1, 1);
            let next_year = (year, month, of_month) == (before.0 + 1, 1, 1) && before.1 == 12;
            assert!(
                next_day || next_month || next_year,
                "{before:?} then {year}-{month}-{of_month}"
            );
            before = (year, month, of_month);
        }
    }

    #[test]
    fn a_time_past_the_year_9999_still_sorts_last() {
        assert_eq!(iso8601(u64::MAX), "9999-12-31T23:59:59.999Z");
    }

    #[tokio::test]
    async fn waiting_takes_as_long_as_asked() {
        let watch = Stopwatch::start();
        sleep_ms(5).await;
        assert!(watch.elapsed_ms() >= 5);
    }
}
