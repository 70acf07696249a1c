//! A schema document with its overlays applied.

use serde_json::{Map, Value};

use crate::{Error, V1};

/// A JSON Schema document whose definitions are those of a protocol.
#[derive(Clone, Debug)]
pub struct Document {
    /// The document.
    pub value: Value,
    name: String,
}

impl Document {
    /// The bundled document of protocol version 1.
    ///
    /// # Errors
    /// Never for the document as shipped.
    pub fn v1() -> Result<Self, Error> {
        Self::parse("v1.json", V1)
    }

    /// Reads a document; `name` stands for it in errors.
    ///
    /// # Errors
    /// When `text` is not a JSON object with an object `$defs`.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let value: Value = serde_json::from_str(text).map_err(|source| Error::Json {
            name: name.into(),
            source,
        })?;
        if !value.get("$defs").is_some_and(Value::is_object) {
            return Err(Error::invalid(
                name,
                "/$defs",
                "not an object; put the definitions here",
            ));
        }
        Ok(Self {
            value,
            name: name.into(),
        })
    }

    /// The document with an overlay: `$defs` are added, then the JSON Patch in
    /// `x-patch` is applied.
    ///
    /// # Errors
    /// When a definition exists already or the patch does not apply.
    pub fn overlay(mut self, name: &str, text: &str) -> Result<Self, Error> {
        let mut overlay: Value = serde_json::from_str(text).map_err(|source| Error::Json {
            name: name.into(),
            source,
        })?;
        let added = match overlay.get_mut("$defs").map(Value::take) {
            Some(Value::Object(added)) => added,
            None => Map::new(),
            Some(_) => return Err(Error::invalid(name, "/$defs", "not an object")),
        };
        if let Some(defs) = self.value.get_mut("$defs").and_then(Value::as_object_mut) {
            for (definition, schema) in added {
                if defs.contains_key(&definition) {
                    let message = format!(
                        "already defined in {}; change it with `x-patch` or choose another name",
                        self.name
                    );
                    return Err(Error::invalid(
                        name,
                        &format!("/$defs/{definition}"),
                        message,
                    ));
                }
                defs.insert(definition, schema);
            }
        }
        if let Some(patch) = overlay.get_mut("x-patch").map(Value::take) {
            let patch: json_patch::Patch = serde_json::from_value(patch)
                .map_err(|error| Error::invalid(name, "/x-patch", error.to_string()))?;
            json_patch::patch(&mut self.value, &patch)
                .map_err(|error| Error::invalid(name, "/x-patch", error.to_string()))?;
        }
        Ok(self)
    }

    /// The definition `name`.
    #[must_use]
    pub fn def(&self, name: &str) -> Option<&Value> {
        self.value.get("$defs")?.get(name)
    }

    /// All definitions in the order of the document.
    pub fn defs(&self) -> impl Iterator<Item = (&str, &Value)> {
        let defs = self.value.get("$defs").and_then(Value::as_object);
        defs.into_iter()
            .flatten()
            .map(|(name, schema)| (name.as_str(), schema))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}
