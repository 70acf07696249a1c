//! A schema document with its overlays applied.

use json_patch::PatchOperation;
use serde_json::{Map, Value};

use crate::strict_json::read;
use crate::walk::{escaped, schemas};
use crate::{Error, V1, V1_UNSTABLE, V2, V2_PREVIEW, V2_UNSTABLE, infinite_types};

/// The keywords that documents add to JSON Schema.
const KEYWORDS: [&str; 19] = [
    // The method that a definition is the params or the result of.
    "x-method",
    // Who handles the method: a role, or `both`, `protocol` or `proxy`.
    "x-side",
    // Facts of the method, at its params; see `facts`.
    "x-scope",
    "x-access",
    "x-retry",
    "x-joins",
    "x-login",
    "x-capability",
    // The notification cancels the request whose id is in this member, or the requests of these
    // methods in its session; see `cancellation`.
    "x-cancels",
    // Senders may join texts of the notification; see `coalescing`.
    "x-coalesce",
    // What a variant contributes to a conversation; see `content`.
    "x-content",
    // An envelope, which only routes; no type is made of it.
    "x-docs-ignore",
    // Readers take an invalid value as absent.
    "x-deserialize-default-on-error",
    // Readers take null as absent.
    "x-deserialize-default-on-null",
    // Readers drop invalid items and keep the others.
    "x-deserialize-skip-invalid-items",
    // Absent, null and a value mean three things, as in a patch.
    "x-tri-state",
    // Transcripts mask everything inside of a value.
    "x-sensitive",
    // At the root: the protocol version of the document; see `version`.
    "x-version",
    // At the root: the members whose text transcripts show; see `transcript`.
    "x-transcript",
];

/// The types of JSON Schema.
const TYPES: [&str; 7] = [
    "null", "boolean", "integer", "number", "string", "array", "object",
];

/// The members of an overlay besides its definitions and its patch.
const ABOUT: [&str; 5] = ["$schema", "$id", "$comment", "title", "description"];

/// A JSON Schema document whose definitions are those of a protocol.
#[derive(Clone, Debug)]
pub struct Document {
    value: Value,
    /// Whether [`check`](Self::check) is known to succeed: a test has checked the bundled documents.
    pub(crate) is_checked: bool,
    name: String,
    /// The places that overlays wrote, as JSON Pointer and name of the overlay, in order.
    written: Vec<(String, String)>,
}

impl Document {
    /// The bundled document of protocol version 1.
    ///
    /// # Errors
    /// Never for the bundled document.
    pub fn v1() -> Result<Self, Error> {
        Self::parse("v1.json", V1).map(Self::checked)
    }

    /// The bundled document of protocol version 1 with [`V1_UNSTABLE`] applied.
    ///
    /// # Errors
    /// Never for the bundled document.
    pub fn v1_unstable() -> Result<Self, Error> {
        let document = Self::v1()?.overlay("v1.unstable.json", V1_UNSTABLE);
        document.map(Self::checked)
    }

    /// The bundled document of the draft of protocol version 2, with [`V2_PREVIEW`] applied.
    ///
    /// # Errors
    /// Never for the bundled document.
    pub fn v2() -> Result<Self, Error> {
        let document = Self::parse("v2.json", V2)?.overlay("v2.preview.json", V2_PREVIEW);
        document.map(Self::checked)
    }

    /// The bundled document of the draft of protocol version 2 with [`V2_UNSTABLE`] applied.
    ///
    /// # Errors
    /// Never for the bundled document.
    pub fn v2_unstable() -> Result<Self, Error> {
        let document = Self::v2()?.overlay("v2.unstable.json", V2_UNSTABLE);
        document.map(Self::checked)
    }

    fn checked(self) -> Self {
        let is_checked = true;
        Self { is_checked, ..self }
    }

    /// Returns the document to be changed, which [`Protocol`](crate::Protocol) checks again.
    pub fn value_mut(&mut self) -> &mut Value {
        self.is_checked = false;
        &mut self.value
    }

    /// Returns the document.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Parses a document; errors call it `name`.
    ///
    /// # Errors
    /// Fails when `text` is not a JSON object with an object `$defs`.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let value = read(name, text)?;
        if !value.get("$defs").is_some_and(Value::is_object) {
            return Err(Error::invalid(
                name,
                "/$defs",
                "not an object; put the definitions here",
            ));
        }
        Ok(Self {
            value,
            is_checked: false,
            name: name.into(),
            written: Vec::new(),
        })
    }

    /// Applies an overlay: adds its `$defs`, then applies the JSON Patch in `x-patch`.
    /// Errors call the overlay `name`, including later errors in what it wrote.
    ///
    /// # Errors
    /// Fails when a definition exists already, the patch does not apply, or the overlay has
    /// an unknown member.
    pub fn overlay(mut self, name: &str, text: &str) -> Result<Self, Error> {
        let Value::Object(members) = read(name, text)? else {
            return Err(Error::invalid(
                name,
                "",
                "not an object; an overlay has `$defs` and `x-patch`",
            ));
        };
        let (mut added, mut operations) = (Map::new(), Vec::new());
        for (key, value) in members {
            match (key.as_str(), value) {
                ("$defs", Value::Object(value)) => added = value,
                ("$defs", _) => return Err(Error::invalid(name, "/$defs", "not an object")),
                ("x-patch", Value::Array(value)) => operations = value,
                ("x-patch", _) => {
                    return Err(Error::invalid(
                        name,
                        "/x-patch",
                        "not a list; write the operations of a JSON Patch here",
                    ));
                }
                (key, _) if ABOUT.contains(&key) => {}
                (key, _) => {
                    return Err(Error::invalid(
                        name,
                        &format!("/{}", escaped(key)),
                        "unknown member; an overlay has `$defs` and `x-patch`",
                    ));
                }
            }
        }
        self.is_checked = false;
        for (definition, schema) in added {
            self.define(name, definition, schema)?;
        }
        for (index, operation) in operations.into_iter().enumerate() {
            self.patch(name, index, operation)?;
        }
        Ok(self)
    }

    /// Adds a definition of the overlay `name`.
    fn define(&mut self, name: &str, definition: String, schema: Value) -> Result<(), Error> {
        let at = format!("/$defs/{}", escaped(&definition));
        if self.def(&definition).is_some() {
            let message = format!(
                "already defined in {}; change it with `x-patch` or choose another name",
                self.file(&at)
            );
            return Err(Error::invalid(name, &at, message));
        }
        if let Some(defs) = self.value.get_mut("$defs").and_then(Value::as_object_mut) {
            defs.insert(definition, schema);
            self.written.push((at, name.to_owned()));
        }
        Ok(())
    }

    /// Applies one operation of the overlay `name`.
    fn patch(&mut self, name: &str, index: usize, operation: Value) -> Result<(), Error> {
        let at = format!("/x-patch/{index}");
        let operation: PatchOperation = serde_json::from_value(operation).map_err(|error| {
            let message = format!("{error}; write an operation of a JSON Patch (RFC 6902)");
            Error::invalid(name, &at, message)
        })?;
        let (verb, path) = (verb(&operation), operation.path().to_string());
        json_patch::patch(&mut self.value, &[operation]).map_err(|error| {
            let message = format!(
                "{verb} at `{path}`: {}; the path is that of the document with the \
                 operations before this one applied",
                error.kind
            );
            Error::invalid(name, &at, message)
        })?;
        self.written.push((path, name.to_owned()));
        Ok(())
    }

    /// Validates the document.
    ///
    /// # Errors
    /// Fails for an unknown keyword that starts with `x-`, a `$ref` without a target, an
    /// unknown `type`, a required member that is not defined, a `default` of another type,
    /// and a definition that contains itself infinitely. The error names file, place and
    /// remedy.
    pub fn check(&self) -> Result<(), Error> {
        self.check_schemas()?;
        self.version()?;
        self.transcript()?;
        self.coalescing()?;
        self.contents()?;
        let Some(way) = infinite_types::first(self) else {
            return Ok(());
        };
        let at = format!(
            "/$defs/{}",
            escaped(way.first().copied().unwrap_or_default())
        );
        let message = format!(
            "infinitely recursive: `{}`; make a member of \
             the cycle optional or nullable, or put it into a list",
            way.join("` > `")
        );
        Err(self.invalid(&at, message))
    }

    fn check_schemas(&self) -> Result<(), Error> {
        schemas(&self.value, "", &mut |at, keywords| {
            let unknown =
                |key: &&String| key.starts_with("x-") && !KEYWORDS.contains(&key.as_str());
            if let Some(key) = keywords.keys().find(unknown) {
                return Err(self.invalid(
                    &format!("{at}/{}", escaped(key)),
                    format!("unknown keyword; expected one of {}", KEYWORDS.join(", ")),
                ));
            }
            if keywords
                .get("x-sensitive")
                .is_some_and(|mark| mark != &Value::Bool(true))
            {
                return Err(self.invalid(&format!("{at}/x-sensitive"), "not `true`; remove it"));
            }
            if let Some(kind) = keywords.get("type").and_then(unknown_type) {
                let message = format!("unknown type {kind}; expected one of {}", TYPES.join(", "));
                return Err(self.invalid(&format!("{at}/type"), message));
            }
            if let Some(name) = required_unknown(keywords) {
                let message = format!("no member `{name}` among the properties; correct the name");
                return Err(self.invalid(&format!("{at}/required"), message));
            }
            if let Some(default) = default_of_another_type(keywords) {
                let message =
                    format!("{default} does not match the `type` beside it; correct either");
                return Err(self.invalid(&format!("{at}/default"), message));
            }
            match keywords.get("$ref").and_then(Value::as_str) {
                Some(target) => self.resolve(&format!("{at}/$ref"), target),
                None => Ok(()),
            }
        })
    }

    /// Fails when the reference at `at` has no target.
    fn resolve(&self, at: &str, target: &str) -> Result<(), Error> {
        let Some(pointer) = target.strip_prefix('#') else {
            let message = format!("`{target}` is outside of the document; refer to `#/$defs/Name`");
            return Err(self.invalid(at, message));
        };
        if self.value.pointer(pointer).is_some() {
            return Ok(());
        }
        let message = match pointer.strip_prefix("/$defs/") {
            Some(name) => format!("no definition `{name}`; define it or correct the name"),
            None => format!("nothing at `{pointer}`; refer to `#/$defs/Name`"),
        };
        Err(self.invalid(at, message))
    }

    /// Returns the definition `name`.
    #[must_use]
    pub fn def(&self, name: &str) -> Option<&Value> {
        self.value.get("$defs")?.get(name)
    }

    /// Returns all definitions in the order of the document.
    pub fn defs(&self) -> impl Iterator<Item = (&str, &Value)> {
        let defs = self.value.get("$defs").and_then(Value::as_object);
        defs.into_iter()
            .flatten()
            .map(|(name, schema)| (name.as_str(), schema))
    }

    /// An error at a place of the document, in the file that the place comes from.
    pub(crate) fn invalid(&self, at: &str, message: impl Into<String>) -> Error {
        Error::invalid(self.file(at), at, message)
    }

    /// Returns whether an overlay adds the definition `name`.
    pub(crate) fn is_added(&self, name: &str) -> bool {
        self.file(&format!("/$defs/{}", escaped(name))) != self.name
    }

    /// Returns the file that last wrote the place `at`, a JSON Pointer: an overlay or the
    /// document itself.
    #[must_use]
    pub fn file(&self, at: &str) -> &str {
        let covers = |written: &str| {
            // `-` is the end of a list, whose index was known only then.
            let written = written.strip_suffix("/-").unwrap_or(written);
            let rest = at.strip_prefix(written);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let last = self.written.iter().rev().find(|(path, _)| covers(path));
        last.map_or(&self.name, |(_, file)| file)
    }
}

/// What a `type` says that JSON Schema does not know.
fn unknown_type(kind: &Value) -> Option<&Value> {
    let is_unknown = |kind: &&Value| kind.as_str().is_none_or(|kind| !TYPES.contains(&kind));
    match kind {
        Value::Array(kinds) => kinds.iter().find(is_unknown),
        kind => Some(kind).filter(is_unknown),
    }
}

/// A member that is required by a schema that says all of its members, and not this one.
fn required_unknown(keywords: &Map<String, Value>) -> Option<&str> {
    let elsewhere = ["$ref", "allOf", "anyOf", "oneOf"];
    if elsewhere
        .iter()
        .any(|keyword| keywords.contains_key(*keyword))
    {
        return None;
    }
    let properties = keywords.get("properties")?.as_object()?;
    let mut required = keywords.get("required")?.as_array()?.iter();
    let name = required.find(|name| {
        name.as_str()
            .is_none_or(|name| !properties.contains_key(name))
    });
    name.map(|name| name.as_str().unwrap_or("that is no text"))
}

/// A default that could not stand in its own place.
fn default_of_another_type(keywords: &Map<String, Value>) -> Option<&Value> {
    let default = keywords.get("default")?;
    let kinds = match keywords.get("type")? {
        Value::Array(kinds) => kinds.as_slice(),
        kind => std::slice::from_ref(kind),
    };
    let fits = |kind: &Value| match (kind.as_str().unwrap_or_default(), default) {
        ("integer", Value::Number(number)) => number.as_f64().is_some_and(|n| n.fract() == 0.0),
        ("null", Value::Null)
        | ("boolean", Value::Bool(_))
        | ("number", Value::Number(_))
        | ("string", Value::String(_))
        | ("array", Value::Array(_))
        | ("object", Value::Object(_)) => true,
        _ => false,
    };
    (!kinds.iter().any(fits)).then_some(default)
}

fn verb(operation: &PatchOperation) -> &'static str {
    match operation {
        PatchOperation::Add(_) => "add",
        PatchOperation::Remove(_) => "remove",
        PatchOperation::Replace(_) => "replace",
        PatchOperation::Move(_) => "move",
        PatchOperation::Copy(_) => "copy",
        PatchOperation::Test(_) => "test",
    }
}
