//! Ours against the official types: what either accepts, and what it writes.
//!
//! Every vector and many random messages go through both. What differs must have a
//! row in the table, and a row that nothing needs fails.

use std::collections::BTreeSet;

use acp_codegen::vectors::{Expect, expect, random};
use acp_sdk::runtime::Leniency;
use serde_json::Value;

use crate::types::Type;
use crate::{SEEDS, Suite, same};

/// A way in which the two differ, and why that is right.
pub(crate) struct Known {
    pub(crate) reason: &'static str,
    pub(crate) applies: fn(&Difference) -> bool,
}

/// The differences that every version has.
const ALWAYS: &[Known] = &[
    Known {
        reason: "ours keeps a word or variant of a later version, and theirs refuses, \
                 drops or replaces it",
        applies: |found| {
            found.keeps_unknown
                && match &found.kind {
                    Kind::OnlyOurs(_) => true,
                    Kind::Written { ours, .. } => ours.to_string().contains('"'),
                    Kind::OnlyTheirs { .. } => false,
                }
        },
    },
    Known {
        reason: "theirs takes a list for an object, as serde does by default",
        applies: |found| found.dropped_list || found.refused("array, expected an object"),
    },
    Known {
        reason: "ours keeps all members of an unknown mode, null ones too",
        applies: |found| found.only_ours_writes("/toolCallId"),
    },
    Known {
        reason: "theirs takes null for params and results that need no members, ours only \
                 for results, and says so",
        applies: |found| found.refused("null, expected an object"),
    },
];

#[derive(Debug)]
pub(crate) enum Kind {
    /// Only ours accepts the value; what theirs says.
    OnlyOurs(#[allow(dead_code, reason = "for the message of the failure")] String),
    /// Only theirs accepts the value; where and why ours refuses it.
    OnlyTheirs { path: String, message: String },
    /// Both accept it, and write it differently at `path`.
    Written {
        path: String,
        ours: Value,
        theirs: Value,
    },
}

#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) definition: &'static str,
    pub(crate) kind: Kind,
    /// What ours writes has a word that the schema does not.
    pub(crate) keeps_unknown: bool,
    /// Ours dropped a list where an object belongs.
    pub(crate) dropped_list: bool,
    /// Theirs accepts the value once its null ids of requests are numbers.
    #[cfg_attr(
        not(feature = "v2"),
        allow(dead_code, reason = "asked by the suite of version 2")
    )]
    pub(crate) null_id: bool,
}

impl Difference {
    pub(crate) fn refused(&self, why: &str) -> bool {
        matches!(&self.kind, Kind::OnlyTheirs { message, .. } if message.contains(why))
    }

    pub(crate) fn only_ours_writes(&self, end: &str) -> bool {
        matches!(&self.kind, Kind::Written { path, theirs: Value::Null, .. } if path.ends_with(end))
    }

    #[cfg(not(feature = "unstable"))]
    pub(crate) fn only_theirs_writes(&self, end: &str) -> bool {
        matches!(&self.kind, Kind::Written { path, ours: Value::Null, .. } if path.ends_with(end))
    }
}

pub(crate) fn both_accept_refuse_and_write_alike(suite: &Suite) {
    let known: Vec<&Known> = ALWAYS.iter().chain(suite.known).collect();
    let mut used = BTreeSet::new();
    let mut unknown = Vec::new();
    let mut judge = |ty: &'static Type, value: &Value| {
        for difference in differences(suite, ty, value) {
            let mut rows = known.iter().enumerate();
            match rows.find(|(_, row)| (row.applies)(&difference)) {
                Some((index, _)) => drop(used.insert(index)),
                None => unknown.push(format!("{difference:?}\n    {value}")),
            }
        }
    };
    for set in &suite.vectors {
        let ty = suite.ty(&set.definition);
        set.vectors
            .iter()
            .for_each(|vector| judge(ty, &vector.value));
    }
    for &ty in &suite.types {
        for seed in 0..SEEDS {
            judge(ty, &random(&suite.document, ty.name, seed, seed / 2).value);
        }
    }
    let shown: Vec<_> = unknown.iter().take(40).cloned().collect();
    assert!(
        unknown.is_empty(),
        "{} differences without a reason:\n{}",
        unknown.len(),
        shown.join("\n")
    );
    for (index, row) in known.iter().enumerate() {
        assert!(
            used.contains(&index),
            "nothing differs any more because {}; remove the row",
            row.reason
        );
    }
}

fn differences(suite: &Suite, ty: &'static Type, value: &Value) -> Vec<Difference> {
    let text = value.to_string();
    let one = |kind| Difference {
        definition: ty.name,
        kind,
        keeps_unknown: false,
        dropped_list: false,
        null_id: false,
    };
    let ((ours, dropped), theirs) = match ((ty.read)(&text), (ty.official)(&text)) {
        (Err(_), Err(_)) => return Vec::new(),
        (Err(error), Ok(_)) => {
            let (path, message) = (error.path, error.message);
            return vec![one(Kind::OnlyTheirs { path, message })];
        }
        (Ok(read), theirs) => (read, theirs),
    };
    let ours: Value = serde_json::from_str(&ours).unwrap();
    let mut found = Vec::new();
    match theirs {
        Ok(theirs) => written(
            &ours,
            &serde_json::from_str(&theirs).unwrap(),
            "",
            &mut found,
        ),
        Err(error) => found.push(Kind::OnlyOurs(error)),
    }
    if found.is_empty() {
        return Vec::new();
    }
    let keeps_unknown = keeps_unknown(suite, ty, &ours);
    let lists = |leniency: &Leniency| leniency.reason.contains("array, expected an object");
    let dropped_list = dropped.iter().any(lists);
    let mut numbered = value.clone();
    let null_id = number_ids(&mut numbered, ty.name == "RequestId")
        && (ty.official)(&numbered.to_string()).is_ok();
    let complete = |kind| Difference {
        keeps_unknown,
        dropped_list,
        null_id,
        ..one(kind)
    };
    found.into_iter().map(complete).collect()
}

/// Replaces the null ids of requests by a number. Returns whether there were any.
fn number_ids(value: &mut Value, is_id: bool) -> bool {
    match value {
        Value::Null if is_id => {
            *value = 1.into();
            true
        }
        Value::Object(members) => {
            let mut found = false;
            for (name, value) in members {
                found |= number_ids(value, name == "requestId");
            }
            found
        }
        Value::Array(items) => {
            let mut found = false;
            for item in items {
                found |= number_ids(item, false);
            }
            found
        }
        _ => false,
    }
}

/// Whether a value that nothing is wrong with otherwise has a word that the schema
/// does not.
fn keeps_unknown(suite: &Suite, ty: &Type, written: &Value) -> bool {
    matches!(expect(&suite.document, ty.name, written), Expect::Lenient { dropped, .. } if dropped.is_empty())
}

/// All places where two values differ; what is absent is null here.
fn written(ours: &Value, theirs: &Value, at: &str, found: &mut Vec<Kind>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let at = format!("{at}/{name}");
                let (a, b) = (a.get(name), b.get(name));
                if a.is_none() != b.is_none() {
                    found.push(Kind::Written {
                        path: at,
                        ours: a.cloned().unwrap_or_default(),
                        theirs: b.cloned().unwrap_or_default(),
                    });
                } else if let (Some(a), Some(b)) = (a, b) {
                    written(a, b, &at, found);
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                written(a, b, &format!("{at}/{index}"), found);
            }
        }
        (a, b) if same(a, b) => {}
        (a, b) => found.push(Kind::Written {
            path: at.to_owned(),
            ours: a.clone(),
            theirs: b.clone(),
        }),
    }
}
