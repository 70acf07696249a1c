//! The date of a run, as text.

use std::time::{Duration, SystemTime};

/// Seconds of a day.
const DAY: u64 = 86_400;

/// Returns when a run began that has just ended, in UTC and to the second, as RFC 3339 has it.
pub(super) fn began(took: Duration) -> String {
    let now = SystemTime::now();
    let began = now.checked_sub(took).unwrap_or(now);
    let since = began.duration_since(SystemTime::UNIX_EPOCH);
    rfc3339(since.unwrap_or_default().as_secs())
}

/// Returns the date of so many seconds since 1970.
fn rfc3339(seconds: u64) -> String {
    let (days, of_day) = (seconds / DAY, seconds % DAY);
    // Years begin in March, so that the leap day is the last one; 400 years are 146,097 days.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = match month {
        0..=9 => (month + 3, 0),
        _ => (month - 9, 1),
    };
    let year = year + 400 * era + next;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_dates_across_leap_days_and_centuries() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_704_067_199, "2023-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(seconds), date);
        }
    }
}
