//! Untagged unions: the first branch that accepts a value.

use super::object::{OpenObject, Position};
use super::string::Text;
use super::{Reader, StrictError};
use crate::json::descriptor::{DescriptorFn, JsonKind};

/// Reads the rest of an object.
type ReadMembers<T> = fn(&mut Reader<'_>, OpenObject<'_>) -> Result<T, StrictError>;

/// The required members of a branch, its type, and how to read it.
type ObjectBranch<T> = (&'static [&'static str], DescriptorFn, ReadMembers<T>);

/// Reads an untagged union of objects as the first branch that accepts the members. Branches that
/// know all of the members come before those that would drop some.
///
/// # Errors
/// Fails when no branch accepts them.
pub fn read_object_union<T>(
    reader: &mut Reader<'_>,
    object: OpenObject<'_>,
    branches: &[ObjectBranch<T>],
) -> Result<T, StrictError> {
    let start = reader.position(object);
    let members = names(reader, &start)?;
    let has = |name: &&str| members.iter().any(|member| member.as_str() == *name);
    let complete = |(names, ..): &&ObjectBranch<T>| names.iter().all(has);
    for all in [true, false] {
        for (_, of, read) in branches.iter().filter(complete) {
            if of().knows(members.iter().map(Text::as_str)) != all {
                continue;
            }
            let object = start.rewind(reader);
            if let Ok(value) = read(reader, object) {
                return Ok(value);
            }
        }
    }
    Err(StrictError::INVALID)
}

/// Returns the names of the members that belong to the type.
fn names<'de>(
    reader: &mut Reader<'de>,
    start: &Position<'_>,
) -> Result<Vec<Text<'de>>, StrictError> {
    let mut object = start.rewind(reader);
    let mut names = Vec::new();
    while let Some(name) = reader.visible_name(&mut object)? {
        names.push(name);
        reader.skip()?;
    }
    Ok(names)
}

/// The JSON kind of a branch, its type, and how to read it.
type ValueBranch<T> = (
    JsonKind,
    DescriptorFn,
    fn(&mut Reader<'_>) -> Result<T, StrictError>,
);

/// Reads an untagged union of values as the first branch that accepts the value. Branches that
/// know all members of an object come before those that would drop some.
///
/// # Errors
/// Fails when no branch accepts it.
pub fn read_value_union<T>(
    reader: &mut Reader<'_>,
    branches: &[ValueBranch<T>],
) -> Result<T, StrictError> {
    let first = reader.next()?;
    let (at, depth) = (reader.at, reader.depth);
    let members = match first {
        b'{' => {
            let object = reader.open()?;
            let start = reader.position(object);
            names(reader, &start)?
        }
        _ => Vec::new(),
    };
    for all in [true, false] {
        for (kind, of, read) in branches {
            if !kind.has(first) || of().knows(members.iter().map(Text::as_str)) != all {
                continue;
            }
            (reader.at, reader.depth) = (at, depth);
            if let Ok(value) = read(reader) {
                return Ok(value);
            }
        }
    }
    Err(StrictError::INVALID)
}
