//! Whether a message is the one that is expected, and variables: the language of scripts and of the
//! requirements' steps.
//!
//! A pattern is JSON. Members of an object that the pattern does not name may have
//! any value; arrays have the same length. A string `{name}` in a pattern binds a
//! variable when it has no value yet and is compared with it otherwise; in what is
//! sent it stands for the value. These have a meaning of their own:
//!
//! - `{any}`: present, whatever it is;
//! - `{absent}`: a member that is not there;
//! - `{string}`, `{number}`, `{object}`, `{array}`, `{null}`: a value of this type; in what is sent,
//!   `{null}` is `null`, which TOML does not have;
//! - `{text}`: a string that is not empty;
//! - `{empty}`: an object without members other than `_meta`;
//! - `{more}`, last in an array: any further items.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use crate::wire::excerpt;

/// Names in braces that are no variables.
const RESERVED: [&str; 10] = [
    "any", "absent", "string", "number", "object", "array", "null", "text", "empty", "more",
];

/// Variables with their values.
pub type Bindings = BTreeMap<String, Value>;

/// Where a message differs from a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// JSON Pointer into the message.
    pub pointer: String,
    /// What the pattern wants there.
    pub expected: String,
    /// What is there.
    pub came: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pointer,
            expected,
            came,
        } = self;
        let place = if pointer.is_empty() {
            "as a whole"
        } else {
            pointer
        };
        write!(f, "differs at {place}: expected {expected}, came {came}")
    }
}

/// Holds a message against a pattern and binds the pattern's variables.
///
/// # Errors
/// The first difference; then some variables may be bound already.
pub fn matches(pattern: &Value, value: &Value, bindings: &mut Bindings) -> Result<(), Mismatch> {
    Matching {
        bindings,
        pointer: String::new(),
    }
    .value(pattern, Some(value))
}

/// Replaces variables in what is sent: a string that is one becomes its value, one
/// within a longer string becomes the text of it.
///
/// # Errors
/// The name of a variable that stands alone and has no value.
pub fn substitute(value: &mut Value, bindings: &Bindings) -> Result<(), String> {
    match value {
        Value::String(text) => match variable(text) {
            Some("null") => *value = Value::Null,
            Some(name) => {
                let found = bindings.get(name).ok_or_else(|| name.to_owned())?;
                *value = found.clone();
            }
            None => *text = within_text(text, bindings),
        },
        Value::Array(items) => {
            for item in items {
                substitute(item, bindings)?;
            }
        }
        Value::Object(members) => {
            for member in members.values_mut() {
                substitute(member, bindings)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Adds the variables of a pattern, or of what is sent.
pub(crate) fn variables(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            let name = variable(text).filter(|name| !RESERVED.contains(name));
            names.extend(name.map(str::to_owned));
        }
        Value::Array(items) => items.iter().for_each(|item| variables(item, names)),
        Value::Object(members) => {
            let members = members.values();
            members.for_each(|member| variables(member, names));
        }
        _ => {}
    }
}

/// Replaces `{name}` in text for every variable that has a value.
#[must_use]
pub fn within_text(text: &str, bindings: &Bindings) -> String {
    let mut text = text.to_owned();
    for (name, value) in bindings {
        let placeholder = format!("{{{name}}}");
        if text.contains(&placeholder) {
            let value = match value {
                Value::String(value) => value.clone(),
                other => other.to_string(),
            };
            text = text.replace(&placeholder, &value);
        }
    }
    text
}

/// The name of the variable that a string consists of.
pub(crate) fn variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix('{')?.strip_suffix('}')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(plain)).then_some(name)
}

struct Matching<'a> {
    bindings: &'a mut Bindings,
    pointer: String,
}

impl Matching<'_> {
    fn value(&mut self, pattern: &Value, value: Option<&Value>) -> Result<(), Mismatch> {
        let name = pattern.as_str().and_then(variable);
        if name == Some("absent") {
            return match value {
                None => Ok(()),
                Some(value) => Err(self.mismatch("nothing", Some(value))),
            };
        }
        let Some(value) = value else {
            return Err(self.mismatch(&excerpt(pattern), None));
        };
        match (name, pattern, value) {
            (Some(name), ..) => self.variable(name, value),
            (None, Value::Object(wanted), Value::Object(members)) => {
                for (name, wanted) in wanted {
                    let step = name.replace('~', "~0").replace('/', "~1");
                    self.at(&step, wanted, members.get(name))?;
                }
                Ok(())
            }
            (None, Value::Array(wanted), Value::Array(items)) => {
                let (wanted, more) = match wanted.split_last() {
                    Some((Value::String(last), wanted)) if last == "{more}" => (wanted, true),
                    _ => (wanted.as_slice(), false),
                };
                let (want, have) = (wanted.len(), items.len());
                if have < want || (have > want && !more) {
                    let at_least = if more { "at least " } else { "" };
                    let came = format!("{have} items");
                    return Err(self.differs(format!("{at_least}{want} items"), came));
                }
                for (index, (wanted, item)) in wanted.iter().zip(items).enumerate() {
                    self.at(&index.to_string(), wanted, Some(item))?;
                }
                Ok(())
            }
            (None, pattern, value) if pattern == value => Ok(()),
            (None, pattern, value) => Err(self.mismatch(&excerpt(pattern), Some(value))),
        }
    }

    fn variable(&mut self, name: &str, value: &Value) -> Result<(), Mismatch> {
        let fits = match name {
            "any" => true,
            "string" => value.is_string(),
            "number" => value.is_number(),
            "object" => value.is_object(),
            "array" => value.is_array(),
            "null" => value.is_null(),
            "text" => value.as_str().is_some_and(|text| !text.is_empty()),
            "empty" => value
                .as_object()
                .is_some_and(|members| members.keys().all(|name| name == "_meta")),
            name => match self.bindings.get(name) {
                Some(bound) if bound == value => true,
                Some(bound) => {
                    let expected = format!("{} ({{{name}}})", excerpt(bound));
                    return Err(self.mismatch(&expected, Some(value)));
                }
                None => {
                    self.bindings.insert(name.to_owned(), value.clone());
                    true
                }
            },
        };
        if fits {
            Ok(())
        } else {
            let expected = match name {
                "text" => "a text that is not empty".to_owned(),
                "empty" => "an empty object".to_owned(),
                _ => format!("a value of type {name}"),
            };
            Err(self.mismatch(&expected, Some(value)))
        }
    }

    fn at(&mut self, step: &str, pattern: &Value, value: Option<&Value>) -> Result<(), Mismatch> {
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(step);
        let result = self.value(pattern, value);
        self.pointer.truncate(length);
        result
    }

    fn mismatch(&self, expected: &str, came: Option<&Value>) -> Mismatch {
        self.differs(
            expected.to_owned(),
            came.map_or_else(|| "nothing".to_owned(), excerpt),
        )
    }

    fn differs(&self, expected: String, came: String) -> Mismatch {
        Mismatch {
            pointer: self.pointer.clone(),
            expected,
            came,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bound(pattern: &Value, value: &Value, before: Value) -> Result<Value, String> {
        let mut bindings: Bindings = serde_json::from_value(before).unwrap();
        match matches(pattern, value, &mut bindings) {
            Ok(()) => Ok(json!(bindings)),
            Err(mismatch) => Err(mismatch.to_string()),
        }
    }

    #[track_caller]
    fn fits(pattern: Value, value: Value) {
        assert_eq!(bound(&pattern, &value, json!({})), Ok(json!({})));
    }

    #[track_caller]
    fn differs(pattern: Value, value: Value, says: &str) {
        assert_eq!(
            bound(&pattern, &value, json!({})),
            Err(format!("differs at {says}"))
        );
    }

    #[test]
    fn members_that_are_not_named_may_be_anything() {
        fits(
            json!({"a": {"b": 1}}),
            json!({"a": {"b": 1, "c": 2}, "d": 3}),
        );
        differs(
            json!({"a/b": 1}),
            json!({}),
            "/a~1b: expected 1, came nothing",
        );
        differs(
            json!({"a": 1}),
            json!(["a"]),
            "as a whole: expected {\"a\":1}, came [\"a\"]",
        );
    }

    #[test]
    fn arrays_have_the_same_length_or_more_items_are_allowed() {
        fits(json!([1, "{any}"]), json!([1, null]));
        differs(
            json!([1]),
            json!([1, 2]),
            "as a whole: expected 1 items, came 2 items",
        );
        fits(json!([1, "{more}"]), json!([1]));
        fits(json!([1, "{more}"]), json!([1, 2, 3]));
        differs(
            json!([1, "{more}"]),
            json!([]),
            "as a whole: expected at least 1 items, came 0 items",
        );
        differs(json!([1, 2]), json!([1, 3]), "/1: expected 2, came 3");
    }

    #[test]
    fn types_and_absence_can_be_asked_for() {
        for (name, value) in [
            ("string", json!("x")),
            ("number", json!(1)),
            ("object", json!({})),
            ("array", json!([])),
            ("null", json!(null)),
        ] {
            let pattern = json!({"a": format!("{{{name}}}")});
            fits(pattern.clone(), json!({"a": value}));
            let says = format!("/a: expected a value of type {name}, came true");
            differs(pattern, json!({"a": true}), &says);
        }
        fits(json!({"a": "{absent}"}), json!({}));
        fits(json!(["{text}", "{empty}"]), json!(["x", {"_meta": {}}]));
        differs(
            json!("{text}"),
            json!(""),
            "as a whole: expected a text that is not empty, came \"\"",
        );
        differs(
            json!("{empty}"),
            json!({"a": 1}),
            "as a whole: expected an empty object, came {\"a\":1}",
        );
        differs(
            json!({"a": "{absent}"}),
            json!({"a": null}),
            "/a: expected nothing, came null",
        );
        differs(
            json!({"a": "{any}"}),
            json!({}),
            "/a: expected \"{any}\", came nothing",
        );
    }

    #[test]
    fn a_variable_is_bound_once_and_compared_afterwards() {
        let pattern = json!({"id": "{id}", "again": "{id}"});
        let same = bound(&pattern, &json!({"id": 7, "again": 7}), json!({}));
        assert_eq!(same, Ok(json!({"id": 7})));
        let other = bound(&pattern, &json!({"id": 7, "again": "7"}), json!({}));
        assert_eq!(
            other,
            Err("differs at /again: expected 7 ({id}), came \"7\"".into())
        );
    }

    #[test]
    fn values_take_the_place_of_variables_in_what_is_sent() {
        let bindings: Bindings = [("id".to_owned(), json!(7)), ("s".to_owned(), json!("x"))].into();
        let mut value = json!({"id": "{id}", "none": "{null}", "list": ["{s}", "is {s}{id}", "{not one}", "{}"]});
        substitute(&mut value, &bindings).unwrap();
        assert_eq!(
            value,
            json!({"id": 7, "none": null, "list": ["x", "is x7", "{not one}", "{}"]})
        );
        let unbound = substitute(&mut json!(["{t}"]), &bindings);
        assert_eq!(unbound, Err("t".to_owned()));
    }
}
