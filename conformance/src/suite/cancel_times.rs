//! How long an agent takes to end a turn after `session/cancel`. A figure, not a verdict.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::harness::Recording;
use crate::wire::Version;

/// How long turns went on after `session/cancel`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelTimes {
    /// How many turns were cancelled and ended.
    pub turns: usize,
    /// The median, in seconds.
    pub median: f64,
    /// The longest time, in seconds.
    pub longest: f64,
}

impl CancelTimes {
    /// Returns the times of all cancelled turns; `None` if there is none.
    pub(super) fn of(version: Version, recordings: &[Recording]) -> Option<Self> {
        let times = recordings.iter();
        let mut times: Vec<Duration> = times
            .flat_map(|recording| recording.cancel_times(version))
            .collect();
        times.sort_unstable();
        let longest = *times.last()?;
        let [low, high] = [(times.len() - 1) / 2, times.len() / 2];
        let median = (*times.get(low)? + *times.get(high)?) / 2;
        Some(Self {
            turns: times.len(),
            median: seconds(median),
            longest: seconds(longest),
        })
    }
}

/// Rounded to milliseconds, so that a report is not read for more than was measured.
pub(crate) fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {

    use serde_json::{Value, json};

    use super::*;
    use crate::harness::Recorder;
    use crate::wire::{Party, Schema};

    const SECOND: u64 = 1000;

    fn prompt(id: u64, session: &str) -> Value {
        let params = json!({"sessionId": session, "prompt": []});
        json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params})
    }

    fn cancel(session: &str) -> Value {
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
    }

    fn answer(id: u64, result: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "result": result})
    }

    fn idle(session: &str) -> Value {
        let update = json!({"sessionUpdate": "state_update", "state": "idle",
            "stopReason": "cancelled"});
        let params = json!({"sessionId": session, "update": update});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
    }

    /// Messages with their times in milliseconds.
    fn times(version: Version, messages: &[(u64, Party, Value)]) -> Option<CancelTimes> {
        let mut recorder = Recorder::new(Schema::of(version).unwrap());
        for (at, from, value) in messages {
            recorder.message(*from, value.clone(), Duration::from_millis(*at));
        }
        CancelTimes::of(version, &[recorder.recording])
    }

    use Party::{Agent, Client};

    #[test]
    fn a_turn_of_v1_ends_with_the_answer_to_its_prompt() {
        let stopped = || json!({"stopReason": "cancelled"});
        let found = times(
            Version::V1,
            &[
                (0, Client, prompt(1, "a")),
                (0, Client, prompt(2, "b")),
                (SECOND, Client, cancel("a")),
                // The second one changes nothing.
                (2 * SECOND, Client, cancel("a")),
                (3 * SECOND, Agent, answer(1, stopped())),
                (3 * SECOND, Client, cancel("b")),
                (8 * SECOND, Agent, answer(2, stopped())),
                // Nothing runs.
                (9 * SECOND, Client, cancel("b")),
                (9 * SECOND, Client, prompt(3, "b")),
                (10 * SECOND, Agent, answer(3, stopped())),
            ],
        );
        let expected = CancelTimes {
            turns: 2,
            median: 3.5,
            longest: 5.0,
        };
        assert_eq!(found, Some(expected));
    }

    #[test]
    fn a_turn_of_v2_ends_with_an_idle_state() {
        let found = times(
            Version::V2,
            &[
                (0, Client, prompt(1, "a")),
                (10, Agent, answer(1, json!({"messageId": "m"}))),
                (20, Client, cancel("a")),
                (25, Agent, idle("b")),
                (70, Agent, idle("a")),
                (80, Client, prompt(2, "a")),
                (90, Client, cancel("a")),
            ],
        );
        let found = found.unwrap();
        assert_eq!((found.turns, found.median), (1, 0.05));
    }

    #[test]
    fn without_a_cancelled_turn_there_is_no_figure() {
        assert_eq!(times(Version::V1, &[(0, Client, cancel("a"))]), None);
    }
}
