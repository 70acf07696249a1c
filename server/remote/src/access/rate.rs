//! Request rates: a token bucket for each token, and for each address without one.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::shares::Holder;

/// The maximum number of buckets. Whoever comes in addition shares one.
const BUCKETS: usize = 4_096;

/// The time between two searches for buckets that can go.
const SWEEP: Duration = Duration::from_secs(1);

/// Whose requests are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Of(Holder),
    /// Those that found no room in the table.
    Others,
}

/// Permits a number of requests a second, and as many at once as two seconds permit.
#[derive(Debug)]
pub(super) struct Rate {
    per_second: f64,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    buckets: HashMap<Key, Bucket>,
    swept: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Requests that are permitted at `at`.
    left: f64,
    at: Instant,
}

impl Rate {
    pub(super) fn new(per_second: u32) -> Self {
        Self {
            per_second: f64::from(per_second.max(1)),
            table: Mutex::default(),
        }
    }

    /// Counts a request.
    ///
    /// # Errors
    ///
    /// The time until the next request is permitted.
    pub(super) fn take(&self, holder: Holder) -> Result<(), Duration> {
        let now = Instant::now();
        let burst = self.burst();
        // A plain value is changed under the lock; it is complete whenever a thread panics.
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let key = table.room_for(holder, |bucket| self.left(*bucket, now) >= burst, now);
        let full = Bucket {
            left: burst,
            at: now,
        };
        let bucket = table.buckets.entry(key).or_insert(full);
        let left = self.left(*bucket, now);
        let taken = left >= 1.0;
        *bucket = Bucket {
            left: if taken { left - 1.0 } else { left },
            at: now,
        };
        if taken {
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - left) / self.per_second))
    }

    fn burst(&self) -> f64 {
        self.per_second * 2.0
    }

    fn left(&self, bucket: Bucket, now: Instant) -> f64 {
        let passed = now.duration_since(bucket.at).as_secs_f64();
        (bucket.left + passed * self.per_second).min(self.burst())
    }
}

impl Table {
    /// Returns the key whose bucket counts: that of the holder, unless the table is full. The master
    /// always has its own.
    fn room_for(&mut self, holder: Holder, is_full: impl Fn(&Bucket) -> bool, now: Instant) -> Key {
        let key = Key::Of(holder);
        let has_room = self.buckets.len() < BUCKETS || self.buckets.contains_key(&key);
        if has_room || holder == Holder::Master {
            return key;
        }
        // A full bucket says no more than none. Searching for them must not cost each request.
        if self
            .swept
            .is_none_or(|swept| now.duration_since(swept) >= SWEEP)
        {
            self.swept = Some(now);
            self.buckets.retain(|_, bucket| !is_full(bucket));
        }
        if self.buckets.len() < BUCKETS {
            key
        } else {
            Key::Others
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn address(number: u32) -> Holder {
        Holder::Address(Some(IpAddr::from(number.to_be_bytes())))
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_permitted_and_then_the_rate() {
        let rate = Rate::new(10);
        for _ in 0..20 {
            rate.take(address(1)).unwrap();
        }
        let wait = rate.take(address(1)).unwrap_err();
        assert_eq!(wait, Duration::from_millis(100));
        rate.take(address(2)).unwrap();
        tokio::time::advance(Duration::from_millis(250)).await;
        rate.take(address(1)).unwrap();
        rate.take(address(1)).unwrap();
        let wait = rate.take(address(1)).unwrap_err();
        assert_eq!(wait.as_millis(), 50);
        tokio::time::advance(Duration::from_secs(100)).await;
        for _ in 0..20 {
            rate.take(address(1)).unwrap();
        }
        rate.take(address(1)).unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn the_table_is_bounded_and_gives_room_again() {
        let rate = Rate::new(1);
        for number in 0..20_000 {
            let _ = rate.take(address(number));
        }
        let buckets = || rate.table.lock().unwrap().buckets.len();
        assert_eq!(buckets(), BUCKETS + 1);
        rate.take(address(30_000)).unwrap_err();
        rate.take(Holder::Master).unwrap();
        rate.take(address(0)).unwrap();
        rate.take(address(0)).unwrap_err();
        tokio::time::advance(Duration::from_secs(2)).await;
        rate.take(address(30_000)).unwrap();
        assert_eq!(buckets(), 1);
    }
}
