//! One JSON object on the walk: its members by name, and what a shape makes of them.

use serde_json::value::RawValue;

use super::DecodeError;
use super::members::Member;
use super::shape::{Part, Shape};
use super::walk::{Step, Walk};

/// The members of an object. Those that a shape has claimed are taken.
pub(super) type Members<'a> = [Member<'a>];

impl Walk {
    pub(super) fn object(&mut self, raw: &RawValue, shape: &Shape) -> Result<(), DecodeError> {
        self.nested('{', '}', |walk| {
            let mut members = walk.collect(raw)?;
            walk.members(&mut members, shape)
        })
    }

    /// Writes the members that belong to `shape` and leaves the others.
    pub(super) fn members(
        &mut self,
        members: &mut Members<'_>,
        shape: &Shape,
    ) -> Result<(), DecodeError> {
        match shape {
            Shape::Object(parts) => parts.iter().try_for_each(|part| match part.flattened {
                true => self.flattened(members, part),
                false => self.member(members, part),
            }),
            Shape::Tagged(variants) => self.tagged(members, variants),
            Shape::FirstObject { expected, branches } => {
                self.first_object(members, expected, branches)
            }
            Shape::Nullable(of) => self.members(members, of()),
            // What has no members needs none.
            Shape::Any
            | Shape::Leaf(_)
            | Shape::List(_)
            | Shape::Map(_)
            | Shape::FirstValue { .. } => Ok(()),
        }
    }

    fn member(&mut self, members: &mut Members<'_>, part: &Part) -> Result<(), DecodeError> {
        let Some(index) = self.find(members, part.name)? else {
            return match part.required {
                true => Err(self.missing(part.name)),
                false => Ok(()),
            };
        };
        let member = &mut members[index];
        member.taken = true;
        let raw = &*member.raw;
        self.at(Step::Field(part.name), |walk| {
            let strict = walk.strict;
            let result = walk.attempt(strict, |walk| {
                walk.name(part.name);
                if part.nullable && raw.get() == "null" {
                    walk.write(raw);
                    return Ok(());
                }
                match part.items {
                    true => walk.valid_items(raw, (part.of)()),
                    false => walk.value(raw, (part.of)()),
                }
            });
            let Err(error) = result else { return Ok(()) };
            if !part.lenient {
                return Err(error);
            }
            walk.drop_value(error)?;
            if part.required {
                walk.name(part.name);
                walk.write_default((part.of)());
            }
            Ok(())
        })
    }

    /// A union whose members are among those of the object.
    fn flattened(&mut self, members: &mut Members<'_>, part: &Part) -> Result<(), DecodeError> {
        if part.required {
            return self.members(members, (part.of)());
        }
        let strict = self.strict;
        let result = self.attempt_members(members, strict, |walk, members| {
            match walk.find(members, part.name)? {
                Some(index) if members[index].raw.get() == "null" => {
                    members[index].taken = true;
                    Ok(())
                }
                Some(_) => walk.members(members, (part.of)()),
                None => Ok(()),
            }
        });
        match result {
            Err(error) if part.lenient => {
                self.at(Step::Field(part.name), |walk| walk.drop_value(error))
            }
            result => result,
        }
    }

    /// The error that says that the member `name` is missing.
    pub(super) fn missing(&mut self, name: &'static str) -> DecodeError {
        self.at(Step::Field(name), |walk| {
            walk.error("missing, but required")
        })
    }

    /// The member `name`: the last of several, which is a leniency.
    pub(super) fn find(
        &mut self,
        members: &mut Members<'_>,
        name: &'static str,
    ) -> Result<Option<usize>, DecodeError> {
        let mut found: Option<usize> = None;
        for index in 0..members.len() {
            if members[index].taken || members[index].name != name {
                continue;
            }
            if let Some(earlier) = found.replace(index) {
                members[earlier].taken = true;
                self.at(Step::Field(name), |walk| {
                    let error = walk.error("given more than once, the last one counts");
                    walk.drop_value(error)
                })?;
            }
        }
        Ok(found)
    }

    /// Runs `read` as an attempt: when it fails, no member is taken by it.
    pub(super) fn attempt_members(
        &mut self,
        members: &mut Members<'_>,
        strict: bool,
        read: impl FnOnce(&mut Self, &mut Members<'_>) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let taken: Vec<bool> = members.iter().map(|member| member.taken).collect();
        let attempt = self.start(strict);
        let result = read(self, members);
        self.finish(&attempt, result.is_ok());
        if result.is_err() {
            for (member, taken) in members.iter_mut().zip(taken) {
                member.taken = taken;
            }
        }
        result
    }
}
