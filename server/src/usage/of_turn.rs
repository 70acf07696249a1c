//! What one turn of a session in memory used.

use std::collections::BTreeSet;

use acp_sdk::v1::SessionUpdate;

use super::costs::MOST_CURRENCIES;
use super::fold::is_amount;
use super::{TurnUsage, UsageFold};
use crate::event::TurnEvent;
use crate::event::{EventBody, EventKind, StoredEvent, TurnId};
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
    of_turn_with_events(session, turn, last, |_| {}).await
}

/// As [`of_turn`], and calls a function with each event that is kept of the turn.
///
/// # Errors
///
/// The store's.
pub async fn of_turn_with_events(
    session: &Session,
    turn: TurnId,
    last: u64,
    mut visit: impl FnMut(StoredEvent<'_>),
) -> Result<Option<TurnUsage>> {
    let before = turn.0.saturating_sub(1);
    let mut fold = UsageFold::after(before);
    let (mut currencies, mut is_whole) = (BTreeSet::new(), true);
    let mut events = Between::new(session, before, last);
    while let Some(read) = events.next().await? {
        let Some(stored) = read.stored() else {
            is_whole = false;
            continue;
        };
        // Of each currency, the total at the beginning of the turn is needed. Behind a gap it would
        // not be that of the event before.
        if is_whole
            && let Some((currency, _)) = total(stored)
            && currencies.len() < MOST_CURRENCIES
            && currencies.insert(currency.clone())
        {
            match total_before(session, before, &currency).await? {
                Total::Reported(amount) => fold.set_reported(&currency, amount),
                Total::Never => fold.set_reported(&currency, 0.0),
                Total::Unknown => {}
            }
        }
        let _ = fold.observe(stored);
        visit(stored);
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
            found = match read.stored().and_then(total) {
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
    fn stored(&self) -> Option<StoredEvent<'_>> {
        match &self.0 {
            ReceivedText::Event(number, batch) => batch.stored(*number),
            ReceivedText::Gap(_) => None,
        }
    }
}

/// Returns the currency and the amount of the total that an event reports.
fn total(stored: StoredEvent<'_>) -> Option<(String, f64)> {
    if stored.kind() != EventKind::Usage {
        return None;
    }
    match stored.parse().body {
        EventBody::Update(SessionUpdate::UsageUpdate(update)) => {
            let cost = update.cost?;
            is_amount(cost.amount).then_some((cost.currency, cost.amount))
        }
        _ => None,
    }
}
