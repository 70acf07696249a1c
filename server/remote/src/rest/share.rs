//! Handing a transcript out: in the answer, into a folder of the server, or to another server.

use std::path::{Path, PathBuf};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::body::Object;
use super::deliver;
use super::failure::Failure;
use super::route::Right;
use super::sessions::whole;
use super::share_file;
use super::state::{Id, Rest, StoredSession};
use super::stream;
use super::transcript::{Format, render};
use crate::Transcript;
use crate::caller::Caller;

/// Where a transcript goes: a [`Sink`], read leniently so that each fault has an error of its own.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Share {
    sink: Option<String>,
    format: Option<String>,
    url: Option<String>,
}

/// Where a transcript goes. `file` and `http` need a server that permits them.
///
/// Only the document uses it.
#[derive(ToSchema)]
#[schema(as = Share)]
#[serde(tag = "sink", rename_all = "lowercase")]
#[expect(dead_code, reason = "documents `Share`")]
pub(super) enum Sink {
    /// Into the answer.
    Stdout {
        #[schema(inline)]
        format: Option<FormatName>,
    },
    /// Into the server's folder for transcripts.
    File {
        #[schema(inline)]
        format: Option<FormatName>,
    },
    /// To another server, whose origin this one permits, by POST.
    Http {
        #[schema(inline)]
        format: Option<FormatName>,
        url: String,
    },
}

/// The format of a transcript; `json` if none is named.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "documents `Share`")]
pub(super) enum FormatName {
    Html,
    Md,
    Json,
}

/// A transcript that was handed out.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Shared {
    sink: String,
    format: String,
    /// The transcript, for the sink `stdout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    body: Option<String>,
    /// The file, for the sink `file`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    path: Option<String>,
    /// The status of the other server's answer, for the sink `http`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u16)]
    status: Option<u16>,
    /// The other server's answer, perhaps not all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    reply: Option<String>,
}

pub(super) async fn share(
    State(rest): State<Rest>,
    caller: Caller,
    Id(id): Id,
    Object(share): Object<Share>,
) -> Result<Json<Shared>, Failure> {
    let sink = share.sink.as_deref();
    if sink != Some("stdout") {
        // What leaves the session is not the session's.
        Right::Full.check(&caller.access, None)?;
    }
    let format = Format::parse(share.format.as_deref().unwrap_or("json"));
    let format = format
        .map_err(|_| Failure::bad_request("invalid_format").message("expected html, md or json"))?;
    let record = rest.record(&id).await?;
    let mut shared = Shared {
        sink: sink.unwrap_or_default().to_owned(),
        format: format.name().to_owned(),
        body: None,
        path: None,
        status: None,
        reply: None,
    };
    match sink {
        Some("stdout") => shared.body = Some(text(&rest, &caller, record, format).await?),
        Some("file") => {
            let Some(folder) = &rest.settings().share_dir else {
                return Err(disabled("the server has no folder for transcripts"));
            };
            let path = file(folder, record.id.as_str(), format);
            let text = text(&rest, &caller, record, format).await?;
            let to = path.clone();
            let written = tokio::task::spawn_blocking(move || share_file::write(&to, &text)).await;
            let written = written.unwrap_or_else(|error| Err(std::io::Error::other(error)));
            written.map_err(|error| {
                let detail = format!("cannot write {}: {error}", path.display());
                Failure::internal("share_failed", detail)
            })?;
            shared.path = Some(path.to_string_lossy().into_owned());
        }
        Some("http") => {
            let listed = &rest.settings().share_origins;
            let sender = rest.settings().share_by.as_ref();
            let Some(sender) = sender.filter(|_| !listed.is_empty()) else {
                return Err(disabled("the server sends transcripts nowhere"));
            };
            let url = deliver::address(share.url.as_deref(), listed)?;
            let text = text(&rest, &caller, record, format).await?;
            let transcript = Transcript::new(url, format.content_type(), text);
            let sent = sender.send(transcript).await;
            let reply = sent.map_err(|detail| Failure::bad_gateway("upstream_failed", detail))?;
            shared.status = Some(reply.status.as_u16());
            shared.reply = Some(reply.body);
        }
        _ => {
            let failure = Failure::bad_request("invalid_sink");
            return Err(failure.message("expected stdout, file or http"));
        }
    }
    Ok(Json(shared))
}

fn disabled(message: &str) -> Failure {
    Failure::new(StatusCode::FORBIDDEN, "sink_disabled").message(message)
}

/// Returns the file of a transcript. Whatever the id is, it is in the folder.
fn file(folder: &Path, session: &str, format: Format) -> PathBuf {
    let safe = |char: char| {
        if char.is_ascii_alphanumeric() {
            char
        } else {
            '_'
        }
    };
    let name: String = session.chars().take(128).map(safe).collect();
    folder.join(format!("{name}.{}", format.name()))
}

async fn text(
    rest: &Rest,
    caller: &Caller,
    record: StoredSession,
    format: Format,
) -> Result<String, Failure> {
    let read = rest.long_reads().begin(caller)?;
    let limit = rest.settings().message_bytes;
    let too_large = || {
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large").message(format!(
            "the transcript has more than {limit} bytes; GET /transcript has it"
        ))
    };
    if format == Format::Json {
        let body = whole(rest, record, read).await?.into_body();
        let read = axum::body::to_bytes(body, limit).await;
        let read = read.map_err(|_| too_large())?;
        return Ok(String::from_utf8_lossy(&read).into_owned());
    }
    let collected = stream::collect(render(&record, format, read), limit).await;
    let collected = collected.map_err(|error| Failure::store("share_failed", &error))?;
    collected.ok_or_else(too_large)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stays_in_its_folder() {
        let folder = Path::new("/share");
        assert_eq!(
            file(folder, "sess_0a", Format::Html),
            folder.join("sess_0a.html")
        );
        assert_eq!(
            file(folder, "../../etc/passwd", Format::Json),
            folder.join("______etc_passwd.json")
        );
    }
}
