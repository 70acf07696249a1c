//! What serde would take for a value and the schema does not.
//!
//! serde reads a struct from a list of its members' values as well, and numbers from
//! what only looks like them, and not an integer from `1.0`. Every valid vector is changed
//! in that way, everywhere in it, and must be read as the schema says.

use acp_codegen::vectors::{Expect, expect};
use serde_json::{Value, json};

use crate::Suite;
use crate::checks::{assert_none, expected};

pub(crate) fn an_object_is_not_the_list_of_its_values(suite: &Suite) {
    let as_list = |value: &Value| {
        let members = value.as_object()?;
        Some(members.values().cloned().collect())
    };
    assert_none(&changed(suite, as_list));
}

pub(crate) fn a_number_is_not_what_looks_like_one(suite: &Suite) {
    let as_text = |value: &Value| value.is_number().then(|| json!(value.to_string()));
    assert_none(&changed(suite, as_text));
    assert_none(&changed(suite, |value| {
        value.is_number().then(|| json!([value]))
    }));
}

pub(crate) fn an_integer_is_one_with_a_fraction_of_zero(suite: &Suite) {
    // Beyond this a fraction of binary digits is another number.
    const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;
    let exact = |number: &i64| number.unsigned_abs() <= EXACT;
    let as_fraction = |value: &Value| Some(json!(value.as_i64().filter(exact)? as f64));
    assert_none(&changed(suite, as_fraction));
}

/// The valid vectors, changed by `change` at one place each, that are not read as the
/// schema says.
fn changed(suite: &Suite, change: impl Fn(&Value) -> Option<Value>) -> Vec<String> {
    let mut found = Vec::new();
    let mut tried = 0;
    for set in &suite.vectors {
        let ty = suite.ty(&set.definition);
        for vector in &set.vectors {
            if !matches!(vector.expect, Expect::Valid { .. }) {
                continue;
            }
            for pointer in places(&vector.value) {
                let mut value = vector.value.clone();
                let place = value.pointer_mut(&pointer).unwrap();
                let Some(other) = change(place) else { continue };
                *place = other;
                tried += 1;
                let expect = expect(&suite.document, ty.name, &value);
                if let Err(message) = expected(&expect, (ty.read)(&value.to_string())) {
                    found.push(format!("{} at {pointer}: {message}\n    {value}", ty.name));
                }
            }
        }
    }
    assert!(tried > 100, "only {tried} changes");
    found
}

/// The places of all values in `value`, itself included.
fn places(value: &Value) -> Vec<String> {
    let inner = |name: String, value: &Value| {
        let name = name.replace('~', "~0").replace('/', "~1");
        let below = places(value);
        below
            .into_iter()
            .map(move |place| format!("/{name}{place}"))
            .collect::<Vec<_>>()
    };
    let mut all = vec![String::new()];
    match value {
        Value::Object(members) => {
            all.extend(
                members
                    .iter()
                    .flat_map(|(name, value)| inner(name.clone(), value)),
            );
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            all.extend(items.flat_map(|(index, value)| inner(index.to_string(), value)));
        }
        _ => {}
    }
    all
}
