//! Time, tokens and cost of the turns that a store keeps.

use std::collections::VecDeque;
use std::io::Write;

use acp_sdk::text::single_line;
use acp_server::event::TokenUsage;
use acp_server::internal::clock;
use acp_server::store::{Pages, SessionRecord, Store, StoreError};
use acp_server::usage::{TurnUsage, UsageFold, UsageTotals, seconds};
use serde_json::{Value, json};

use super::named_session::{Format, Result, resolve};

/// Lists the turns of a session, the first one first, without those that a fork has copied.
///
/// As JSON a line is an object with `turn` (the number of its first event), `client`, `startedAt`, `endedAt`
/// (ISO 8601 in UTC), `durationMs`, `stopReason`, `error`, `tokens` and `costs` (amounts by
/// currency). What is unknown is `null`.
///
/// # Errors
///
/// When there is no such session, or the store or the output fails.
pub async fn turns(
    store: &dyn Store,
    session: &str,
    format: Format,
    output: &mut impl Write,
) -> Result<()> {
    let record = resolve(store, session).await?;
    if format == Format::Text {
        let line = row([
            "TURN", "STARTED", "DURATION", "END", "TOKENS", "COST", "CLIENT",
        ]);
        writeln!(output, "{line}")?;
    }
    let mut turns = Turns::new(store, &record);
    while let Some(turn) = turns.next().await? {
        let line = match format {
            Format::Json => turn_json(&turn).to_string(),
            Format::Text => turn_line(&turn),
        };
        writeln!(output, "{line}")?;
    }
    Ok(())
}

/// Returns the sums over the turns of a session.
pub(super) async fn totals(store: &dyn Store, record: &SessionRecord) -> Result<UsageTotals> {
    let mut totals = UsageTotals::default();
    let mut turns = Turns::new(store, record);
    while let Some(turn) = turns.next().await? {
        totals.add(&turn);
    }
    Ok(totals)
}

/// Reads the turns of a session, a page of events at a time.
struct Turns<'a> {
    record: &'a SessionRecord,
    fold: UsageFold,
    /// `None` when all events are read.
    pages: Option<Pages<&'a dyn Store>>,
    found: VecDeque<TurnUsage>,
}

impl<'a> Turns<'a> {
    fn new(store: &'a dyn Store, record: &'a SessionRecord) -> Self {
        Self {
            record,
            fold: UsageFold::default(),
            pages: Some(Pages::new(store, &record.id, 0, u64::MAX)),
            found: VecDeque::new(),
        }
    }

    async fn next(&mut self) -> std::result::Result<Option<TurnUsage>, StoreError> {
        loop {
            if let Some(turn) = self.found.pop_front() {
                return Ok(Some(turn));
            }
            let Some(pages) = &mut self.pages else {
                return Ok(None);
            };
            if let Some(page) = pages.next().await? {
                let events = page.events();
                let complete = events.filter_map(|event| self.fold.observe(event));
                self.found.extend(complete);
            } else {
                self.pages = None;
                self.found.extend(self.fold.latest().cloned());
            }
            self.found.retain(|turn| !turn.is_copied(self.record));
        }
    }
}

pub(super) fn totals_json(totals: &UsageTotals) -> Value {
    json!({
        "turns": totals.turns,
        "durationMs": totals.duration,
        "tokens": totals.tokens,
        "costs": totals.costs,
    })
}

fn turn_json(turn: &TurnUsage) -> Value {
    let end = turn.end.as_ref();
    json!({
        "turn": turn.turn,
        "client": turn.client,
        "startedAt": turn.started_at.map(clock::text),
        "endedAt": end.and_then(|end| end.at).map(clock::text),
        "durationMs": turn.duration(),
        "stopReason": end.and_then(|end| end.stop_reason.as_ref()),
        "error": end.and_then(|end| end.error.as_deref()),
        "tokens": turn.tokens,
        "costs": turn.costs,
    })
}

fn turn_line(turn: &TurnUsage) -> String {
    let end = match &turn.end {
        None => "running".to_owned(),
        Some(end) => match (&end.stop_reason, &end.error) {
            (Some(reason), _) => reason.as_str().to_owned(),
            (None, Some(error)) => format!("failed: {error}"),
            (None, None) => "failed".to_owned(),
        },
    };
    let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let client = turn.client.as_deref().unwrap_or("-");
    let line = row([
        &turn.turn.0.to_string(),
        &known(turn.started_at.map(clock::text)),
        &known(turn.duration().map(seconds)),
        &end,
        &known(turn.tokens.total_tokens.map(|tokens| tokens.to_string())),
        &known(turn.costs.text()),
        client,
    ]);
    single_line(&line)
}

fn row([turn, started, duration, end, tokens, cost, client]: [&str; 7]) -> String {
    format!(
        "{turn:>8}  {started:<24}  {duration:>12}  {tokens:>12}  {cost:>16}  {client:<24}  {end}"
    )
}

/// Returns the counts as text: `15 in all, 10 input`; `None` without any.
pub(super) fn tokens_text(tokens: &TokenUsage) -> Option<String> {
    let counts = [
        ("in all", tokens.total_tokens),
        ("input", tokens.input_tokens),
        ("output", tokens.output_tokens),
        ("thought", tokens.thought_tokens),
        ("read from caches", tokens.cached_read_tokens),
        ("written to caches", tokens.cached_write_tokens),
    ];
    let counts = counts.into_iter();
    let counts: Vec<_> = counts
        .filter_map(|(kind, count)| Some(format!("{} {kind}", count?)))
        .collect();
    (!counts.is_empty()).then(|| counts.join(", "))
}
