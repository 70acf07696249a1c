//! Lenient reading of one object: finds its members by name and reads them by descriptor.

use std::collections::HashSet;

use super::DecodeError;
use super::lenient::{LenientReader, Step};
use super::members::Member;
use crate::json::descriptor::{Field, TypeDescriptor};

/// The members of an object. A member is taken once a descriptor has claimed it.
pub(super) type Members<'a> = [Member<'a>];

impl LenientReader {
    pub(super) fn object(
        &mut self,
        raw: &str,
        descriptor: &TypeDescriptor,
    ) -> Result<(), DecodeError> {
        self.nested('{', '}', |reader| {
            let mut members = reader.collect(raw)?;
            reader.members(&mut members, descriptor)
        })
    }

    /// Writes the members that belong to `descriptor` and leaves the others.
    pub(super) fn members(
        &mut self,
        members: &mut Members<'_>,
        descriptor: &TypeDescriptor,
    ) -> Result<(), DecodeError> {
        match descriptor {
            TypeDescriptor::Object(fields) => {
                fields.iter().try_for_each(|field| match field.flattened {
                    true => self.flattened(members, field),
                    false => self.member(members, field),
                })
            }
            TypeDescriptor::TaggedUnion(variants) => self.tagged(members, variants),
            TypeDescriptor::ObjectUnion { expected, branches } => {
                self.first_object(members, expected, branches)
            }
            TypeDescriptor::Nullable(of) => self.members(members, of()),
            TypeDescriptor::Map(value) => self.entries(members, value()),
            // These have no members of their own.
            TypeDescriptor::Any
            | TypeDescriptor::Scalar(_)
            | TypeDescriptor::List(_)
            | TypeDescriptor::ValueUnion { .. } => Ok(()),
        }
    }

    fn member(&mut self, members: &mut Members<'_>, field: &Field) -> Result<(), DecodeError> {
        let Some(index) = self.find(members, field.name)? else {
            return match field.required {
                true => Err(self.missing(field.name)),
                false => Ok(()),
            };
        };
        let member = &mut members[index];
        member.taken = true;
        let raw = member.raw;
        self.at(Step::Field(field.name), |reader| {
            let strict = reader.strict;
            let result = reader.attempt(strict, |reader| {
                reader.name(field.name);
                if field.nullable && raw == "null" {
                    reader.write(raw);
                    return Ok(());
                }
                match field.items {
                    true => reader.valid_items(raw, (field.of)()),
                    false => reader.value(raw, (field.of)()),
                }
            });
            let Err(error) = result else { return Ok(()) };
            if !field.lenient {
                return Err(error);
            }
            reader.drop_value(error)?;
            if field.required {
                reader.name(field.name);
                reader.write_default((field.of)());
            }
            Ok(())
        })
    }

    /// Reads a union whose members are among those of the object.
    fn flattened(&mut self, members: &mut Members<'_>, field: &Field) -> Result<(), DecodeError> {
        if field.required {
            return self.members(members, (field.of)());
        }
        let strict = self.strict;
        let result = self.attempt_members(members, strict, |reader, members| {
            match reader.find(members, field.name)? {
                Some(index) if members[index].raw == "null" => {
                    members[index].taken = true;
                    Ok(())
                }
                Some(_) => reader.members(members, (field.of)()),
                None => Ok(()),
            }
        });
        match result {
            Err(error) if field.lenient => {
                self.at(Step::Field(field.name), |reader| reader.drop_value(error))
            }
            result => result,
        }
    }

    /// Reads the members that no other part of the object has claimed. Of several with one
    /// name, the last counts.
    fn entries(
        &mut self,
        members: &mut Members<'_>,
        value: &TypeDescriptor,
    ) -> Result<(), DecodeError> {
        let mut seen = HashSet::new();
        let mut last = Vec::new();
        for member in members.iter_mut().rev() {
            let taken = std::mem::replace(&mut member.taken, true);
            if !taken && seen.insert(member.name.clone()) {
                last.push(&*member);
            }
        }
        last.into_iter().rev().try_for_each(|member| {
            self.name(&member.name);
            let step = Step::Key(member.name.to_string());
            self.at(step, |reader| reader.value(member.raw, value))
        })
    }

    /// Returns the error of a missing member.
    pub(super) fn missing(&mut self, name: &'static str) -> DecodeError {
        self.at(Step::Field(name), |reader| {
            reader.error("required member is missing")
        })
    }

    /// Finds the member `name`. Of several, the last counts; the others are dropped.
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
                self.at(Step::Field(name), |reader| {
                    let error = reader.error("duplicate member; the last one is used");
                    reader.drop_value(error)
                })?;
            }
        }
        Ok(found)
    }

    /// Runs `read` as an attempt. A failed attempt takes no members.
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
