//! Times of sessions as numbers.

use jiff::Timestamp;

/// Returns a time in seconds since 1970, as Otter's clients expect it.
pub(super) fn seconds(iso8601: &str) -> f64 {
    let time = iso8601.parse::<Timestamp>();
    time.map_or(0.0, |time| time.as_duration().as_secs_f64())
}

/// Returns a time in milliseconds since 1970; 0 if it is none.
pub(super) fn milliseconds(iso8601: &str) -> u64 {
    let time = iso8601.parse::<Timestamp>();
    let time = time.map_or(0, Timestamp::as_millisecond);
    u64::try_from(time).unwrap_or(0)
}
