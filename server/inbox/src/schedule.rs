//! Prompts that are due at times of the calendar.

use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use croner::Cron;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use tokio::sync::mpsc::Sender;

use super::{Message, Origin};

/// A prompt that is due again and again.
#[derive(Clone, Debug)]
pub struct Schedule {
    name: String,
    cron: Cron,
    zone: TimeZone,
    prompt: String,
}

/// Why a schedule cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The expression is none, or is never due.
    #[error("schedule {name}: {expression:?} is no cron expression that is ever due: {reason}")]
    Expression {
        /// The name of the schedule.
        name: String,
        /// The expression.
        expression: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The system knows no such time zone.
    #[error("schedule {name}: unknown time zone {zone:?}; use a name such as Europe/Berlin")]
    Zone {
        /// The name of the schedule.
        name: String,
        /// The time zone.
        zone: String,
    },
}

impl Schedule {
    /// Creates a schedule from a cron expression in the time zone of the system: minute, hour, day of
    /// the month, month and day of the week, optionally with seconds before them.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Expression`].
    pub fn new(
        name: impl Into<String>,
        expression: &str,
        prompt: impl Into<String>,
    ) -> Result<Self, ScheduleError> {
        let name = name.into();
        let invalid = |reason: String| ScheduleError::Expression {
            name: name.clone(),
            expression: expression.to_owned(),
            reason,
        };
        let cron = Cron::from_str(expression).map_err(|error| invalid(error.to_string()))?;
        let zone = TimeZone::system();
        let now = Timestamp::now().to_zoned(zone.clone());
        let next = cron.find_next_occurrence(&now, false);
        next.map_err(|error| invalid(error.to_string()))?;
        let prompt = prompt.into();
        Ok(Self {
            name,
            cron,
            zone,
            prompt,
        })
    }

    /// Sets the time zone by its name in the IANA database.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Zone`].
    pub fn in_zone(mut self, zone: &str) -> Result<Self, ScheduleError> {
        self.zone = TimeZone::get(zone).map_err(|_| ScheduleError::Zone {
            name: self.name.clone(),
            zone: zone.to_owned(),
        })?;
        Ok(self)
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns when it is due after a time.
    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let after = after.to_zoned(self.zone.clone());
        let next: Zoned = self.cron.find_next_occurrence(&after, false).ok()?;
        Some(next.timestamp())
    }

    /// Sends the prompt whenever it is due, until it never is again or the inbox is closed.
    pub(super) async fn run(self, clock: Clock, inbox: Sender<Message>) {
        let waits = Arc::new(AtomicBool::new(false));
        let mut due = self.next(clock.now());
        while let Some(at) = due {
            tokio::select! {
                () = clock.until(at) => {}
                () = inbox.closed() => return,
            }
            if waits.swap(true, Ordering::AcqRel) {
                tracing::debug!(
                    schedule = self.name,
                    "due while its last turn waits or runs"
                );
            } else {
                let waiting = Waiting(waits.clone());
                let origin = Origin::Schedule(self.name.clone());
                let mut message = Message::new(origin, self.prompt.as_str());
                message.waiting = Some(waiting);
                // With a full inbox this time is left out, as it is while the last turn runs.
                if inbox.try_send(message).is_err() {
                    tracing::debug!(schedule = self.name, "due while the inbox is full");
                }
            }
            // Times that passed while the machine slept are left out, too.
            due = self.next(at.max(clock.now()));
        }
    }
}

/// A message of a schedule that waits, or whose turn runs.
#[derive(Debug)]
pub(super) struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The time of day.
#[derive(Clone, Debug)]
pub(super) enum Clock {
    System,
    /// A time of day, and when that was by tokio's clock, which tests pause.
    #[cfg(test)]
    Tokio(Timestamp, tokio::time::Instant),
}

impl Clock {
    fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::now(),
            #[cfg(test)]
            Self::Tokio(start, since) => *start + since.elapsed(),
        }
    }

    /// Waits until a time of day. When the clock was set back meanwhile, it waits for the rest.
    async fn until(&self, time: Timestamp) {
        loop {
            let rest = time.duration_since(self.now());
            match Duration::try_from(rest) {
                Ok(rest) if !rest.is_zero() => tokio::time::sleep(rest).await,
                _ => return,
            }
        }
    }
}
