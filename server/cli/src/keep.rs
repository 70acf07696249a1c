//! What is kept, and for how long: the options of every command that serves.

use std::fmt;
use std::time::Duration;

use clap::Args;

use acp_server::Limits;

/// What is kept.
#[derive(Clone, Debug, Default, Args)]
pub struct KeepArgs {
    /// Deletes sessions without activity for this time, such as 30d, 12h or 45m
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub keep: Option<Duration>,
    /// Removes older events from sessions that are not open
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub keep_events: Option<Duration>,
    /// Deletes the sessions with the oldest activity while there are more
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub keep_sessions: Option<u64>,
    /// Deletes the sessions with the oldest activity while the store is larger, such as 500M or 20G
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub keep_bytes: Option<u64>,
    /// Latest events that a session keeps; older ones are removed with each commit
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_events: Option<u64>,
}

impl KeepArgs {
    /// Sets what the options say.
    pub(super) fn apply(&self, limits: &mut Limits) {
        let retention = &mut limits.retention;
        retention.keep = self.keep;
        retention.keep_events = self.keep_events;
        retention.keep_sessions = self.keep_sessions;
        retention.keep_bytes = self.keep_bytes;
        limits.log.max_events = self.max_events;
    }
}

/// What is removed, for the log; empty if nothing is.
impl fmt::Display for KeepArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |age: Option<Duration>| age.map(|age| age.as_secs());
        let limits = [
            ("sessions of the last", seconds(self.keep), " s"),
            ("events of the last", seconds(self.keep_events), " s"),
            ("at most", self.keep_sessions, " sessions"),
            ("at most", self.keep_bytes, " bytes"),
            ("at most", self.max_events, " events of a session"),
        ];
        let mut separator = "";
        for (kept, limit, unit) in limits {
            if let Some(limit) = limit {
                write!(f, "{separator}{kept} {limit}{unit}")?;
                separator = ", ";
            }
        }
        Ok(())
    }
}

/// Reads a time such as `30d`.
pub(super) fn age(text: &str) -> Result<Duration, String> {
    let age = acp_sdk::text::age(text).filter(|age| !age.is_zero());
    age.ok_or_else(|| {
        format!("expected a number above 0 with s, m, h, d or w, such as 30d, got {text:?}")
    })
}

/// Reads a number of bytes such as `500M`.
fn size(text: &str) -> Result<u64, String> {
    let unit = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let factor: u64 = match unit {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        _ => 0,
    };
    let number = text[..text.len() - unit.len()].parse::<u64>().ok();
    let bytes = number.and_then(|number| number.checked_mul(factor));
    // Without a limit, the option is left out.
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| {
        format!("expected bytes above 0, or a number with K, M, G or T, such as 500M, got {text:?}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!((size("12"), size("500M")), (Ok(12), Ok(500 << 20)));
        for wrong in ["", "0", "0G", "M", "1X", "-1", "1.5G", "99999999T"] {
            assert!(size(wrong).is_err(), "{wrong:?}");
        }
    }
}
