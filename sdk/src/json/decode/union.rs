//! Unions on the walk: by the tag, or the first branch that takes the value.

use serde_json::value::RawValue;

use super::DecodeError;
use super::members::Name;
use super::object::Members;
use super::shape::{Form, Of, Variants};
use super::walk::{Step, Walk, kind};

impl Walk {
    /// A union whose variants are told apart by a tag, which is written first.
    pub(super) fn tagged(
        &mut self,
        members: &mut Members<'_>,
        variants: &Variants,
    ) -> Result<(), DecodeError> {
        let Variants {
            tag: name, default, ..
        } = *variants;
        let tag = match self.find(members, name)? {
            Some(index) => self.tag(members, index, name).map(Some),
            None => Ok(None),
        };
        match (tag, default) {
            (Ok(Some(tag)), _) => self.variant(members, variants, &tag),
            (Ok(None), Some(default)) => self.members(members, default()),
            (Ok(None), None) => Err(self.missing(name)),
            // A variant without a tag may have a member of that name, of any form.
            (Err(error), Some(default)) => {
                let strict = self.strict;
                let read =
                    |walk: &mut Self, members: &mut Members<'_>| walk.members(members, default());
                self.attempt_members(members, strict, read)
                    .map_err(|_| error)
            }
            (Err(error), None) => Err(error),
        }
    }

    /// The value of the tag, which stays where it is.
    fn tag(
        &mut self,
        members: &Members<'_>,
        index: usize,
        name: &'static str,
    ) -> Result<String, DecodeError> {
        let raw = members[index].raw.get();
        let tag = serde_json::from_str::<Name<'_>>(raw);
        self.at(Step::Field(name), |walk| {
            tag.map(|Name(tag)| tag.into_owned())
                .map_err(|error| walk.invalid(&error))
        })
    }

    fn variant(
        &mut self,
        members: &mut Members<'_>,
        variants: &Variants,
        tag: &str,
    ) -> Result<(), DecodeError> {
        if let Some((_, payload)) = variants.known.iter().find(|(known, _)| *known == tag) {
            self.name(variants.tag);
            // The tag is no member of the payload, nor of a union in it.
            for member in members
                .iter_mut()
                .filter(|member| member.name == variants.tag)
            {
                if !std::mem::replace(&mut member.taken, true) {
                    self.write(&member.raw);
                }
            }
            return self.members(members, payload());
        }
        // A union of one branch leaves nothing behind when that does not take the members.
        if let Some(default) = variants.default
            && variants.takes_unknown
            && self.first_object(members, "", &[(&[], default)]).is_ok()
        {
            return Ok(());
        }
        for member in members.iter().filter(|member| !member.taken) {
            self.name(&member.name);
            self.write(&member.raw);
        }
        Ok(())
    }

    /// A union of objects without a tag: the first branch that takes the members.
    pub(super) fn first_object(
        &mut self,
        members: &mut Members<'_>,
        expected: &str,
        branches: &[(&[&str], Of)],
    ) -> Result<(), DecodeError> {
        // A branch whose members are not there is only asked for the sake of its error.
        let complete = |members: &Members<'_>, names: &[&str]| {
            let has = |name: &&str| {
                members
                    .iter()
                    .any(|member| !member.taken && member.name == *name)
            };
            names.iter().all(has)
        };
        let any = branches.iter().any(|(names, _)| complete(members, names));
        // What the last round says counts: an earlier one blames what is tolerated.
        let mut error = None;
        for &strict in self.rounds() {
            error = None;
            for (names, of) in branches {
                if any && !complete(members, names) {
                    continue;
                }
                let read = |walk: &mut Self, members: &mut Members<'_>| walk.members(members, of());
                match self.attempt_members(members, strict, read) {
                    Ok(()) => return Ok(()),
                    Err(other) => error = Some(further(error, other)),
                }
            }
        }
        let wrong = self.error(format!("invalid value: expected {expected}"));
        Err(furthest(wrong, error))
    }

    /// A union of values without a tag: the first branch that takes the value.
    pub(super) fn first_value(
        &mut self,
        raw: &RawValue,
        expected: &str,
        branches: &[(Form, Of)],
    ) -> Result<(), DecodeError> {
        let mut error = None;
        for &strict in self.rounds() {
            error = None;
            for (_, of) in branches.iter().filter(|(form, _)| form.has(raw)) {
                match self.attempt(strict, |walk| walk.value(raw, of())) {
                    Ok(()) => return Ok(()),
                    Err(other) => error = Some(further(error, other)),
                }
            }
        }
        let wrong = self.error(format!("invalid type: {}, expected {expected}", kind(raw)));
        Err(furthest(wrong, error))
    }

    /// Strictly first, with leniency second, if it is allowed.
    fn rounds(&self) -> &'static [bool] {
        if self.strict { &[true] } else { &[true, false] }
    }
}

/// The error that lies deepest, the first of equals: the union's own, or that of a branch.
fn furthest(own: DecodeError, inside: Option<DecodeError>) -> DecodeError {
    match inside {
        Some(inside) => further(Some(own), inside),
        None => own,
    }
}

fn further(known: Option<DecodeError>, other: DecodeError) -> DecodeError {
    let depth = |error: &DecodeError| error.path.matches('/').count();
    match known {
        Some(known) if depth(&known) >= depth(&other) => known,
        _ => other,
    }
}
