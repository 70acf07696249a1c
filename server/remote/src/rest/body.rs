//! The body of a request: a JSON object, bounded in bytes and time.

use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::failure::Failure;
use super::state::Rest;
use crate::bodies;
use crate::caller::Caller;

/// A JSON object as the body of a request. An empty body is an empty object.
pub(super) struct Object<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Rest> for Object<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, rest: &Rest) -> Result<Self, Failure> {
        let caller = Caller::of(request.extensions());
        let body = bodies::read(request.into_body(), &caller, rest.settings()).await?;
        let value = match body.bytes.trim_ascii() {
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
