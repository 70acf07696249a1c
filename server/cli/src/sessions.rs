//! `acp-server sessions`: lists, shows, exports, forks and deletes what a store keeps.
//!
//! Each command is a function of a store that writes to any output. A session is named by its id or
//! by its name.

use std::io::Write;

use acp_sdk::text::single_line;
use acp_server::store::{ListQuery, Pages, Records, SessionRecord, Store};
use acp_server::usage::{UsageTotals, seconds};
use serde_json::{Value, json};

pub use super::named_session::{Format, SessionsError};
pub use super::turns::turns;

use super::export;
use super::named_session::{Result, resolve};
use super::turns::{tokens_text, totals, totals_json};

/// Sessions per page of a list.
const PAGE: usize = 500;

/// Which sessions are listed, and what of them.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// Only sessions with this working directory.
    pub cwd: Option<String>,
    /// With turns, tokens and cost, for which all events are read.
    pub usage: bool,
}

/// Lists sessions, the latest activity first.
///
/// # Errors
///
/// When the store or the output fails.
pub async fn list(
    store: &dyn Store,
    listed: Listed,
    format: Format,
    output: &mut impl Write,
) -> Result<()> {
    let mut query = ListQuery::default();
    query.cwd = listed.cwd;
    query.limit = PAGE;
    let mut records = Records::new(store, query);
    let mut is_first = true;
    while let Some(record) = records.next().await? {
        let usage = match listed.usage {
            true => Some(totals(store, &record).await?),
            false => None,
        };
        if format == Format::Json {
            writeln!(output, "{}", record_json(&record, usage.as_ref()))?;
            continue;
        }
        if std::mem::take(&mut is_first) {
            let usage = listed
                .usage
                .then(|| usage_columns("TURNS", "TOKENS", "COST"));
            let usage = usage.unwrap_or_default();
            writeln!(
                output,
                "{:<37} {:<24} {:>8}{usage}  TITLE, DIRECTORY",
                "ID", "ACTIVITY", "EVENTS"
            )?;
        }
        writeln!(output, "{}", line(&record, usage.as_ref()))?;
    }
    Ok(())
}

fn line(record: &SessionRecord, usage: Option<&UsageTotals>) -> String {
    let usage = usage.map(|totals| {
        let tokens = totals.tokens.total_tokens.map(|tokens| tokens.to_string());
        usage_columns(
            &totals.turns.to_string(),
            tokens.as_deref().unwrap_or("-"),
            totals.costs.text().as_deref().unwrap_or("-"),
        )
    });
    let name = record.name.as_ref().map(|name| format!("[{name}] "));
    single_line(&format!(
        "{:<37} {:<24} {:>8}{}  {}{}, {}",
        record.id.as_str(),
        record.updated_at,
        record.last_event,
        usage.unwrap_or_default(),
        name.unwrap_or_default(),
        record.title.as_deref().unwrap_or("-"),
        record.cwd
    ))
}

fn usage_columns(turns: &str, tokens: &str, cost: &str) -> String {
    format!(" {turns:>8} {tokens:>12} {cost:>16}")
}

/// Shows a session without its events: settings, times, tokens and cost.
///
/// # Errors
///
/// When there is no such session, or the store or the output fails.
pub async fn show(
    store: &dyn Store,
    session: &str,
    format: Format,
    output: &mut impl Write,
) -> Result<()> {
    let record = resolve(store, session).await?;
    let usage = totals(store, &record).await?;
    if format == Format::Json {
        writeln!(output, "{}", record_json(&record, Some(&usage)))?;
        return Ok(());
    }
    let mut field = |name: &str, value: &str| {
        writeln!(output, "{:<12} {}", format!("{name}:"), single_line(value))
    };
    field("id", record.id.as_str())?;
    if let Some(name) = &record.name {
        field("name", name)?;
    }
    if let Some(title) = &record.title {
        field("title", title)?;
    }
    field("directory", &record.cwd)?;
    for directory in &record.additional_directories {
        field("also", directory)?;
    }
    field("created", &record.created_at)?;
    field("activity", &record.updated_at)?;
    field("events", &record.last_event.to_string())?;
    if record.is_truncated() {
        field("removed", &removed(&record))?;
    }
    field("turns", &usage.turns.to_string())?;
    field("time", &seconds(usage.duration))?;
    if let Some(tokens) = tokens_text(&usage.tokens) {
        field("tokens", &tokens)?;
    }
    if let Some(cost) = usage.costs.text() {
        field("cost", &cost)?;
    }
    if let Some((source, last)) = &record.forked_from {
        field("forked from", &format!("{source} after event {last}"))?;
    }
    if let Some(turn) = record.running_turn {
        field("running", &format!("the turn that began with event {turn}"))?;
    }
    for (option, value) in &record.settings {
        let value = serde_json::to_value(value).unwrap_or_default();
        let value = value.get("value").unwrap_or(&value);
        field("setting", &format!("{option} = {value}"))?;
    }
    Ok(())
}

/// Writes the events of a session.
///
/// As JSON a line is `{"eventId":N,"time":TIME,"event":EVENT}` with the text that the store keeps,
/// unchanged. The time is ISO 8601 in UTC; the member is absent if the time is unknown. If events
/// were removed, the first line is `{"truncated":true,"oldestEventId":N}`.
///
/// # Errors
///
/// When there is no such session, or the store or the output fails.
pub async fn export(
    store: &dyn Store,
    session: &str,
    format: Format,
    output: &mut impl Write,
) -> Result<()> {
    let record = resolve(store, session).await?;
    let id = &record.id;
    if record.is_truncated() {
        match format {
            Format::Json => {
                let truncated = json!({ "truncated": true, "oldestEventId": record.oldest_event });
                writeln!(output, "{truncated}")?;
            }
            Format::Text => writeln!(output, "[{} were removed]", removed(&record))?,
        }
    }
    let mut text = export::Text::default();
    let mut pages = Pages::new(store, id, 0, u64::MAX);
    while let Some(page) = pages.next().await? {
        for event in page.events() {
            match format {
                Format::Json => {
                    let time = event.time_text();
                    let time = time.map_or_else(String::new, |time| format!(r#""time":"{time}","#));
                    let (number, json) = (event.number, event.text);
                    writeln!(output, r#"{{"eventId":{number},{time}"event":{json}}}"#)?;
                }
                Format::Text => text.event(event, output)?,
            }
        }
    }
    text.end(output)?;
    Ok(())
}

/// Copies a session after the event `at`, or as it is, and writes the id of the copy.
///
/// Conversation, settings and directories are copied; files are not.
///
/// # Errors
///
/// When there is no such session or event, or the store or the output fails.
pub async fn fork(
    store: &dyn Store,
    session: &str,
    at: Option<u64>,
    output: &mut impl Write,
) -> Result<()> {
    let origin = resolve(store, session).await?;
    let last = origin.last_event;
    if let Some(at) = at.filter(|at| *at > last) {
        let session = origin.id;
        return Err(SessionsError::NoEvent { session, at, last });
    }
    let mut target = SessionRecord::new(acp_server::internal::session_id()?, origin.cwd);
    target.title = origin.title;
    target.settings = origin.settings;
    target.additional_directories = origin.additional_directories;
    let taken = at.unwrap_or(last);
    // The turn is not part of the copy unless it began before its end; then it has no end there.
    target.running_turn = origin.running_turn.filter(|turn| *turn <= taken);
    let lease = store.fork(&origin.id, Some(taken), &target).await?;
    store.release(&lease).await?;
    writeln!(output, "{}", target.id)?;
    Ok(())
}

/// Deletes a session and its events.
///
/// # Errors
///
/// When there is no such session, when it is open in another process, or when the store or the
/// output fails.
pub async fn delete(store: &dyn Store, session: &str, output: &mut impl Write) -> Result<()> {
    let record = resolve(store, session).await?;
    if !store.delete(&record.id).await? {
        return Err(SessionsError::NotFound(session.to_owned()));
    }
    writeln!(output, "deleted session {}", record.id)?;
    Ok(())
}

/// Returns which events of a session were removed.
fn removed(record: &SessionRecord) -> String {
    format!("events 1 to {}", record.oldest_event - 1)
}

fn record_json(record: &SessionRecord, usage: Option<&UsageTotals>) -> Value {
    let forked_from = record.forked_from.as_ref();
    let mut value = json!({
        "sessionId": record.id,
        "name": record.name,
        "title": record.title,
        "cwd": record.cwd,
        "additionalDirectories": record.additional_directories,
        "createdAt": record.created_at,
        "updatedAt": record.updated_at,
        "lastEventId": record.last_event,
        "oldestEventId": record.oldest_event,
        "truncated": record.is_truncated(),
        "runningTurn": record.running_turn,
        "settings": record.settings,
        "forkedFrom": forked_from.map(|(id, last)| json!({ "sessionId": id, "eventId": last })),
    });
    if let Some(usage) = usage {
        value["usage"] = totals_json(usage);
    }
    value
}
