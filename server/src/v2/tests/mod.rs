//! Conversions of generated values of every kind, judged by the documents of both versions.

mod questions;
mod requests;
mod updates;

use std::sync::LazyLock;

use acp_codegen::vectors::{Expect, Vectors, random, vectors};
use acp_schema::{Checked, Document, Side, Validator};
use acp_sdk::convert::{Convert, convert_logged};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// How many random values of each definition are converted.
const SEEDS: u32 = 300;

struct Version {
    document: Document,
    validator: Validator,
    vectors: Vec<Vectors>,
}

impl Version {
    fn new(document: Document) -> Self {
        let validator = Validator::new(&document).unwrap();
        Self {
            vectors: vectors(&document).unwrap(),
            document,
            validator,
        }
    }

    /// Returns values of a definition: its vectors, and random ones without faults.
    fn values<T: DeserializeOwned>(&self, definition: &str) -> Vec<T> {
        let set = self.vectors.iter().find(|set| set.definition == definition);
        let vectors = set.unwrap().vectors.iter().cloned();
        let random = (0..SEEDS).map(|seed| random(&self.document, definition, seed, 0));
        let valid = vectors
            .chain(random)
            .filter(|vector| !matches!(vector.expect, Expect::Invalid { .. }));
        let values = valid.map(|vector| vector.value);
        let values: Vec<T> = values
            .filter_map(|value| serde_json::from_value(value).ok())
            .collect();
        assert!(values.len() > SEEDS as usize / 2, "{definition}");
        values
    }

    fn judge(&self, checked: Checked, value: &Value) {
        match checked {
            Checked::Valid => {}
            other => panic!("{other:#?}\n{value:#}"),
        }
    }

    /// Panics unless the value is valid as params that `side` receives.
    #[track_caller]
    fn params<T: Serialize>(&self, side: &str, method: &str, params: &T) -> Value {
        let value = serde_json::to_value(params).unwrap();
        let side = Side::new(side).unwrap();
        self.judge(self.validator.params(side, method, &value), &value);
        value
    }

    /// Panics unless the value is valid as the result of a request that `side` receives.
    #[track_caller]
    fn result<T: Serialize>(&self, side: &str, method: &str, result: &T) -> Value {
        let value = serde_json::to_value(result).unwrap();
        let side = Side::new(side).unwrap();
        self.judge(self.validator.result(side, method, &value), &value);
        value
    }
}

/// Converts a value that has a form in the other version.
#[track_caller]
fn converted<A: Convert<B>, B>(value: A) -> B {
    convert_logged(value).unwrap()
}

static V1: LazyLock<Version> = LazyLock::new(|| Version::new(Document::v1().unwrap()));
static V2: LazyLock<Version> = LazyLock::new(|| Version::new(Document::v2().unwrap()));
