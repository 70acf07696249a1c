//! One definition with what it reaches, compiled on first use.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};

use super::explain::explain;
use super::strict::tighten;
use super::{Checked, Violation};
use crate::walk::schemas;
use crate::{Document, Error};

#[derive(Debug)]
pub(super) struct Slot {
    document: Arc<Document>,
    name: String,
    compiled: OnceLock<Compiled>,
}

/// A schema of its own, and its validator.
#[derive(Debug)]
struct Compiled {
    schema: Value,
    validator: Result<jsonschema::Validator, String>,
}

impl Slot {
    /// Creates the slot of a definition. The document was checked, so all references have targets.
    pub(super) fn new(document: &Arc<Document>, name: &str) -> Result<Self, Error> {
        if document.def(name).is_none() {
            let message = format!("no definition `{name}`; define it or correct the name");
            return Err(document.invalid(&format!("/$defs/{name}"), message));
        }
        Ok(Self {
            document: document.clone(),
            name: name.to_owned(),
            compiled: OnceLock::new(),
        })
    }

    fn compile(&self) -> Compiled {
        let mut defs = Map::new();
        // Only reachable definitions are compiled along: small documents make
        // the first use of each method cheap.
        let mut waiting = vec![self.name.clone()];
        while let Some(name) = waiting.pop() {
            let Some(schema) = self
                .document
                .def(&name)
                .filter(|_| !defs.contains_key(&name))
            else {
                continue;
            };
            references(schema, &mut waiting);
            let mut schema = schema.clone();
            tighten(&mut schema);
            defs.insert(name, schema);
        }
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$ref": format!("#/$defs/{}", self.name),
            "$defs": defs,
        });
        let validator = jsonschema::draft202012::new(&schema).map_err(|error| error.to_string());
        Compiled { schema, validator }
    }

    pub(super) fn check(&self, value: &Value) -> Checked {
        let compiled = self.compiled.get_or_init(|| self.compile());
        match &compiled.validator {
            Ok(validator) if validator.is_valid(value) => Checked::Valid,
            Ok(validator) => {
                let errors = validator.iter_errors(value);
                Checked::Invalid(
                    errors
                        .flat_map(|error| explain(&compiled.schema, value, &error))
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

/// The definitions that a schema refers to.
fn references(schema: &Value, found: &mut Vec<String>) {
    let Ok(()) = schemas::<Infallible>(schema, "", &mut |_, keywords| {
        if let Some(target) = keywords.get("$ref").and_then(Value::as_str) {
            // What lies deeper in a definition comes with the whole of it.
            let path = target.strip_prefix("#/$defs/").unwrap_or(target);
            let name = path.split('/').next().unwrap_or(path);
            found.push(name.replace("~1", "/").replace("~0", "~"));
        }
        Ok(())
    });
}
