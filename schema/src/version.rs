//! The protocol version of a document, from its root keyword `x-version`.

use serde_json::{Map, Value};

use crate::{Document, Error};

/// The protocol version that a document describes.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionInfo {
    /// The number that `initialize` negotiates.
    pub number: u16,
    /// Whether the id of a request may be null; false when absent.
    pub null_ids: bool,
    /// Whether `initialize` may be repeated after other requests; false when absent.
    pub late_initialize: bool,
    /// The error code with which an agent refuses a client that asks for an older version.
    /// Without one, the agent answers with its own version, and the client decides.
    pub unsupported_code: Option<i32>,
    /// Members that a request `initialize` of a later version may lack, with stand-ins.
    pub initialize_defaults: Map<String, Value>,
}

impl Document {
    /// Returns the protocol version of the document, `None` when it names none.
    ///
    /// # Errors
    /// When `x-version` has another form than [`VersionInfo`].
    pub fn version(&self) -> Result<Option<VersionInfo>, Error> {
        const AT: &str = "/x-version";
        let Some(keyword) = self.value().get("x-version") else {
            return Ok(None);
        };
        let Some(members) = keyword.as_object() else {
            return Err(self.invalid(AT, "not an object; write `{\"number\": 1}`"));
        };
        let mut number = None;
        let mut info = VersionInfo {
            number: 0,
            null_ids: false,
            late_initialize: false,
            unsupported_code: None,
            initialize_defaults: Map::new(),
        };
        for (name, value) in members {
            let integer = value.as_i64();
            let fits = match name.as_str() {
                "number" => {
                    number = integer.and_then(|number| u16::try_from(number).ok());
                    number.is_some()
                }
                "nullIds" => value.as_bool().map(|it| info.null_ids = it).is_some(),
                "lateInitialize" => {
                    let late = value.as_bool();
                    late.map(|it| info.late_initialize = it).is_some()
                }
                "unsupportedCode" => {
                    info.unsupported_code = integer.and_then(|code| i32::try_from(code).ok());
                    info.unsupported_code.is_some()
                }
                "initializeDefaults" => value
                    .as_object()
                    .map(|defaults| info.initialize_defaults = defaults.clone())
                    .is_some(),
                _ => false,
            };
            if !fits {
                let message = format!(
                    "unknown or of another type; known are `number` and `unsupportedCode`, \
                     integers, `nullIds` and `lateInitialize`, booleans, and \
                     `initializeDefaults`, an object; got {value}"
                );
                return Err(self.invalid(&format!("{AT}/{name}"), message));
            }
        }
        info.number = number.ok_or_else(|| self.invalid(AT, "no `number`; add the version's"))?;
        Ok(Some(info))
    }
}
