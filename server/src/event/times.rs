//! When the events of a batch were committed.

/// The times of consecutive events, in milliseconds since 1970-01-01 00:00 UTC.
///
/// A commit has one time. A store joins small commits, so a batch that is read may have several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// Of the first commit; 0 if it is unknown.
    first: u64,
    /// The number of the first event of each later commit, and its time.
    later: Vec<(u64, u64)>,
}

impl Times {
    pub(crate) fn of(time: Option<u64>) -> Self {
        Self {
            first: time.unwrap_or(0),
            later: Vec::new(),
        }
    }

    /// Adds the time of the events from the number `from` on.
    pub(crate) fn push(&mut self, from: u64, time: Option<u64>) {
        let time = time.unwrap_or(0);
        let last = self.later.last().map_or(self.first, |(_, time)| *time);
        if time != last {
            self.later.push((from, time));
        }
    }

    pub(crate) fn get(&self, number: u64) -> Option<u64> {
        let after = self.later.partition_point(|(from, _)| *from <= number);
        let time = match after.checked_sub(1) {
            Some(at) => self.later[at].1,
            None => self.first,
        };
        (time > 0).then_some(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_the_time_of_its_commit() {
        let mut times = Times::of(None);
        times.push(3, None);
        times.push(5, Some(100));
        times.push(7, Some(100));
        times.push(8, Some(200));
        times.push(9, None);
        let all: Vec<_> = (1..=9).map(|number| times.get(number)).collect();
        let (a, b) = (Some(100), Some(200));
        assert_eq!(all, [None, None, None, None, a, a, a, b, None]);
        assert_eq!(times.later.len(), 3);
    }
}
