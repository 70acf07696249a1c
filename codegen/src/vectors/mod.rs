//! Test values for every definition of a document, with the expected result of reading each.
//!
//! Valid values: with required members only and with all members, each variant of a union and of
//! an enum, numbers at their boundaries. Invalid values: each member removed, of each wrong type,
//! out of range, or with a value of a later protocol version. The schema with its leniency
//! keywords defines the expected result: an error with its path, or a value with the paths of
//! what was dropped.
//!
//! The vectors are derived from the document alone, and can test an implementation in any
//! language.

mod invalid;
mod oracle;
mod random;
mod resolved;
mod sample;

use std::collections::BTreeSet;

use acp_schema::{Document, Protocol};
use serde_json::{Value, json};

use self::oracle::{Verdict, classify};
use self::resolved::{Form, View, Views};
use self::sample::{Amount, choices, object, variations};
use crate::Error;
use crate::lower::{is_any, lower};
use crate::name_collisions;
use crate::names;
use crate::overrides::{self, Overrides};

/// The vectors of one definition.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Vectors {
    /// The definition.
    pub definition: String,
    /// Its vectors: at least one that is valid.
    pub vectors: Vec<Vector>,
}

/// A value and the expected result of reading it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Vector {
    /// The name: how the value was derived.
    pub name: String,
    /// The value.
    pub value: Value,
    /// The expected result.
    pub expect: Expect,
}

/// The expected result of reading a value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Expect {
    /// Valid; readers accept it.
    Valid {
        /// The value as it is written again: defaults filled in; without members that
        /// are not defined, optional ones that are null, and optional lists that are
        /// empty.
        means: Value,
    },
    /// Invalid for the schema, but readers accept it: a leniency keyword applies, or an unknown
    /// value of a later version is kept.
    Lenient {
        /// The value as it is written again, without the dropped parts.
        means: Value,
        /// JSON Pointers of the values that are dropped and reported.
        dropped: Vec<String>,
    },
    /// Invalid; readers reject it.
    Invalid {
        /// JSON Pointers of the invalid places. A reader reports one of them.
        paths: Vec<String>,
    },
}

/// Derives the vectors of all definitions in the order of the document, except envelopes and
/// definitions that accept any value.
///
/// # Errors
/// Fails when the methods are not complete, or a definition has no equivalent Rust type.
pub fn vectors(document: &Document) -> Result<Vec<Vectors>, Error> {
    // A document that the generator rejects has no vectors.
    Protocol::from_document(document)?;
    let lowered = lower(document, &Overrides::new(overrides::V1));
    let lowered = lowered.map_err(|error| error.in_document(document))?;
    names::check(&lowered.types, &[], None)
        .and_then(|()| name_collisions::check(&lowered.types))
        .map_err(|error| error.in_document(document))?;
    let is_type = |schema: &Value| {
        let envelope = schema.get("x-docs-ignore").is_some_and(|flag| flag == true);
        !envelope && !is_any(schema)
    };
    let definitions = document.defs().filter(|(_, schema)| is_type(schema));
    Ok(definitions
        .map(|(name, _)| Vectors {
            definition: name.to_owned(),
            vectors: of(document, name),
        })
        .collect())
}

/// Returns a pseudo-random vector: a whole message, often with members in another order,
/// in which about `faults` of 1,000 parts are invalid. The same seed gives the same vector.
#[must_use]
pub fn random(document: &Document, definition: &str, seed: u32, faults: u32) -> Vector {
    let value = random::random(document, definition, seed.into(), faults.into());
    Vector {
        name: format!("seed {seed}"),
        expect: expect(document, definition, &value),
        value,
    }
}

fn of(document: &Document, name: &str) -> Vec<Vector> {
    let (views, top) = (Views::new(document), View::definition(document, name));
    let mut seen = BTreeSet::new();
    let candidates = valid(document, name)
        .into_iter()
        .chain(invalid::faults(document, name));
    candidates
        .filter(|(_, value)| seen.insert(value.to_string()))
        .map(|(name, value)| Vector {
            expect: expected(&views, &top, &value),
            name,
            value,
        })
        .collect()
}

/// Returns the expected result of reading `value` as the definition.
#[must_use]
pub fn expect(document: &Document, definition: &str, value: &Value) -> Expect {
    let top = View::definition(document, definition);
    expected(&Views::new(document), &top, value)
}

fn expected<'a>(views: &Views<'a>, top: &View<'a>, value: &Value) -> Expect {
    match classify(views, top, value) {
        Verdict::Valid { means } => Expect::Valid { means },
        Verdict::Lenient { means, dropped } => Expect::Lenient { means, dropped },
        Verdict::Invalid { paths } => Expect::Invalid { paths },
    }
}

/// Returns valid values with their names.
fn valid(document: &Document, name: &str) -> Vec<invalid::Named> {
    let top = View::definition(document, name);
    let Form::Object(forms) = &top.form else {
        let choices = choices(document, &top).into_iter().enumerate();
        return choices
            .map(|(index, value)| (format!("choice {}", index + 1), value))
            .collect();
    };
    let mut found = Vec::new();
    for form in forms {
        let label = match form.label.as_str() {
            "" => String::new(),
            label => format!("{label}: "),
        };
        let least = object(document, form, Amount::Least);
        found.push((format!("{label}minimal"), least.clone()));
        let full = object(document, form, Amount::MOST);
        found.push((format!("{label}maximal"), full));
        for field in form.fields.iter().filter(|field| field.tag.is_none()) {
            let values = variations(document, field.schema).into_iter();
            for (index, value) in values.enumerate() {
                let mut whole = least.clone();
                if let Some(members) = whole.as_object_mut() {
                    members.insert(field.name.into(), value);
                }
                let what = format!("{label}{}, choice {}", field.name, index + 1);
                found.push((what, whole));
            }
        }
    }
    found
}

impl Vectors {
    /// The JSON form: lists `valid`, `lenient` and `invalid`. The member `means`
    /// is left out where it equals `value`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let (mut valid, mut lenient, mut invalid) = (Vec::new(), Vec::new(), Vec::new());
        for Vector {
            name,
            value,
            expect,
        } in &self.vectors
        {
            let mut vector = json!({ "name": name, "value": value });
            match expect {
                Expect::Valid { means } | Expect::Lenient { means, .. } if means != value => {
                    vector["means"] = means.clone();
                }
                _ => {}
            }
            match expect {
                Expect::Valid { .. } => valid.push(vector),
                Expect::Lenient { dropped, .. } => {
                    vector["dropped"] = dropped.clone().into();
                    lenient.push(vector);
                }
                Expect::Invalid { paths } => {
                    vector["paths"] = paths.clone().into();
                    invalid.push(vector);
                }
            }
        }
        json!({
            "definition": self.definition,
            "valid": valid,
            "lenient": lenient,
            "invalid": invalid,
        })
    }
}
