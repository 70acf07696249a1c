//! Plain schemas, from which names and Rust types are made.

use serde_json::{Value, json};

/// Name of the plain schema of any JSON value.
pub(crate) const ANY: &str = "Json";
/// Name of the plain schema of an object with arbitrary members.
pub(crate) const FREE_OBJECT: &str = "Meta";

/// Returns the plain schema of a map from names to `values`.
pub(super) fn map_of(values: &Value) -> Value {
    json!({ "type": "object", "additionalProperties": values })
}

/// Returns the plain schema of a value or `null`.
pub(super) fn optional(plain: Value) -> Value {
    json!({ "anyOf": [plain, { "type": "null" }] })
}

/// Returns a reference in the plain schema.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/definitions/{name}") })
}
