//! The time of day as the protocol writes it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the current time as ISO 8601 in UTC, with milliseconds: `2026-11-21T07:30:00.125Z`.
pub fn now() -> String {
    text(milliseconds())
}

/// Returns the current time in milliseconds since 1970-01-01 00:00 UTC.
pub fn milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Returns three quarters of a delay to all of it, so that many do not start at once.
pub fn jittered(delay: Duration) -> Duration {
    let mut random = [0; 1];
    // Without random numbers the delay is as good as any.
    let _ = getrandom::fill(&mut random);
    delay.mul_f64(0.75 + f64::from(random[0]) / 1024.0)
}

/// Returns a time in milliseconds since 1970 as ISO 8601, like [`now`].
pub fn text(milliseconds: u64) -> String {
    iso8601(Duration::from_millis(milliseconds))
}

/// Returns a time as ISO 8601 in UTC, like [`now`].
pub fn text_of(time: SystemTime) -> String {
    iso8601(time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO))
}

/// Returns a time in milliseconds since 1970; `None` if it is beyond the years of the system.
pub fn system_time(milliseconds: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds))
}

/// The Gregorian calendar, counted in years that begin in March: there the leap day comes
/// last and every month's first day follows from one formula.
fn iso8601(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days since the first of March of the year 0.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = era * 400 + year + carry;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let milli = since_1970.subsec_millis();
    let mut text = String::with_capacity("1970-01-01T00:00:00.000Z".len());
    let parts = [
        (year, 4, '-'),
        (month, 2, '-'),
        (day, 2, 'T'),
        (hour, 2, ':'),
        (minute, 2, ':'),
        (second, 2, '.'),
        (milli.into(), 3, 'Z'),
    ];
    for (number, digits, after) in parts {
        push_decimal(&mut text, number, digits);
        text.push(after);
    }
    text
}

/// Appends the last digits of a number. The time of each turn is written, and the seven numbers
/// of `format!` cost a twentieth of a short turn.
fn push_decimal(text: &mut String, number: u64, digits: u32) {
    for at in (0..digits).rev() {
        let digit = number / 10_u64.pow(at) % 10;
        text.push(char::from(b'0' + u8::try_from(digit).unwrap_or_default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // From `date -u -d @SECONDS +%FT%TZ`.
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (951_868_800, "2000-03-01T00:00:00.000Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000Z"),
            (1_772_323_200, "2026-03-01T00:00:00.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso8601(Duration::from_secs(seconds)), expected);
        }
    }
}
