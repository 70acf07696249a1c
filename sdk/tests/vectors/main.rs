//! Every vector of every definition, against the generated types and the validator.
//!
//! Valid ones parse, mean the same when written again, and validate. Lenient ones
//! parse and report what they lose. Invalid ones fail with a path that is to blame.

#![allow(clippy::unwrap_used, reason = "a helper of tests fails by panicking")]

mod differential;
mod types;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use acp_codegen::vectors::{Expect, Vector, Vectors, random, vectors};
use acp_schema::{Checked, Document, Side, V1_UNSTABLE, Validator};
use serde_json::{Map, Value, json};

use self::types::{Outcome, Type, all};

/// The document that the types were generated from.
static DOCUMENT: LazyLock<Document> = LazyLock::new(|| {
    let document = Document::v1().unwrap();
    if cfg!(feature = "unstable") {
        document.overlay("v1.unstable.json", V1_UNSTABLE).unwrap()
    } else {
        document
    }
});

/// How many random messages of each definition are tried.
const SEEDS: u32 = 60;

/// Derived once for all tests.
static VECTORS: LazyLock<Vec<Vectors>> = LazyLock::new(|| vectors(&DOCUMENT).unwrap());

/// The vectors with what is wrong with each, for one kind of check.
fn failures(check: impl Fn(&Type, &Vector) -> Result<(), String>) -> Vec<String> {
    let mut found = Vec::new();
    let mut checked = 0;
    for set in VECTORS.iter() {
        let ty = all().find(|ty| ty.name == set.definition);
        let ty = ty.unwrap_or_else(|| panic!("add {} to the list of types", set.definition));
        for vector in &set.vectors {
            checked += 1;
            if let Err(message) = check(ty, vector) {
                let (name, value) = (&vector.name, &vector.value);
                found.push(format!("{}: {name}: {message}\n    {value}", ty.name));
            }
        }
    }
    assert!(checked > 5_000, "only {checked} vectors");
    found
}

fn assert_none(failures: &[String]) {
    let shown = failures.iter().take(40).cloned().collect::<Vec<_>>();
    assert!(
        failures.is_empty(),
        "{} vectors fail:\n{}",
        failures.len(),
        shown.join("\n")
    );
}

#[test]
fn each_is_read_as_the_schema_says() {
    assert_none(&failures(|ty, vector| {
        expected(&vector.expect, (ty.read)(&vector.value.to_string()))
    }));
}

#[test]
fn messages_made_by_chance_are_read_as_the_schema_says() {
    let mut failures = Vec::new();
    for ty in all() {
        for seed in 0..SEEDS {
            // Every third has no fault at all.
            let vector = random(
                &DOCUMENT,
                ty.name,
                seed,
                if seed % 3 == 0 { 0 } else { seed },
            );
            let outcome = (ty.read)(&vector.value.to_string());
            if let Err(message) = expected(&vector.expect, outcome) {
                failures.push(format!(
                    "{} {}: {message}\n    {}",
                    ty.name, vector.name, vector.value
                ));
            }
        }
    }
    assert_none(&failures);
}

#[test]
fn the_strict_and_the_lenient_pass_agree() {
    assert_none(&failures(|ty, vector| {
        let text = vector.value.to_string();
        let (first, second) = ((ty.read)(&text), (ty.read_lenient)(&text));
        match (first, second) {
            (Ok((first, _)), Ok((second, _))) if first == second => Ok(()),
            (Err(first), Err(second)) if first == second => Ok(()),
            (first, second) => Err(format!("read as {first:?}, with leniency as {second:?}")),
        }
    }));
}

#[test]
fn what_is_written_is_read_as_the_same() {
    assert_none(&failures(|ty, vector| {
        let Ok((written, _)) = (ty.read)(&vector.value.to_string()) else {
            return Ok(());
        };
        match (ty.read)(&written) {
            Ok((again, dropped)) if again == written && dropped.is_empty() => Ok(()),
            other => Err(format!("written as {written}, which is read as {other:?}")),
        }
    }));
}

/// Unions with a variant that needs no tag and takes the members of the others: what
/// is wrong with those is valid by the schema, but a reader goes by the tag.
const TAKES_ANY: [&str; 2] = ["AuthMethod", "SetSessionConfigOptionRequest"];

#[test]
fn the_validator_accepts_what_is_valid_and_nothing_else() {
    let validator = Validator::new(&with_method_for_each(DOCUMENT.clone())).unwrap();
    assert_none(&failures(|ty, vector| {
        let checked = validator.params(Side::Agent, &method(ty.name), &vector.value);
        let valid = matches!(vector.expect, Expect::Valid { .. });
        match checked {
            Checked::Valid if valid || TAKES_ANY.contains(&ty.name) => Ok(()),
            // How wide an integer is stands in its `format`, which is no assertion.
            Checked::Valid if ends_with_a_wide_number(&vector.name) => Ok(()),
            Checked::Invalid(_) if !valid => Ok(()),
            other => Err(format!("{other:?}, expected {:?}", vector.expect)),
        }
    }));
}

#[test]
fn what_valid_and_lenient_ones_are_written_as_is_valid() {
    let validator = Validator::new(&with_method_for_each(DOCUMENT.clone())).unwrap();
    assert_none(&failures(|ty, vector| {
        // A word of a later version is kept, which no validator of this one accepts.
        let dropped =
            matches!(&vector.expect, Expect::Lenient { dropped, .. } if !dropped.is_empty());
        if !dropped && !matches!(vector.expect, Expect::Valid { .. }) {
            return Ok(());
        }
        let (written, _) = (ty.read)(&vector.value.to_string()).map_err(|e| e.to_string())?;
        let written = serde_json::from_str(&written).unwrap();
        match validator.params(Side::Agent, &method(ty.name), &written) {
            Checked::Valid => Ok(()),
            other => Err(format!("written as {written}: {other:?}")),
        }
    }));
}

#[test]
fn the_list_of_types_is_complete() {
    let defined: BTreeSet<&str> = VECTORS.iter().map(|set| set.definition.as_str()).collect();
    let mut listed: Vec<&str> = all().map(|ty| ty.name).collect();
    listed.sort_unstable();
    assert_eq!(listed, defined.into_iter().collect::<Vec<_>>());
}

fn expected(expect: &Expect, outcome: Outcome) -> Result<(), String> {
    match (expect, outcome) {
        (Expect::Invalid { paths }, Err(error)) if paths.contains(&error.path) => Ok(()),
        (Expect::Invalid { paths }, other) => {
            Err(format!("{other:?}, expected blame on {paths:?}"))
        }
        (Expect::Valid { means }, Ok((written, dropped))) if dropped.is_empty() => {
            meaning(means, &written)
        }
        (Expect::Lenient { means, dropped }, Ok((written, reported)))
            if reported.iter().map(|leniency| &leniency.path).eq(dropped) =>
        {
            meaning(means, &written)
        }
        (expect, other) => Err(format!("{other:?}, expected {expect:?}")),
    }
}

fn meaning(means: &Value, written: &str) -> Result<(), String> {
    let value: Value = serde_json::from_str(written).unwrap();
    if same(means, &value) {
        Ok(())
    } else {
        Err(format!("written as {written}, but means {means}"))
    }
}

/// Whether two values are equal; `1` and `1.0` are the same number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let is_in = |(name, a): (&String, &Value)| b.get(name).is_some_and(|b| same(a, b));
            a.len() == b.len() && a.iter().all(is_in)
        }
        (a, b) => a == b,
    }
}

/// Whether a vector is about a number that 16 bits do not hold.
fn ends_with_a_wide_number(name: &str) -> bool {
    let number = name
        .rsplit(' ')
        .next()
        .and_then(|word| word.parse::<f64>().ok());
    number.is_some_and(|number| number.abs() > f64::from(u16::MAX))
}

/// The method whose params are the definition `name`.
fn method(name: &str) -> String {
    format!("vector/{name}")
}

/// The document with a notification for each definition, for the validator checks
/// the params of methods.
fn with_method_for_each(document: Document) -> Document {
    let definitions: Map<String, Value> = all()
        .map(|ty| {
            let schema = json!({
                "x-method": method(ty.name),
                "x-side": "agent",
                "allOf": [{ "$ref": format!("#/$defs/{}", ty.name) }],
            });
            (format!("{}VectorNotification", ty.name), schema)
        })
        .collect();
    let overlay = json!({ "$defs": definitions }).to_string();
    document.overlay("vectors", &overlay).unwrap()
}
