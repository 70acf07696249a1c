//! The mapping document: the differences between two versions that are not visible in names.
//!
//! It has two lists. `lost` has the types without an equal, with a `reason`. `pairs` has a row for
//! each pair of types (`type`, or `v1` and `v2`) whose other form cannot be found by its name and
//! those of its members; `only` names the version to which it converts, if only to one. An overlay
//! adds rows, and members and variants to rows; one about the same name of version 2 replaces the
//! earlier one.
//!
//! - `members`: the names of a member in both versions; or its name in one and the reason why it is
//!   `lost`. `given` is the value of a required member for an absent source. `null` is the value
//!   that a cleared member has where it cannot be cleared. `whole`: the object has no form without
//!   the member. `by` names a function that makes the members of the target of those of the source.
//! - `variants`: the tags of a variant in both versions, or in one with the reason why it is `lost`
//!   or `kept` as an unknown one; `*` is any unknown variant. A variant with both tags and `lost`
//!   converts, and the tag is reported as lost. `by` names a function from payload to union.
//!   For an enum of strings, the same with its values.
//! - `unknown`: other names of members in unknown variants, by those of version 1.
//! - `by`: a function for the whole value; `list`: one that makes several items of one in a list.
//!   A function has one name for both directions, or one for each version that it converts to.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::Error;

/// A version, as the source or the target of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V2,
}

impl Version {
    pub(super) fn other(self) -> Self {
        match self {
            Self::V1 => Self::V2,
            Self::V2 => Self::V1,
        }
    }

    /// The name of the module with its types, and of its members in the mapping.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }
}

/// A value for each version.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Both<T> {
    v1: T,
    v2: T,
}

impl<T> Both<T> {
    pub(super) fn new(v1: T, v2: T) -> Self {
        Self { v1, v2 }
    }

    pub(super) fn of(&self, version: Version) -> &T {
        match version {
            Version::V1 => &self.v1,
            Version::V2 => &self.v2,
        }
    }
}

/// The mapping document with its overlays.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    pub(super) pairs: Vec<Pair>,
    pub(super) lost: Vec<Lost>,
}

/// Types without an equal in the other version.
#[derive(Debug)]
pub(super) struct Lost {
    pub(super) at: Place,
    pub(super) version: Version,
    pub(super) name: String,
}

/// The place of a row: a file and a JSON Pointer.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub(super) file: String,
    pub(super) pointer: String,
}

impl Place {
    pub(super) fn error(&self, message: impl Into<String>, help: impl Into<String>) -> Error {
        Error::unsupported(self.pointer.clone(), message, help).in_file(&self.file)
    }

    fn at(&self, token: impl std::fmt::Display) -> Self {
        let file = self.file.clone();
        let pointer = format!("{}/{token}", self.pointer);
        Self { file, pointer }
    }
}

/// Two types that are forms of each other.
#[derive(Debug, Default)]
pub(super) struct Pair {
    pub(super) at: Place,
    pub(super) names: Both<String>,
    /// The version to which the pair converts, if only to one.
    pub(super) only: Option<Version>,
    /// Functions that convert the whole value, by the target's version.
    pub(super) by: Both<Option<String>>,
    /// Functions that make several items of one in a list, by the target's version.
    pub(super) list: Both<Option<String>>,
    pub(super) members: Vec<Member>,
    pub(super) variants: Vec<Variant>,
    /// Members of unknown variants, by their names in version 1.
    pub(super) unknown: Vec<Both<String>>,
}

/// A difference in members of an object.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) at: Place,
    pub(super) names: Both<Vec<String>>,
    pub(super) fate: Fate,
    /// The value where the source has none.
    pub(super) given: Option<Value>,
    /// The value for one that is cleared, where the target cannot clear.
    pub(super) null: Option<Value>,
    /// Whether the object has no equal without the whole member.
    pub(super) whole: bool,
}

/// A difference in variants of a union, or in values of an enum.
#[derive(Debug)]
pub(super) struct Variant {
    pub(super) at: Place,
    pub(super) names: Both<Option<String>>,
    pub(super) fate: Fate,
    pub(super) only: Option<Version>,
}

/// How a member or variant reaches the other version.
#[derive(Debug)]
pub(super) enum Fate {
    Renamed,
    /// Not at all, for this reason.
    Lost(String),
    /// As an unknown variant or value with the same JSON.
    Kept,
    /// By hand-written functions, by the target's version.
    By(Both<Option<String>>),
}

impl Fate {
    /// The function that converts to `to`.
    pub(super) fn by(&self, to: Version) -> Option<&str> {
        match self {
            Self::By(functions) => functions.of(to).as_deref(),
            _ => None,
        }
    }
}

/// Reads a mapping document and adds it to `mapping`.
pub(super) fn read(mapping: &mut Mapping, file: &str, text: &str) -> Result<(), Error> {
    let root = Place {
        file: file.to_owned(),
        pointer: String::new(),
    };
    let value: Value = serde_json::from_str(text)
        .map_err(|error| root.error(format!("not JSON: {error}"), "correct the text"))?;
    let root = Row::new(&root, &value, &["$comment", "pairs", "lost"])?;
    for row in root.rows("pairs", PAIR)? {
        let pair = pair(&row)?;
        let same = |known: &&mut Pair| known.names == pair.names;
        match mapping.pairs.iter_mut().find(same) {
            Some(known) => {
                let (members, variants) = (&pair.members, &pair.variants);
                known.members.retain(|old| {
                    let v2 = &old.names.v2;
                    v2.is_empty() || members.iter().all(|new| new.names.v2 != *v2)
                });
                known.variants.retain(|old| {
                    let v2 = &old.names.v2;
                    v2.is_none() || variants.iter().all(|new| new.names.v2 != *v2)
                });
                known.members.extend(pair.members);
                known.variants.extend(pair.variants);
            }
            None => mapping.pairs.push(pair),
        }
    }
    for row in root.rows("lost", &["v1", "v2", "reason"])? {
        row.text("reason")?.ok_or_else(|| {
            row.at
                .error("no reason", "say why there is no equal: `reason`")
        })?;
        for version in [Version::V1, Version::V2] {
            let at = row.at.at(version.name());
            let names = row.names(version)?.into_iter();
            mapping.lost.extend(names.map(|name| Lost {
                at: at.clone(),
                version,
                name,
            }));
        }
    }
    Ok(())
}

const PAIR: &[&str] = &[
    "type", "v1", "v2", "only", "by", "list", "members", "variants", "unknown",
];

fn pair(row: &Row<'_>) -> Result<Pair, Error> {
    let both = row.text("type")?;
    let name = |version: Version| {
        let own = row.text(version.name())?.or_else(|| both.clone());
        own.ok_or_else(|| {
            let help = "name the type in both versions: `type`, or `v1` and `v2`";
            row.at.error("no type", help)
        })
    };
    let members = row.rows(
        "members",
        &["v1", "v2", "lost", "by", "given", "null", "whole"],
    )?;
    let variants = row.rows("variants", &["v1", "v2", "lost", "kept", "by", "only"])?;
    let unknown = row.get("unknown").and_then(Value::as_object);
    let unknown: BTreeMap<&String, &Value> = unknown.into_iter().flatten().collect();
    let renamed = |(v1, v2): (&String, &Value)| {
        let v2 = v2.as_str().map(str::to_owned);
        v2.map(|v2| Both::new(v1.clone(), v2))
            .ok_or_else(|| row.at.at("unknown").error("not a name", "write a string"))
    };
    Ok(Pair {
        at: row.at.clone(),
        names: Both::new(name(Version::V1)?, name(Version::V2)?),
        only: row.version("only")?,
        by: row.functions("by")?,
        list: row.functions("list")?,
        members: members.iter().map(member).collect::<Result<_, _>>()?,
        variants: variants.iter().map(variant).collect::<Result<_, _>>()?,
        unknown: unknown.into_iter().map(renamed).collect::<Result<_, _>>()?,
    })
}

fn member(row: &Row<'_>) -> Result<Member, Error> {
    Ok(Member {
        at: row.at.clone(),
        names: Both::new(row.names(Version::V1)?, row.names(Version::V2)?),
        fate: row.fate()?,
        given: row.get("given").cloned(),
        null: row.get("null").cloned(),
        whole: row.get("whole") == Some(&Value::Bool(true)),
    })
}

fn variant(row: &Row<'_>) -> Result<Variant, Error> {
    Ok(Variant {
        at: row.at.clone(),
        names: Both::new(row.text("v1")?, row.text("v2")?),
        fate: row.fate()?,
        only: row.version("only")?,
    })
}

/// An object of the document.
struct Row<'a> {
    at: Place,
    members: &'a Map<String, Value>,
}

impl<'a> Row<'a> {
    fn new(at: &Place, value: &'a Value, known: &[&str]) -> Result<Self, Error> {
        let Value::Object(members) = value else {
            return Err(at.error("not an object", "write an object"));
        };
        match members.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => Err(at.error(
                format!("unknown member `{key}`"),
                format!("use {}", known.join(", ")),
            )),
            None => Ok(Self {
                at: at.clone(),
                members,
            }),
        }
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.members.get(key)
    }

    /// Returns the rows of a list, which may be absent.
    fn rows(&self, key: &str, known: &[&str]) -> Result<Vec<Row<'a>>, Error> {
        let at = self.at.at(key);
        let list = match self.get(key) {
            None => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(at.error("not a list", "write a list of objects")),
        };
        let rows = list.iter().enumerate();
        rows.map(|(index, row)| Row::new(&at.at(index), row, known))
            .collect()
    }

    fn text(&self, key: &str) -> Result<Option<String>, Error> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
            Some(_) => Err(self.at.at(key).error("not a text", "write a string")),
        }
    }

    /// Returns the names of one version: a string or a list of them.
    fn names(&self, version: Version) -> Result<Vec<String>, Error> {
        let key = version.name();
        match self.get(key) {
            Some(Value::Array(names)) => {
                let name = |name: &Value| name.as_str().map(str::to_owned);
                let names: Option<Vec<String>> = names.iter().map(name).collect();
                let at = self.at.at(key);
                names.ok_or_else(|| at.error("not a list of names", "write strings"))
            }
            _ => Ok(self.text(key)?.into_iter().collect()),
        }
    }

    fn version(&self, key: &str) -> Result<Option<Version>, Error> {
        match self.text(key)?.as_deref() {
            None => Ok(None),
            Some("v1") => Ok(Some(Version::V1)),
            Some("v2") => Ok(Some(Version::V2)),
            Some(_) => Err(self.at.at(key).error("not a version", "write `v1` or `v2`")),
        }
    }

    /// Returns the functions to each version: one name for both, or an object with a name for
    /// each.
    fn functions(&self, key: &str) -> Result<Both<Option<String>>, Error> {
        match self.get(key) {
            Some(functions @ Value::Object(_)) => {
                let row = Row::new(&self.at.at(key), functions, &["v1", "v2"])?;
                Ok(Both::new(row.text("v1")?, row.text("v2")?))
            }
            _ => {
                let name = self.text(key)?;
                Ok(Both::new(name.clone(), name))
            }
        }
    }

    fn fate(&self) -> Result<Fate, Error> {
        if let Some(reason) = self.text("lost")? {
            return Ok(Fate::Lost(reason));
        }
        if self.get("by").is_some() {
            return Ok(Fate::By(self.functions("by")?));
        }
        match self.text("kept")? {
            Some(_) => Ok(Fate::Kept),
            None => Ok(Fate::Renamed),
        }
    }
}
