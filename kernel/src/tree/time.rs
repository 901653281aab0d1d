//! Points in time as session files write them: ISO 8601 text outside, Unix milliseconds inside.
//! The clock itself is lent by the caller (see [`super::Ids`]).

const DAY_MS: i64 = 86_400_000;
const LAST_MS: i64 = 253_402_300_799_999;

/// `2026-11-30T12:00:00.000Z`. Times outside the years 1970 to 9999 read as the nearer end.
#[must_use]
pub fn iso_from_ms(ms: i64) -> String {
    let ms = ms.clamp(0, LAST_MS);
    let (year, month, day) = date_of(ms / DAY_MS);
    let rest = ms % DAY_MS;
    let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
    let (second, milli) = (rest / 1000 % 60, rest % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Reads what JavaScript and other writers store: seconds and their fraction may be missing, the
/// zone is `Z`, an offset, or missing (then UTC). Anything else is `None`.
#[must_use]
pub fn ms_from_iso(text: &str) -> Option<i64> {
    let text = text.trim();
    let (date, clock) = text.split_once(['T', 't', ' ']).unwrap_or((text, ""));
    let mut parts = date.splitn(3, '-');
    let year = digits(parts.next()?)?;
    let month = parts.next().map_or(Some(1), digits)?;
    let day = parts.next().map_or(Some(1), digits)?;
    if year > 9999 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (clock, offset_minutes) = split_zone(clock)?;
    Some(day_number(year, month, day) * DAY_MS + clock_ms(clock)? - offset_minutes * 60_000)
}

fn digits(text: &str) -> Option<i64> {
    let plain = !text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}

/// Splits `12:00:00+02:00` into the clock and the minutes east of UTC.
fn split_zone(clock: &str) -> Option<(&str, i64)> {
    if let Some(clock) = clock.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let Some(at) = clock.find(['+', '-']) else {
        return Some((clock, 0));
    };
    let (clock, zone) = clock.split_at(at);
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let zone: String = zone.chars().filter(char::is_ascii_digit).collect();
    let (hours, minutes) = (zone.get(..2)?, zone.get(2..4).unwrap_or("0"));
    Some((clock, sign * (digits(hours)? * 60 + digits(minutes)?)))
}

fn clock_ms(clock: &str) -> Option<i64> {
    if clock.is_empty() {
        return Some(0);
    }
    let mut parts = clock.splitn(3, ':');
    let hour = digits(parts.next()?)?;
    let minute = parts.next().map_or(Some(0), digits)?;
    let (second, fraction) = parts
        .next()
        .map_or(("0", ""), |s| s.split_once('.').unwrap_or((s, "")));
    let milli: String = fraction.chars().chain("000".chars()).take(3).collect();
    let second = digits(second)?;
    if hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    Some(((hour * 60 + minute) * 60 + second) * 1000 + digits(&milli)?)
}

/// Year, month and day of a day counted from 1970-01-01. Counting years from March puts the leap
/// day last, which makes month lengths regular; an era is 400 years.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// The inverse of [`date_of`].
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let from_march = (month + 9) % 12;
    let day_of_year = (153 * from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_the_way_to_text_and_back() {
        for ms in [
            0,
            1,
            951_782_400_123,
            1_735_689_601_000,
            4_107_542_399_999,
            LAST_MS,
        ] {
            assert_eq!(ms_from_iso(&iso_from_ms(ms)), Some(ms), "{ms}");
        }
        assert_eq!(iso_from_ms(1_735_689_601_000), "2025-01-01T00:00:01.000Z");
        assert_eq!(iso_from_ms(951_782_400_123), "2000-02-29T00:00:00.123Z");
    }

    #[test]
    fn other_writers_and_nonsense_are_read_or_refused() {
        assert_eq!(
            ms_from_iso("2025-01-01T02:00:01+02:00"),
            Some(1_735_689_601_000)
        );
        assert_eq!(
            ms_from_iso("2025-01-01T00:00:01.0004567Z"),
            Some(1_735_689_601_000)
        );
        assert_eq!(ms_from_iso("2025-01-01"), Some(1_735_689_600_000));
        for bad in [
            "",
            "yesterday",
            "2025-13-01T00:00:00Z",
            "2025-01-01T99:00Z",
            "999999999999999-1",
            "é-é",
        ] {
            assert_eq!(ms_from_iso(bad), None, "{bad}");
        }
    }
}
