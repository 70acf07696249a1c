//! What one turn of a session in memory used.

use acp_sdk::v1::SessionUpdate;

use super::fold::is_usage;
use super::{Costs, TurnUsage, UsageFold};
use crate::event::TurnEvent;
use crate::event::{Event, EventBody, TurnId};
use crate::session::ReceivedText;
use crate::{Result, Session};

/// Events that are read at first to find an earlier total.
const NEAR: u64 = 256;

/// Returns what a turn used up to the event `last`; `None` if its events are no longer kept.
///
/// Only the events of the turn are read, and if it reports a cost those before it, up to the total that
/// was reported last.
///
/// # Errors
///
/// The store's.
pub async fn of_turn(session: &Session, turn: TurnId, last: u64) -> Result<Option<TurnUsage>> {
    let before = turn.0.saturating_sub(1);
    let mut currencies = Costs::default();
    let mut events = Between::new(session, before, last);
    while let Some(read) = events.next().await? {
        if let Some((currency, amount)) = read.total() {
            currencies.set(&currency, amount);
        }
    }
    let mut reported = Costs::default();
    let mut is_partial = false;
    for (currency, _) in currencies.iter() {
        match total_before(session, before, currency).await? {
            Total::Reported(amount) => reported.set(currency, amount),
            Total::Never => {}
            Total::Unknown => is_partial = true,
        }
    }
    let mut fold = UsageFold::after(before, reported, is_partial);
    let mut events = Between::new(session, before, last);
    while let Some(read) = events.next().await? {
        if let Some(stored) = read.stored() {
            let _ = fold.observe(stored);
        }
    }
    Ok(fold.latest().cloned())
}

/// Returns what the turn used that ended with the event `end`; `None` if that is no longer kept.
///
/// # Errors
///
/// As [`of_turn`].
pub async fn of_turn_with_end(session: &Session, end: u64) -> Result<Option<TurnUsage>> {
    let mut events = Between::new(session, end.saturating_sub(1), end);
    let read = events.next().await?;
    let event = read.as_ref().and_then(Read::stored);
    match event.map(|stored| stored.parse().body) {
        Some(EventBody::Turn(TurnEvent::TurnEnded { turn, .. })) => {
            of_turn(session, turn, end).await
        }
        _ => Ok(None),
    }
}

/// The total that was reported before an event.
enum Total {
    Reported(f64),
    Never,
    /// Events that may report it are no longer kept.
    Unknown,
}

/// Finds the last total in a currency up to the event `last`.
async fn total_before(session: &Session, last: u64, currency: &str) -> Result<Total> {
    let (mut end, mut distance) = (last, NEAR);
    while end > 0 {
        let start = end.saturating_sub(distance);
        let (mut found, mut is_whole) = (None, true);
        let mut events = Between::new(session, start, end);
        while let Some(read) = events.next().await? {
            is_whole &= read.stored().is_some();
            found = match read.total() {
                Some((reported, amount)) if reported == currency => Some(amount),
                _ => found,
            };
        }
        match found {
            Some(amount) => return Ok(Total::Reported(amount)),
            None if !is_whole => return Ok(Total::Unknown),
            None => {}
        }
        end = start;
        distance = distance.saturating_mul(8);
    }
    Ok(Total::Never)
}

/// The events after a number, up to another one.
struct Between {
    events: crate::Events,
    last: u64,
}

/// An event, or a gap.
struct Read(ReceivedText);

impl Between {
    fn new(session: &Session, after: u64, last: u64) -> Self {
        Self {
            events: session.subscribe(after),
            last,
        }
    }

    async fn next(&mut self) -> Result<Option<Read>> {
        // A long turn must not keep others waiting.
        tokio::task::consume_budget().await;
        let read = self.events.next_text_now().await?;
        Ok(read
            .filter(|read| match read {
                ReceivedText::Event(number, _) => *number <= self.last,
                // It may end behind the last event.
                ReceivedText::Gap(_) => true,
            })
            .map(Read))
    }
}

impl Read {
    fn stored(&self) -> Option<crate::event::StoredEvent<'_>> {
        match &self.0 {
            ReceivedText::Event(number, batch) => batch.stored(*number),
            ReceivedText::Gap(_) => None,
        }
    }

    /// Returns the currency and the amount of the total that the event reports.
    fn total(&self) -> Option<(String, f64)> {
        let stored = self.stored()?;
        if !is_usage(stored.text) {
            return None;
        }
        match Event::parse(stored.number, stored.text).body {
            EventBody::Update(SessionUpdate::UsageUpdate(update)) => {
                let cost = update.cost?;
                super::fold::is_amount(cost.amount).then_some((cost.currency, cost.amount))
            }
            _ => None,
        }
    }
}
