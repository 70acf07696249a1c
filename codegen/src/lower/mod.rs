//! Lowers a JSON Schema 2020-12 document to plain schemas and to the IR.
//!
//! One pass over the document has two results: a plain schema per type, from which
//! [`skeletons`](crate::skeletons) makes names and Rust types, and the [`ir`](crate::ir), which
//! holds the wire format of each type. A union in the plain schema is a list of variants: a name,
//! or an object of a name and the schema of the payload.

mod object;
mod plain;
mod schema;
mod simplify;
mod union;
mod value;

use std::collections::{BTreeMap, BTreeSet};

use acp_schema::Document;
use serde_json::{Map, Value, json};

use self::plain::optional;
pub(crate) use self::plain::{ANY, FREE_OBJECT};
pub(crate) use self::schema::{branches, escape, is_any, nullable, same_facts, tag, target};
use self::schema::{docs, integer_values, is_ignored, is_map, text_values, unknown};
#[cfg(feature = "tools")]
pub(crate) use self::schema::{integer_format, integer_range};
use crate::Error;
use crate::ir::{Constant, Shape, Type};
use crate::overrides::{Hint, Overrides};

/// The plain schema and the IR of a document.
#[derive(Debug)]
pub(crate) struct Lowered {
    /// In document order; inline types follow the type that contains them.
    pub(crate) types: Vec<Type>,
    /// Plain schemas by type name.
    pub(crate) plain: Map<String, Value>,
    /// The document's schemas by type name, and those of definitions without a type.
    pub(crate) schemas: BTreeMap<String, Value>,
}

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
        if !is_ignored(Some(schema)) && !lowerer.any.contains(name) {
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
            Some((source, _)) if at != format!("/$defs/{}", escape(name)) => {
                return Err(Error::unsupported(
                    at,
                    format!("its type would be called `{name}`, as that of {source} is"),
                    "define one of them in `$defs`, under another name",
                ));
            }
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
        let schema = &*self.simplified(at, schema)?;
        if let Some(inner) = nullable(schema) {
            let inner = self.value(&format!("{name}Value"), at, &inner)?;
            return Ok((Shape::Wrapper, optional(inner)));
        }
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
            Some("object") if is_map(schema) => {
                let plain = self.map(name, at, schema)?;
                Ok((Shape::Map, plain))
            }
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
