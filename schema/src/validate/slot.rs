//! One definition with what it reaches, compiled on first use.

use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use super::explain::explain;
use super::{Checked, Violation};
use crate::{Document, Error};

#[derive(Debug)]
pub(super) struct Slot {
    schema: Value,
    compiled: OnceLock<Result<jsonschema::Validator, String>>,
}

impl Slot {
    pub(super) fn new(document: &Document, name: &str) -> Result<Self, Error> {
        let mut defs = Map::new();
        // Only reachable definitions are compiled along: small documents make
        // the first use of each method cheap.
        let mut waiting = vec![(name.to_owned(), format!("/$defs/{name}"))];
        while let Some((name, origin)) = waiting.pop() {
            if defs.contains_key(&name) {
                continue;
            }
            let Some(schema) = document.def(&name) else {
                return Err(Error::invalid(
                    document.name(),
                    &origin,
                    format!("no definition `{name}`; define it or correct the name"),
                ));
            };
            references(schema, &format!("/$defs/{name}"), &mut waiting);
            defs.insert(name, schema.clone());
        }
        let reference = format!("#/$defs/{name}");
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$ref": reference,
            "$defs": defs,
        });
        Ok(Self {
            schema,
            compiled: OnceLock::new(),
        })
    }

    pub(super) fn check(&self, value: &Value) -> Checked {
        let compiled = self.compiled.get_or_init(|| {
            jsonschema::draft202012::new(&self.schema).map_err(|error| error.to_string())
        });
        match compiled {
            Ok(validator) if validator.is_valid(value) => Checked::Valid,
            Ok(validator) => {
                let errors = validator.iter_errors(value);
                Checked::Invalid(
                    errors
                        .flat_map(|error| explain(&self.schema, value, &error))
                        .collect(),
                )
            }
            // A definition that is no schema accepts nothing, and says why.
            Err(message) => Checked::Invalid(vec![Violation {
                path: String::new(),
                schema_path: String::new(),
                message: format!("the schema does not compile: {message}"),
            }]),
        }
    }
}

fn references(schema: &Value, at: &str, found: &mut Vec<(String, String)>) {
    match schema {
        Value::Object(members) => {
            for (key, member) in members {
                let at = format!("{at}/{key}");
                match member.as_str().filter(|_| key == "$ref") {
                    Some(target) => {
                        let name = target.strip_prefix("#/$defs/").unwrap_or(target);
                        found.push((name.to_owned(), at));
                    }
                    None => references(member, &at, found),
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                references(item, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}
