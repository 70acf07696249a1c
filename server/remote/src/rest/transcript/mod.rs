//! A session as a page, as Markdown or as JSON.

mod html;
mod markdown;
mod parts;

use acp_server::event::StoredEvent;
use acp_server::store::{Pages, StoreError};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::BoxStream;
use serde::Deserialize;
use utoipa::IntoParams;

use self::parts::Writer;
use super::failure::Failure;
use super::long_reads::LongRead;
use super::query::Parameters;
use super::sessions::whole;
use super::state::{Id, Rest, StoredSession};
use super::stream;
use crate::caller::Caller;

/// How a session is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Html,
    Markdown,
    Json,
}

impl Format {
    /// # Errors
    ///
    /// The text, if it names no format.
    pub(super) fn parse(text: &str) -> Result<Self, &str> {
        match text {
            "html" => Ok(Self::Html),
            "md" => Ok(Self::Markdown),
            "json" => Ok(Self::Json),
            other => Err(other),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Markdown => "md",
            Self::Json => "json",
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Markdown => "text/markdown; charset=utf-8",
            Self::Json => "application/json",
        }
    }
}

/// Which form.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct FormatQuery {
    /// `html` (default), `md` or `json`.
    #[param(value_type = String, required = false, pattern = "^(html|md|json)$")]
    format: Option<String>,
}

pub(super) async fn transcript(
    State(rest): State<Rest>,
    caller: Caller,
    Id(id): Id,
    Parameters(query): Parameters<FormatQuery>,
) -> Result<Response, Failure> {
    let format = Format::parse(query.format.as_deref().unwrap_or("html"));
    let format = format.map_err(|other| {
        Failure::invalid_query(format!("format: expected html, md or json, got {other:?}"))
    })?;
    let record = rest.record(&id).await?;
    let read = rest.long_reads().begin(&caller)?;
    if format == Format::Json {
        return whole(&rest, record, read).await;
    }
    let body = Body::from_stream(render(&record, format, read));
    let headers = [
        (header::CONTENT_TYPE, format.content_type()),
        // The page is text of an agent: it must do nothing but look.
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; sandbox",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (HeaderName::from_static("referrer-policy"), "no-referrer"),
    ];
    Ok((headers, body).into_response())
}

/// Renders a session as a page or as Markdown, piece by piece.
pub(super) fn render(
    record: &StoredSession,
    format: Format,
    read: LongRead,
) -> BoxStream<'static, Result<Bytes, StoreError>> {
    let pages = Pages::new(
        record.agent.server().store().clone(),
        &record.id,
        0,
        record.last_event,
    );
    let title = record
        .title
        .clone()
        .unwrap_or_else(|| record.id.to_string());
    let (mut head, mut writer, tail) = match format {
        Format::Html => (
            html::head(&title, record),
            Writer::new(html::part),
            html::TAIL,
        ),
        _ => (
            markdown::head(&title, record),
            Writer::new(markdown::part),
            "\n",
        ),
    };
    writer.begin(record, &mut head);
    let event = move |event: StoredEvent<'_>, output: &mut String| writer.event(event, output);
    Box::pin(stream::pieces(read, pages, head, event, tail.to_owned()))
}
