//! The parameters of lists: of which time, of which model, how many.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::extract::Query;
use axum::http::request::Parts;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;
use utoipa::openapi::schema::{
    AnyOfBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type,
};

use super::failure::Failure;
use super::state::Rest;
use crate::agents::ServedAgent;
use crate::caller::Caller;

/// The most rows of a list.
pub(super) const MOST_ROWS: usize = 10_000;

/// Parameters that are refused with `invalid_query` if they cannot be read.
pub(super) struct Parameters<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Parameters<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let read = Query::from_request_parts(parts, state).await;
        let Query(parameters) = read.map_err(|error| Failure::invalid_query(error.body_text()))?;
        Ok(Self(parameters))
    }
}

/// Which rows a list has.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RowsQuery {
    /// Only runs that started, or sessions that were active, since then: a number of weeks, days, hours,
    /// minutes or seconds (`7d`, `24h`, `30m`), a date, or a time in ISO 8601. Without a time zone it
    /// is UTC.
    #[param(schema_with = time_schema, required = false)]
    since: Option<String>,
    /// Only those before then, in the same forms.
    #[param(schema_with = time_schema, required = false)]
    until: Option<String>,
    /// Only rows of this model, whatever the case: of runs those whose model contains the text, of
    /// sessions those whose model is the text. `all`: every row.
    #[param(value_type = String, required = false)]
    model: Option<String>,
    /// The most rows, the latest first.
    #[param(value_type = u32, required = false, minimum = 1, maximum = 10_000)]
    limit: Option<String>,
    /// Only those of the agent with this name. Default: of all agents.
    #[param(value_type = String, required = false)]
    agent: Option<String>,
}

/// The parameters, understood.
#[derive(Clone, Debug)]
pub(super) struct Filters {
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    /// In lower case.
    pub(super) model: Option<String>,
    is_exact: bool,
    pub(super) limit: usize,
    /// Whose sessions are asked for.
    pub(super) agents: Vec<Arc<ServedAgent>>,
}

impl RowsQuery {
    /// # Errors
    ///
    /// 400, when a parameter cannot be understood.
    fn filters(&self, limit: usize) -> Result<Filters, Failure> {
        let now = Timestamp::now();
        let time = |name, text: &Option<String>| {
            let text = text.as_deref();
            text.map(|text| cutoff(name, text, now)).transpose()
        };
        let model = self.model.as_deref().filter(|model| *model != "all");
        Ok(Filters {
            since: time("since", &self.since)?,
            until: time("until", &self.until)?,
            model: model.map(str::to_lowercase),
            is_exact: false,
            limit: self.limit.as_deref().map_or(Ok(limit), rows)?,
            agents: Vec::new(),
        })
    }

    pub(super) fn since(&self) -> Option<&str> {
        self.since.as_deref()
    }

    pub(super) fn until(&self) -> Option<&str> {
        self.until.as_deref()
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    pub(super) fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    pub(super) fn has_limit(&self) -> bool {
        self.limit.is_some()
    }
}

impl Rest {
    /// Returns the parameters of a list, with the agents whose sessions it has.
    ///
    /// # Errors
    ///
    /// 400, when a parameter cannot be understood or no agent has the name; 403 where a login is required.
    pub(super) fn filters(
        &self,
        caller: &Caller,
        query: &RowsQuery,
        limit: usize,
    ) -> Result<Filters, Failure> {
        Ok(Filters {
            agents: self.chosen(caller, query.agent())?,
            ..query.filters(limit)?
        })
    }
}

impl Filters {
    /// Returns whether a time in milliseconds since 1970 is before what is asked for.
    pub(super) fn is_before(&self, time: u64) -> bool {
        let since = self.since.map(Timestamp::as_millisecond);
        since.is_some_and(|since| i64::try_from(time).unwrap_or(i64::MAX) < since)
    }

    pub(super) fn accepts_time(&self, time: u64) -> bool {
        let until = self.until.map(Timestamp::as_millisecond);
        let is_early = until.is_none_or(|until| i64::try_from(time).unwrap_or(i64::MAX) < until);
        is_early && !self.is_before(time)
    }

    pub(super) fn accepts_model(&self, model: Option<&str>) -> bool {
        let Some(wanted) = &self.model else {
            return true;
        };
        model.is_some_and(|model| match self.is_exact {
            true => model.to_lowercase() == *wanted,
            false => model.to_lowercase().contains(wanted),
        })
    }

    /// Accepts a model only by its whole name.
    pub(super) fn exactly(mut self) -> Self {
        self.is_exact = true;
        self
    }
}

/// Reads a number of rows.
///
/// # Errors
///
/// 400, when the text is no integer from 1 to [`MOST_ROWS`].
fn rows(text: &str) -> Result<usize, Failure> {
    let rows = text.parse().ok();
    let rows = rows.filter(|rows| (1..=MOST_ROWS).contains(rows));
    rows.ok_or_else(|| {
        let detail = format!("limit: expected an integer from 1 to {MOST_ROWS}, got {text:?}");
        Failure::invalid_query(detail)
    })
}

/// # Errors
///
/// 400, when the text is no time.
fn cutoff(name: &str, text: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    let understood = ago(text, now)
        .or_else(|| text.parse::<Timestamp>().ok())
        .or_else(|| text.parse::<DateTime>().ok().and_then(in_utc))
        .or_else(|| {
            in_utc(
                text.parse::<Date>()
                    .ok()?
                    .to_datetime(jiff::civil::Time::midnight()),
            )
        });
    understood.ok_or_else(|| {
        let detail = format!(
            "{name}: expected a duration such as 7d, 24h or 30m, a date, or a time in ISO 8601, \
             got {text:?}"
        );
        Failure::invalid_query(detail)
    })
}

fn in_utc(time: DateTime) -> Option<Timestamp> {
    TimeZone::UTC.to_timestamp(time).ok()
}

/// Reads an age; one that is older than all times in the calendar is as old as they are.
fn ago(text: &str, now: Timestamp) -> Option<Timestamp> {
    let age = acp_sdk::text::age(text)?;
    Some(now.checked_sub(age).unwrap_or(Timestamp::MIN))
}

fn time_schema() -> Schema {
    let text = || ObjectBuilder::new().schema_type(SchemaType::Type(Type::String));
    let format = |format| text().format(Some(SchemaFormat::KnownFormat(format)));
    AnyOfBuilder::new()
        .item(text().pattern(Some("^[0-9]{1,9}[smhdw]$")))
        .item(format(KnownFormat::Date))
        .item(format(KnownFormat::DateTime))
        .build()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_duration_a_date_or_iso_8601() {
        let now: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("7d", "2026-11-15T12:00:00Z"),
            ("24h", "2026-11-21T12:00:00Z"),
            ("30m", "2026-11-22T11:30:00Z"),
            ("0m", "2026-11-22T12:00:00Z"),
            ("1w", "2026-11-15T12:00:00Z"),
            ("2026-11-01", "2026-11-01T00:00:00Z"),
            ("2026-11-01T10:00:00", "2026-11-01T10:00:00Z"),
            ("2026-11-01T10:00:00.5Z", "2026-11-01T10:00:00.5Z"),
            ("2026-11-01T10:00:00+02:00", "2026-11-01T08:00:00Z"),
        ] {
            let expected: Timestamp = expected.parse().unwrap();
            assert_eq!(cutoff("since", text, now).unwrap(), expected, "{text}");
        }
        assert_eq!(cutoff("since", "999999999w", now).unwrap(), Timestamp::MIN);
        for text in ["", "d", "7", "-7d", "7 d", "2026-13-01", "now", "7\u{e4}"] {
            assert!(cutoff("since", text, now).is_err(), "{text}");
        }
    }

    #[test]
    fn a_number_of_rows_is_bounded() {
        assert_eq!(rows("1").unwrap(), 1);
        assert_eq!(rows("10000").unwrap(), 10_000);
        for text in [
            "0",
            "10001",
            "-1",
            "1.5",
            "",
            "x",
            "99999999999999999999999",
        ] {
            assert!(rows(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_model_is_found_by_a_part_of_its_name() {
        let query = |model: &str| RowsQuery {
            model: Some(model.to_owned()),
            ..RowsQuery::default()
        };
        let some = query("GLM").filters(1).unwrap();
        assert!(some.accepts_model(Some("glm-5.1:cloud")));
        assert!(!some.accepts_model(Some("claude")));
        assert!(!some.accepts_model(None));
        let exactly = |model| query(model).filters(1).unwrap().exactly();
        assert!(exactly("GLM-5.1:cloud").accepts_model(Some("glm-5.1:cloud")));
        assert!(!exactly("GLM").accepts_model(Some("glm-5.1:cloud")));
        assert!(query("all").filters(1).unwrap().accepts_model(None));
    }
}
