//! Conversions of what a session says and asks.

mod questions;
mod requests;
mod updates;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads what an agent of version 2 writes.
fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn written<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap()
}
