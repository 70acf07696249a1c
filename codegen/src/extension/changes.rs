//! What an overlay changes in definitions of its base.

use acp_schema::Document;
use serde_json::Value;

use crate::Error;
use crate::lower::{branches, escape, tag, target};

/// A member that was added to a tagged union.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) union: String,
    /// The name of the tag, and its value.
    pub(crate) tag: String,
    pub(crate) value: String,
    /// The definition with the members beside the tag.
    pub(crate) payload: String,
    pub(crate) docs: Option<String>,
}

/// A key of a free object that was given a type.
#[derive(Clone, Debug)]
pub(crate) struct TypedKey {
    pub(crate) definition: String,
    /// The property that is the free object, such as `_meta`.
    pub(crate) property: String,
    pub(crate) key: String,
    /// The definition of its type.
    pub(crate) ty: String,
    pub(crate) docs: Option<String>,
}

/// Finds the members and keys that `document` adds to definitions of `base`.
///
/// # Errors
/// Fails when a definition is changed in another way.
pub(super) fn find(
    base: &Document,
    document: &Document,
) -> Result<(Vec<Member>, Vec<TypedKey>), Error> {
    let (mut members, mut keys) = (Vec::new(), Vec::new());
    for (name, old) in base.defs() {
        let new = document.def(name).unwrap_or(&Value::Null);
        if old == new {
            continue;
        }
        if let Some(added) = added_members(name, old, new) {
            members.extend(added);
        } else if let Some(added) = added_keys(name, old, new) {
            keys.extend(added);
        } else {
            return Err(Error::unsupported(
                format!("/$defs/{}", escape(name)),
                "the overlay changes the definition, whose Rust type exists already",
                "only add members to a tagged union and typed keys to an open object, or \
                 generate the whole protocol (without `extends`)",
            ));
        }
    }
    Ok((members, keys))
}

/// The branches that were appended to a tagged union; `None` if anything else differs.
fn added_members(name: &str, old: &Value, new: &Value) -> Option<Vec<Member>> {
    let tag = tag(old)?;
    let ((keyword, before), (_, after)) = (branches(old)?, branches(new)?);
    let is_new = |branch: &&Value| !before.contains(branch);
    let mut rest = new.clone();
    rest[keyword] = after
        .iter()
        .filter(|branch| !is_new(branch))
        .cloned()
        .collect();
    if rest != *old {
        return None;
    }
    let member = |branch: &Value| {
        let properties = branch.get("properties")?.as_object()?;
        let value = properties.get(&tag)?.get("const")?.as_str()?;
        let payload = target(&without_properties(branch))?
            .strip_prefix("#/$defs/")?
            .to_owned();
        (properties.len() == 1).then(|| Member {
            union: name.to_owned(),
            tag: tag.clone(),
            value: value.to_owned(),
            payload,
            docs: description(branch),
        })
    };
    after.iter().filter(is_new).map(member).collect()
}

fn without_properties(branch: &Value) -> Value {
    let mut branch = branch.clone();
    if let Some(keywords) = branch.as_object_mut() {
        keywords.remove("properties");
    }
    branch
}

/// The typed keys that were added to open objects; `None` if anything else differs.
fn added_keys(name: &str, old: &Value, new: &Value) -> Option<Vec<TypedKey>> {
    let properties = new.get("properties")?.as_object()?;
    let mut rest = new.clone();
    let mut keys = Vec::new();
    for (property, schema) in properties {
        let before = old.get("properties")?.get(property)?;
        if schema == before {
            continue;
        }
        let known = before.get("properties").and_then(Value::as_object);
        for (key, schema) in schema.get("properties")?.as_object()? {
            if known.is_some_and(|known| known.get(key) == Some(schema)) {
                continue;
            }
            keys.push(TypedKey {
                definition: name.to_owned(),
                property: property.clone(),
                key: key.clone(),
                ty: target(schema)?.strip_prefix("#/$defs/")?.to_owned(),
                docs: description(schema),
            });
        }
        let slot = rest
            .get_mut("properties")?
            .get_mut(property)?
            .as_object_mut()?;
        match known {
            Some(known) => slot.insert("properties".into(), Value::Object(known.clone())),
            None => slot.remove("properties"),
        };
    }
    (rest == *old).then_some(keys)
}

fn description(schema: &Value) -> Option<String> {
    Some(schema.get("description")?.as_str()?.trim().to_owned())
}
