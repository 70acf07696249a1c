//! One definition with what it reaches, compiled on first use.

use std::convert::Infallible;
use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use super::explain::explain;
use super::strict::tighten;
use super::{Checked, Violation};
use crate::walk::schemas;
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
                let message = format!("no definition `{name}`; define it or correct the name");
                return Err(document.invalid(&origin, message));
            };
            references(schema, &format!("/$defs/{name}"), &mut waiting);
            let mut schema = schema.clone();
            tighten(&mut schema);
            defs.insert(name, schema);
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

/// The definitions that a schema refers to, each with the place of the reference.
fn references(schema: &Value, at: &str, found: &mut Vec<(String, String)>) {
    let Ok(()) = schemas::<Infallible>(schema, at, &mut |at, keywords| {
        if let Some(target) = keywords.get("$ref").and_then(Value::as_str) {
            // What lies deeper in a definition comes with the whole of it.
            let path = target.strip_prefix("#/$defs/").unwrap_or(target);
            let name = path.split('/').next().unwrap_or(path);
            let name = name.replace("~1", "/").replace("~0", "~");
            found.push((name, format!("{at}/$ref")));
        }
        Ok(())
    });
}
