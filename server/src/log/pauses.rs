//! The pauses between attempts while a store is unavailable.

use std::time::Duration;

/// The time between the first two attempts. Each later one is twice as long.
const FIRST: Duration = Duration::from_millis(50);

/// The longest time between two attempts.
const LONGEST: Duration = Duration::from_secs(2);

/// The pauses before further attempts.
#[derive(Debug, Default)]
pub(crate) struct Pauses(Duration);

impl Pauses {
    /// Returns the time before the next attempt.
    pub(crate) fn next(&mut self) -> Duration {
        self.0 = LONGEST.min(FIRST.max(self.0 * 2));
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut pauses = Pauses::default();
        let milliseconds: [u128; 8] = std::array::from_fn(|_| pauses.next().as_millis());
        assert_eq!(milliseconds, [50, 100, 200, 400, 800, 1600, 2000, 2000]);
    }
}
