//! The body of a request: a JSON object, bounded in bytes and time.

use axum::RequestExt as _;
use axum::body::to_bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::failure::Failure;
use super::state::Rest;

/// A JSON object as the body of a request. An empty body is an empty object.
pub(super) struct Object<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Rest> for Object<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, rest: &Rest) -> Result<Self, Failure> {
        let settings = rest.settings();
        let body = request.with_limited_body().into_body();
        let read = tokio::time::timeout(
            settings.body_timeout,
            to_bytes(body, settings.message_bytes),
        );
        let Ok(read) = read.await else {
            let failure = Failure::new(StatusCode::REQUEST_TIMEOUT, "too_slow");
            return Err(failure.message("the body did not arrive in time"));
        };
        // Besides too many bytes only a broken connection fails, which gets no answer anyway.
        let body = read.map_err(|_| {
            let limit = settings.message_bytes;
            Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large")
                .message(format!("the body has more than {limit} bytes"))
        })?;
        let value = match body.trim_ascii() {
            b"" => Value::Object(Map::new()),
            text => serde_json::from_slice(text)
                .map_err(|error| Failure::bad_request("invalid_json").message(error.to_string()))?,
        };
        if !value.is_object() {
            return Err(Failure::bad_request("expected_json_object"));
        }
        let object = serde_json::from_value(value);
        let object = object
            .map_err(|error| Failure::bad_request("invalid_field").message(error.to_string()))?;
        Ok(Self(object))
    }
}
