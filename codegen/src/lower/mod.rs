//! Lowers a JSON Schema 2020-12 document to the plain schema that typify accepts, and to the IR.
//!
//! One pass over the document has two results: a plain schema, from which typify generates
//! names and Rust types, and the [`ir`](crate::ir), which holds the wire format of each type.
//! Unions are *externally tagged* in the plain schema, because typify generates one variant
//! per branch from this form only. The real tag is in the IR.

mod object;
mod union;
mod value;

use std::collections::{BTreeMap, BTreeSet};

use acp_schema::Document;
use serde_json::{Map, Value, json};

pub(crate) use self::union::tag;
pub(crate) use self::value::target;
#[cfg(feature = "tools")]
pub(crate) use self::value::{integer_format, integer_range, nullable};
use crate::Error;
use crate::ir::{Constant, Shape, Type};
use crate::overrides::{Hint, Overrides};

/// The plain schema and the IR of a document.
#[derive(Debug)]
pub(crate) struct Lowered {
    /// In document order; inline types follow the type that contains them.
    pub(crate) types: Vec<Type>,
    /// Plain schemas by type name, for typify.
    pub(crate) plain: Map<String, Value>,
    /// The document's schemas by type name, and those of definitions without a type.
    pub(crate) schemas: BTreeMap<String, Value>,
}

/// Name of the plain schema of any JSON value.
pub(crate) const ANY: &str = "Json";
/// Name of the plain schema of an object with arbitrary members.
pub(crate) const FREE_OBJECT: &str = "Meta";

/// Keywords that do not restrict a value.
const ANNOTATIONS: &[&str] = &[
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "$comment",
];

/// Lowers all definitions except envelopes and those that accept any value.
///
/// # Errors
/// Fails when a definition has no equivalent Rust type.
pub(crate) fn lower(document: &Document, overrides: &Overrides) -> Result<Lowered, Error> {
    let any = document
        .defs()
        .filter(|(_, schema)| is_any(schema))
        .map(|(name, _)| name.to_owned());
    let mut lowerer = Lowerer {
        document,
        overrides,
        any: any.collect(),
        types: Vec::new(),
        plain: Map::new(),
        sources: BTreeMap::new(),
    };
    for (name, schema) in document.defs() {
        let ignored = schema.get("x-docs-ignore").is_some_and(|flag| flag == true);
        if !ignored && !lowerer.any.contains(name) {
            lowerer.definition(name, &format!("/$defs/{}", escape(name)), schema)?;
        }
    }
    let sources = lowerer.sources.into_iter();
    let mut schemas: BTreeMap<_, _> = sources.map(|(name, (_, schema))| (name, schema)).collect();
    for name in lowerer.any {
        let schema = document.def(&name).cloned();
        schemas.insert(name, schema.unwrap_or(Value::Bool(true)));
    }
    Ok(Lowered {
        types: lowerer.types,
        plain: lowerer.plain,
        schemas,
    })
}

struct Lowerer<'a> {
    document: &'a Document,
    overrides: &'a Overrides,
    /// Definitions that accept any value.
    any: BTreeSet<String>,
    types: Vec<Type>,
    plain: Map<String, Value>,
    /// JSON Pointer of the schema of each type.
    sources: BTreeMap<String, (String, Value)>,
}

impl Lowerer<'_> {
    /// Lowers one named schema.
    fn definition(&mut self, name: &str, at: &str, schema: &Value) -> Result<(), Error> {
        let slot = self.types.len();
        let (shape, plain) = self.shape(name, at, schema)?;
        self.add(slot, name, at, schema, shape, plain)
    }

    /// Adds a type at `slot`, before the types found inside it.
    fn add(
        &mut self,
        slot: usize,
        name: &str,
        at: &str,
        schema: &Value,
        shape: Shape,
        plain: Value,
    ) -> Result<(), Error> {
        match self.sources.get(name) {
            // Several schemas may share one inline type when they are equal.
            Some((_, known)) if same_facts(known, schema) => return Ok(()),
            Some((source, _)) => {
                return Err(Error::NameTaken {
                    file: String::new(),
                    name: name.into(),
                    taken_by: source.clone(),
                });
            }
            None => {}
        }
        self.sources
            .insert(name.into(), (at.into(), schema.clone()));
        self.types.insert(
            slot,
            Type {
                name: name.into(),
                at: at.into(),
                docs: docs(schema),
                unknown: unknown(schema),
                shape,
            },
        );
        self.plain.insert(name.into(), plain);
        Ok(())
    }

    fn shape(&mut self, name: &str, at: &str, schema: &Value) -> Result<(Shape, Value), Error> {
        if let Some(values) = text_values(schema) {
            let keys: Vec<&str> = values.iter().map(|value| value.value.as_str()).collect();
            let plain = json!({ "type": "string", "enum": keys });
            return Ok((Shape::Text(values), plain));
        }
        if let Some((mut values, format)) = integer_values(schema) {
            let constant = |hint| match hint {
                Hint::Constant { name, value, docs } => Some(Constant {
                    name: name.into(),
                    value,
                    docs: Some(docs.into()),
                }),
                _ => None,
            };
            values.extend(self.overrides.all(name, constant));
            return Ok((
                Shape::Integer(values),
                json!({ "type": "integer", "format": format }),
            ));
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("object") => self.object(name, at, schema),
            Some("string") => Ok((Shape::Id, json!({ "type": "string" }))),
            _ if branches(schema).is_some() => self.union(name, at, schema),
            _ => {
                let plain = self.value(name, at, schema)?;
                Ok((Shape::Wrapper, plain))
            }
        }
    }
}

/// Returns the branches of a `oneOf` or `anyOf`, with the keyword.
pub(crate) fn branches(schema: &Value) -> Option<(&'static str, &Vec<Value>)> {
    ["oneOf", "anyOf"]
        .into_iter()
        .find_map(|key| Some((key, schema.get(key)?.as_array()?)))
}

/// Returns the description of a schema.
fn docs(schema: &Value) -> Option<String> {
    Some(schema.get("description")?.as_str()?.trim().to_owned())
}

/// Returns the description of the catch-all branch of a union.
fn unknown(schema: &Value) -> Option<String> {
    let tag = union::tag(schema);
    let (_, branches) = branches(schema)?;
    let is_open = |branch: &&Value| {
        let text = match &tag {
            Some(tag) => branch.pointer(&format!("/properties/{}", escape(tag))),
            None => Some(*branch),
        };
        text.is_some_and(|text| {
            text.get("type").is_some_and(|kind| kind == "string") && text.get("const").is_none()
        })
    };
    docs(branches.iter().find(is_open)?)
}

/// Returns whether a schema accepts any value.
pub(crate) fn is_any(schema: &Value) -> bool {
    match schema {
        Value::Bool(accepts) => *accepts,
        Value::Object(keywords) => keywords
            .keys()
            .all(|key| ANNOTATIONS.contains(&key.as_str()) || key.starts_with("x-")),
        _ => false,
    }
}

/// Returns the values of an enum of strings, closed or with a catch-all branch.
fn text_values(schema: &Value) -> Option<Vec<Constant<String>>> {
    if let Some(values) = schema.get("enum") {
        let value = |value: &Value| {
            let text = value.as_str()?.to_owned();
            Some(Constant {
                name: text.clone(),
                docs: None,
                value: text,
            })
        };
        return values.as_array()?.iter().map(value).collect();
    }
    if let Some(text) = schema.get("const").and_then(Value::as_str) {
        return Some(vec![Constant {
            name: text.into(),
            docs: None,
            value: text.into(),
        }]);
    }
    let (_, branches) = branches(schema)?;
    let mut values = Vec::new();
    for branch in branches {
        if branch.get("type")?.as_str()? != "string" {
            return None;
        }
        match branch.get("const") {
            Some(text) => {
                let text = text.as_str()?.to_owned();
                values.push(Constant {
                    name: text.clone(),
                    docs: docs(branch),
                    value: text,
                });
            }
            // The catch-all branch: any other string.
            None => continue,
        }
    }
    (!values.is_empty()).then_some(values)
}

/// Returns the named values and the format of an integer.
fn integer_values(schema: &Value) -> Option<(Vec<Constant<i64>>, String)> {
    if schema.get("type").and_then(Value::as_str) == Some("integer") {
        return Some((Vec::new(), value::integer_format(schema).to_owned()));
    }
    let (_, branches) = branches(schema)?;
    let mut values = Vec::new();
    let mut format = "int64";
    for branch in branches {
        if branch.get("type")?.as_str()? != "integer" {
            return None;
        }
        format = value::integer_format(branch);
        if let Some(number) = branch.get("const") {
            let name = branch.get("title")?.as_str()?.to_owned();
            values.push(Constant {
                name,
                docs: docs(branch),
                value: number.as_i64()?,
            });
        }
    }
    Some((values, format.to_owned()))
}

/// Returns whether two schemas are equal except for their descriptions.
pub(crate) fn same_facts(a: &Value, b: &Value) -> bool {
    fn facts(schema: &Value) -> Value {
        match schema {
            Value::Object(members) => {
                let facts = members.iter().filter(|(key, value)| {
                    !(matches!(key.as_str(), "description") && value.is_string())
                });
                facts
                    .map(|(key, value)| (key.clone(), facts_of(value)))
                    .collect()
            }
            other => facts_of(other),
        }
    }
    fn facts_of(value: &Value) -> Value {
        match value {
            Value::Object(_) => facts(value),
            Value::Array(items) => items.iter().map(facts_of).collect(),
            other => other.clone(),
        }
    }
    facts(a) == facts(b)
}

/// Escapes a name as a reference token of a JSON Pointer.
pub(crate) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
