//! Events of the log that may come many times: one a minute, with the number of those left out.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The least time between two events of a place.
const INTERVAL: Duration = Duration::from_secs(60);

/// Counts the events of one place in the code.
#[derive(Debug)]
pub struct Repeated(Mutex<(Option<Instant>, u64)>);

impl Repeated {
    /// Returns the counter of a place that has logged nothing.
    #[allow(clippy::new_without_default, reason = "a static needs a constant")]
    pub const fn new() -> Self {
        Self(Mutex::new((None, 0)))
    }

    /// Returns the number of events that were left out since the last one, if this one is due.
    pub fn due(&self) -> Option<u64> {
        self.due_at(Instant::now())
    }

    fn due_at(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, left_out) = &mut *state;
        if last.is_some_and(|last| now.saturating_duration_since(last) < INTERVAL) {
            *left_out += 1;
            return None;
        }
        *last = Some(now);
        Some(std::mem::take(left_out))
    }
}

/// Logs an event of a level such as `warn`, at most one a minute for each place in the code.
/// `left_out` is how many there were since the last one.
#[doc(hidden)]
#[macro_export]
macro_rules! log_repeated {
    ($level:ident, target: $target:expr, $($event:tt)+) => {{
        static PLACE: $crate::internal::Repeated = $crate::internal::Repeated::new();
        if let Some(left_out) = PLACE.due() {
            let left_out = (left_out > 0).then_some(left_out);
            tracing::$level!(target: $target, left_out, $($event)+);
        }
    }};
    ($level:ident, $($event:tt)+) => {
        $crate::log_repeated!($level, target: module_path!(), $($event)+)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_a_minute_says_how_many_there_were() {
        let place = Repeated::new();
        let start = Instant::now();
        let at = |seconds| place.due_at(start + Duration::from_secs(seconds));
        assert_eq!(at(0), Some(0));
        assert_eq!((at(1), at(59)), (None, None));
        assert_eq!(at(60), Some(2));
        assert_eq!(at(61), None);
        assert_eq!(at(121), Some(1));
    }
}
