//! How the sender of a prompt wants to be answered: at once, at the end of the turn, or with its events.

use std::time::Duration;

use acp_server::internal::session::{LONGEST_NAME, is_name};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use serde::Deserialize;
use utoipa::IntoParams;

use super::failure::Failure;
use super::query::Parameters;

/// The longest time that a sender may wait, in seconds.
const LONGEST_WAIT: u64 = 3600;

/// How a prompt is sent.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct WaitQuery {
    /// Answer at the end of the turn, at most after this many seconds. The header `Prefer: wait=SECONDS`
    /// does the same. With `Accept: text/event-stream` the answer is the stream of the turn's events.
    #[param(value_type = u32, required = false, minimum = 0, maximum = 3600)]
    wait: Option<String>,
}

/// The headers of a prompt, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "read from the headers themselves")]
pub(super) struct PromptHeaders {
    /// `wait=SECONDS`, as `wait` in the query; the answer then has `Preference-Applied` (RFC 7240).
    #[param(rename = "Prefer", value_type = String, required = false)]
    prefer: (),
    /// A name that the sender makes up, such as a UUID. A prompt that is sent to its session again with
    /// its key runs once, and a session is created once; the answer is about the first of them. Another
    /// prompt with the key is refused.
    #[param(rename = "Idempotency-Key", value_type = String, required = false,
        min_length = 1, max_length = 128, pattern = "^[!-~]+$")]
    idempotency_key: (),
}

/// The header of input for a turn, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "read from the headers themselves")]
pub(super) struct KeyHeader {
    /// A name that the sender makes up, such as a UUID. Input that is sent to its session again with its
    /// key is delivered once.
    #[param(rename = "Idempotency-Key", value_type = String, required = false,
        min_length = 1, max_length = 128, pattern = "^[!-~]+$")]
    idempotency_key: (),
}

/// What the sender of a prompt asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Wanted {
    pub(super) answer: Answer,
    /// The name under which the prompt runs once.
    pub(super) key: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Answer {
    /// That the prompt is accepted.
    #[default]
    Accepted,
    /// The result of the turn, if it ends in this time.
    Result {
        wait: Duration,
        /// Whether the header `Prefer` asks for it.
        preferred: bool,
    },
    /// The events of the turn.
    Events,
}

impl<S: Send + Sync> FromRequestParts<S> for Wanted {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let Parameters(query) = Parameters::from_request_parts(parts, state).await?;
        Self::of(&query, &parts.headers)
    }
}

impl Wanted {
    fn of(query: &WaitQuery, headers: &HeaderMap) -> Result<Self, Failure> {
        let asked = query.wait.as_deref().map(seconds).transpose()?;
        let answer = if accepts_events(headers) {
            Answer::Events
        } else if let Some(wait) = asked {
            let preferred = false;
            Answer::Result { wait, preferred }
        } else if let Some(wait) = preferred(headers) {
            let preferred = true;
            Answer::Result { wait, preferred }
        } else {
            Answer::Accepted
        };
        let key = headers.get("idempotency-key").map(|key| {
            let key = key.to_str().ok().filter(|key| {
                is_name(key) && key.bytes().all(|byte| byte.is_ascii_graphic())
            });
            key.map(str::to_owned).ok_or_else(|| {
                let message = format!(
                    "the header Idempotency-Key is to have 1 to {LONGEST_NAME} visible ASCII characters, such as a UUID"
                );
                Failure::bad_request("invalid_idempotency_key").message(message)
            })
        });
        Ok(Self {
            answer,
            key: key.transpose()?,
        })
    }
}

fn seconds(text: &str) -> Result<Duration, Failure> {
    let seconds = text.parse().ok().filter(|wait| *wait <= LONGEST_WAIT);
    seconds.map(Duration::from_secs).ok_or_else(|| {
        let detail = format!("wait: expected seconds, 0 to {LONGEST_WAIT}, got {text:?}");
        Failure::invalid_query(detail)
    })
}

/// Returns the time that the header `Prefer` names. What cannot be read is no preference (RFC 7240).
fn preferred(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all("prefer").iter();
    let mut preferences = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    preferences.find_map(|preference| {
        let (name, value) = preference.split(';').next()?.split_once('=')?;
        let is_wait = name.trim().eq_ignore_ascii_case("wait");
        let seconds: u64 = value.trim().trim_matches('"').parse().ok()?;
        is_wait.then(|| Duration::from_secs(seconds.min(LONGEST_WAIT)))
    })
}

fn accepts_events(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT).iter();
    let mut types = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|media| media.split(';').next());
    types.any(|media| media.trim().eq_ignore_ascii_case("text/event-stream"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(wait: Option<&str>, headers: &[(&'static str, &str)]) -> Result<Wanted, Failure> {
        let query = WaitQuery {
            wait: wait.map(str::to_owned),
        };
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        Wanted::of(&query, &map)
    }

    fn result(seconds: u64, preferred: bool) -> Answer {
        let wait = Duration::from_secs(seconds);
        Answer::Result { wait, preferred }
    }

    #[test]
    fn the_address_goes_before_the_preference_and_a_stream_before_both() {
        for (wait, headers, expected) in [
            (None, &[][..], Answer::Accepted),
            (Some("30"), &[], result(30, false)),
            (Some("0"), &[], result(0, false)),
            (None, &[("prefer", "wait=7")], result(7, true)),
            (
                None,
                &[("prefer", "respond-async, Wait = \"9\"; x=1")],
                result(9, true),
            ),
            (
                None,
                &[("prefer", "return=minimal"), ("prefer", "wait=99999")],
                result(3600, true),
            ),
            (None, &[("prefer", "wait=soon, wait")], Answer::Accepted),
            (Some("30"), &[("prefer", "wait=7")], result(30, false)),
            (
                Some("30"),
                &[("accept", "application/json, Text/Event-Stream;q=0.5")],
                Answer::Events,
            ),
            (None, &[("accept", "*/*")], Answer::Accepted),
        ] {
            let found = wanted(wait, headers).ok().unwrap().answer;
            assert_eq!(found, expected, "{wait:?} {headers:?}");
        }
        for wait in ["", "-1", "3601", "1.5", "soon"] {
            assert!(wanted(Some(wait), &[]).is_err(), "{wait:?}");
        }
    }

    #[test]
    fn a_key_is_a_short_text() {
        let key = |key: &str| wanted(None, &[("idempotency-key", key)]).map(|wanted| wanted.key);
        assert_eq!(key("a-1").ok().unwrap().as_deref(), Some("a-1"));
        for text in ["", "a b", &"x".repeat(129)] {
            assert!(key(text).is_err(), "{text:?}");
        }
    }
}
