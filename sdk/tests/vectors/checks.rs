//! What every version's vectors are held against.

use std::collections::BTreeSet;

use acp_codegen::vectors::{Expect, random};
use acp_schema::{Checked, Document, Side, Validator};
use serde_json::{Map, Value, json};

use crate::types::Outcome;
use crate::{SEEDS, Suite, same};

pub(crate) fn assert_none(failures: &[String]) {
    let shown = failures.iter().take(40).cloned().collect::<Vec<_>>();
    assert!(
        failures.is_empty(),
        "{} vectors fail:\n{}",
        failures.len(),
        shown.join("\n")
    );
}

pub(crate) fn each_is_read_as_the_schema_says(suite: &Suite) {
    assert_none(
        &suite
            .failures(|ty, vector| expected(&vector.expect, (ty.read)(&vector.value.to_string()))),
    );
}

pub(crate) fn messages_made_by_chance_are_read_as_the_schema_says(suite: &Suite) {
    let mut failures = Vec::new();
    for ty in &suite.types {
        for seed in 0..SEEDS {
            // Every third has no fault at all.
            let vector = random(
                &suite.document,
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

pub(crate) fn the_strict_and_the_lenient_pass_agree(suite: &Suite) {
    assert_none(&suite.failures(|ty, vector| {
        let text = vector.value.to_string();
        let (first, second) = ((ty.read)(&text), (ty.read_lenient)(&text));
        match (first, second) {
            (Ok((first, _)), Ok((second, _))) if first == second => Ok(()),
            (Err(first), Err(second)) if first == second => Ok(()),
            (first, second) => Err(format!("read as {first:?}, with leniency as {second:?}")),
        }
    }));
}

pub(crate) fn what_is_written_is_read_as_the_same(suite: &Suite) {
    assert_none(&suite.failures(|ty, vector| {
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
pub(crate) const TAKES_ANY: [&str; 2] = ["AuthMethod", "SetSessionConfigOptionRequest"];

pub(crate) fn the_validator_accepts_what_is_valid_and_nothing_else(suite: &Suite) {
    let validator = Validator::new(&with_method_for_each(suite)).unwrap();
    assert_none(&suite.failures(|ty, vector| {
        let checked = validator.params(Side::AGENT, &method(ty.name), &vector.value);
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

pub(crate) fn what_valid_and_lenient_ones_are_written_as_is_valid(suite: &Suite) {
    let validator = Validator::new(&with_method_for_each(suite)).unwrap();
    assert_none(&suite.failures(|ty, vector| {
        // A word of a later version is kept, which no validator of this one accepts.
        let dropped =
            matches!(&vector.expect, Expect::Lenient { dropped, .. } if !dropped.is_empty());
        if !dropped && !matches!(vector.expect, Expect::Valid { .. }) {
            return Ok(());
        }
        let (written, _) = (ty.read)(&vector.value.to_string()).map_err(|e| e.to_string())?;
        let written = serde_json::from_str(&written).unwrap();
        match validator.params(Side::AGENT, &method(ty.name), &written) {
            Checked::Valid => Ok(()),
            Checked::Invalid(_) if suite.loses_too_much.contains(&ty.name) => Ok(()),
            other => Err(format!("written as {written}: {other:?}")),
        }
    }));
}

pub(crate) fn the_list_of_types_is_complete(suite: &Suite) {
    let defined: BTreeSet<&str> = suite
        .vectors
        .iter()
        .map(|set| set.definition.as_str())
        .collect();
    let mut listed: Vec<&str> = suite.types.iter().map(|ty| ty.name).collect();
    listed.sort_unstable();
    assert_eq!(listed, defined.into_iter().collect::<Vec<_>>());
}

pub(crate) fn expected(expect: &Expect, outcome: Outcome) -> Result<(), String> {
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

/// Whether a vector is about a number that 16 bits do not hold.
fn ends_with_a_wide_number(name: &str) -> bool {
    let number = name
        .rsplit(' ')
        .next()
        .and_then(|word| word.parse::<f64>().ok());
    number.is_some_and(|number| number.abs() > f64::from(u16::MAX))
}

/// The method whose params are the definition `name`.
pub(crate) fn method(name: &str) -> String {
    format!("vector/{name}")
}

/// The document with a notification for each definition, for the validator checks
/// the params of methods.
pub(crate) fn with_method_for_each(suite: &Suite) -> Document {
    let types = suite.types.iter();
    let definitions: Map<String, Value> = types
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
    let document = suite.document.clone();
    document.overlay("vectors", &overlay).unwrap()
}
