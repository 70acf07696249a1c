//! Lenient reading of unions: by tag, or as the first branch that accepts the value.

use super::DecodeError;
use super::lenient::{LenientReader, Step};
use super::members::{Member, collect};
use super::object::Members;
use crate::json::descriptor::{DescriptorFn, JsonKind, TaggedVariants};
use crate::json::errors::kind;

impl LenientReader {
    /// Reads a tagged union and writes the tag first.
    pub(super) fn tagged(
        &mut self,
        members: &mut Members<'_>,
        variants: &TaggedVariants,
    ) -> Result<(), DecodeError> {
        let TaggedVariants {
            tag: name, default, ..
        } = *variants;
        // The first tag counts, as in the strict pass.
        let first = |member: &Member<'_>| !member.taken && member.name == name;
        let tag = match members.iter().position(first) {
            Some(index) => self.tag(members, index, name).map(Some),
            None => Ok(None),
        };
        match (tag, default) {
            (Ok(Some(tag)), _) => self.variant(members, variants, &tag),
            (Ok(None), Some(default)) => self.members(members, default()),
            (Ok(None), None) => Err(self.missing(name)),
            // A variant without a tag may have an ordinary member of that name.
            (Err(error), Some(default)) => {
                let strict = self.strict;
                let read = |reader: &mut Self, members: &mut Members<'_>| {
                    reader.members(members, default())
                };
                self.attempt_members(members, strict, read)
                    .map_err(|_| error)
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Returns the value of the tag without taking it.
    fn tag(
        &mut self,
        members: &Members<'_>,
        index: usize,
        name: &'static str,
    ) -> Result<String, DecodeError> {
        let tag = serde_json::from_str::<String>(members[index].raw);
        self.at(Step::Field(name), |reader| {
            tag.map_err(|error| reader.invalid(&error))
        })
    }

    fn variant(
        &mut self,
        members: &mut Members<'_>,
        variants: &TaggedVariants,
        tag: &str,
    ) -> Result<(), DecodeError> {
        if let Some((_, payload)) = variants.known.iter().find(|(known, _)| *known == tag) {
            self.name(variants.tag);
            // The tag belongs neither to the payload nor to a union in it.
            let tags = members
                .iter_mut()
                .filter(|member| member.name == variants.tag && !member.taken);
            for (index, member) in tags.enumerate() {
                member.taken = true;
                if index == 0 {
                    self.write(member.raw);
                }
            }
            return self.members(members, payload());
        }
        // As a union of one branch, because a failed branch takes no members.
        if let Some(default) = variants.default
            && variants.takes_unknown
            && self.first_object(members, "", &[(&[], default)]).is_ok()
        {
            return Ok(());
        }
        for member in members.iter().filter(|member| !member.taken) {
            self.name(&member.name);
            self.write(member.raw);
        }
        Ok(())
    }

    /// Reads an untagged union of objects as the first branch that accepts the members. Those
    /// that know all of the members come first.
    pub(super) fn first_object(
        &mut self,
        members: &mut Members<'_>,
        expected: &str,
        branches: &[(&[&str], DescriptorFn)],
    ) -> Result<(), DecodeError> {
        // Branches with missing members are only tried for their errors.
        let complete = |members: &Members<'_>, names: &[&str]| {
            let has = |name: &&str| {
                members
                    .iter()
                    .any(|member| !member.taken && member.name == *name)
            };
            names.iter().all(has)
        };
        let any = branches.iter().any(|(names, _)| complete(members, names));
        // Errors of the last round count: a strict round also fails on values that can be dropped.
        let mut error = None;
        for &strict in self.rounds() {
            error = None;
            let free: Vec<String> = members
                .iter()
                .filter(|member| !member.taken)
                .map(|member| member.name.to_string())
                .collect();
            let mut branches: Vec<_> = branches.iter().collect();
            branches.sort_by_key(|(_, of)| !of().knows(free.iter().map(String::as_str)));
            for (names, of) in branches {
                if any && !complete(members, names) {
                    continue;
                }
                let read =
                    |reader: &mut Self, members: &mut Members<'_>| reader.members(members, of());
                match self.attempt_members(members, strict, read) {
                    Ok(()) => return Ok(()),
                    Err(other) => error = Some(further(error, other)),
                }
            }
        }
        let wrong = self.error(format!("invalid value: expected {expected}"));
        Err(furthest(wrong, error))
    }

    /// Reads an untagged union of values as the first branch that accepts the value. Those that
    /// know all members of an object come first.
    pub(super) fn first_value(
        &mut self,
        raw: &str,
        expected: &str,
        branches: &[(JsonKind, DescriptorFn)],
    ) -> Result<(), DecodeError> {
        let mut error = None;
        let first = raw.as_bytes().first().copied().unwrap_or_default();
        let members = collect(raw).unwrap_or_default();
        let names = || members.iter().map(|member| &*member.name);
        let mut branches: Vec<_> = branches
            .iter()
            .filter(|(form, _)| form.has(first))
            .collect();
        branches.sort_by_key(|(_, of)| !of().knows(names()));
        for &strict in self.rounds() {
            error = None;
            for (_, of) in &branches {
                match self.attempt(strict, |reader| reader.value(raw, of())) {
                    Ok(()) => return Ok(()),
                    Err(other) => error = Some(further(error, other)),
                }
            }
        }
        let wrong = self.error(format!("invalid type: {}, expected {expected}", kind(raw)));
        Err(furthest(wrong, error))
    }

    /// Returns the rounds to try: strict, then lenient unless leniency is off.
    fn rounds(&self) -> &'static [bool] {
        if self.strict { &[true] } else { &[true, false] }
    }
}

/// Returns the error with the deepest path, the first of equals.
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
