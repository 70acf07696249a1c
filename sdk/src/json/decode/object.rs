//! One JSON object in the hands of the decoder: its members by name.

use serde_json::value::RawValue;

use super::leaf::Items;
use super::members::{self, Member};
use super::{Decode, DecodeError, FromJson, FromObject, Step};
use crate::json::UnknownVariant;

/// A JSON object whose members are taken out one by one.
///
/// Each method that takes a member says what its absence means, and what an
/// invalid value means: `lenient` ones report and drop it.
#[derive(Debug)]
pub struct Object<'a> {
    members: Vec<Member<'a>>,
    pub(crate) cx: &'a mut Decode,
}

impl<'a> Object<'a> {
    pub(super) fn parse(raw: &'a RawValue, cx: &'a mut Decode) -> Result<Self, DecodeError> {
        if !raw.get().starts_with('{') {
            return Err(cx.error(format!("invalid type: {}, expected an object", kind(raw))));
        }
        let members = members::collect(raw).map_err(|error| cx.invalid(&error))?;
        Ok(Self { members, cx })
    }

    pub(crate) fn new(members: Vec<Member<'a>>, cx: &'a mut Decode) -> Self {
        Self { members, cx }
    }

    /// A member that must be there.
    ///
    /// # Errors
    /// When it is missing or invalid.
    pub fn required<T: FromJson>(&mut self, name: &'static str) -> Result<T, DecodeError> {
        let index = self.expect(name)?;
        self.read(index, name, T::from_json)
    }

    /// A member whose absence means the default.
    ///
    /// # Errors
    /// When it is invalid.
    pub fn optional<T: FromJson + Default>(
        &mut self,
        name: &'static str,
    ) -> Result<T, DecodeError> {
        match self.find(name)? {
            Some(index) => self.read(index, name, T::from_json),
            None => Ok(T::default()),
        }
    }

    /// A member whose absence means the default, as does, with a report, an
    /// invalid value.
    ///
    /// # Errors
    /// When it is invalid and leniency is off.
    pub fn lenient<T: FromJson + Default>(&mut self, name: &'static str) -> Result<T, DecodeError> {
        match self.find(name)? {
            Some(index) => self.read_or_default(index, name, T::from_json),
            None => Ok(T::default()),
        }
    }

    /// A member whose absence means what `default` makes.
    ///
    /// # Errors
    /// When it is invalid.
    pub fn optional_or<T: FromJson>(
        &mut self,
        name: &'static str,
        default: impl FnOnce() -> T,
    ) -> Result<T, DecodeError> {
        match self.find(name)? {
            Some(index) => self.read(index, name, T::from_json),
            None => Ok(default()),
        }
    }

    /// As [`Self::optional_or`], and an invalid value means the same, with a report.
    ///
    /// # Errors
    /// When it is invalid and leniency is off.
    pub fn lenient_or<T: FromJson>(
        &mut self,
        name: &'static str,
        default: impl FnOnce() -> T,
    ) -> Result<T, DecodeError> {
        match self.find(name)? {
            Some(index) => self.read_or(index, name, T::from_json, default),
            None => Ok(default()),
        }
    }

    /// As [`Self::lenient`], but the member must be there.
    ///
    /// # Errors
    /// When it is missing, or invalid and leniency is off.
    pub fn required_lenient<T: FromJson + Default>(
        &mut self,
        name: &'static str,
    ) -> Result<T, DecodeError> {
        let index = self.expect(name)?;
        self.read_or_default(index, name, T::from_json)
    }

    /// A list whose absence means the default, as does, with a report, an invalid
    /// value; invalid items are left out, with a report each.
    ///
    /// # Errors
    /// When something is invalid and leniency is off.
    pub fn lenient_items<T: Items + Default>(
        &mut self,
        name: &'static str,
    ) -> Result<T, DecodeError> {
        match self.find(name)? {
            Some(index) => self.read_or_default(index, name, T::valid_items),
            None => Ok(T::default()),
        }
    }

    /// As [`Self::lenient_items`], but the member must be there.
    ///
    /// # Errors
    /// When it is missing, or invalid and leniency is off.
    pub fn required_lenient_items<T: Items + Default>(
        &mut self,
        name: &'static str,
    ) -> Result<T, DecodeError> {
        let index = self.expect(name)?;
        self.read_or_default(index, name, T::valid_items)
    }

    /// A list whose absence means the default; invalid items are left out, with
    /// a report each.
    ///
    /// # Errors
    /// When it is not a list.
    pub fn optional_items<T: Items + Default>(
        &mut self,
        name: &'static str,
    ) -> Result<T, DecodeError> {
        match self.find(name)? {
            Some(index) => self.read(index, name, T::valid_items),
            None => Ok(T::default()),
        }
    }

    /// As [`Self::optional_items`], but the member must be there.
    ///
    /// # Errors
    /// When it is missing or not a list.
    pub fn required_items<T: Items>(&mut self, name: &'static str) -> Result<T, DecodeError> {
        let index = self.expect(name)?;
        self.read(index, name, T::valid_items)
    }

    /// A member for which absence and `null` mean the default.
    ///
    /// # Errors
    /// When it is invalid.
    pub fn nullable<T: FromJson + Default>(
        &mut self,
        name: &'static str,
    ) -> Result<T, DecodeError> {
        self.optional(name).map(Option::unwrap_or_default)
    }

    /// A member that must be there, and for which `null` means the default.
    ///
    /// # Errors
    /// When it is missing or invalid.
    pub fn required_nullable<T: FromJson + Default>(
        &mut self,
        name: &'static str,
    ) -> Result<T, DecodeError> {
        self.required(name).map(Option::unwrap_or_default)
    }

    /// An object that stands in this one: its members are among this one's.
    ///
    /// # Errors
    /// When they are invalid.
    pub fn flattened<T: FromObject>(&mut self) -> Result<T, DecodeError> {
        T::from_object(self)
    }

    /// A union that stands in this object, and is absent when its tag is absent or null.
    ///
    /// # Errors
    /// When its members are invalid.
    pub fn flattened_optional<T: FromObject>(
        &mut self,
        tag: &'static str,
    ) -> Result<Option<T>, DecodeError> {
        match self.find(tag)? {
            Some(index) if self.members[index].raw.get() == "null" => {
                self.members[index].taken = true;
                Ok(None)
            }
            Some(_) => T::from_object(self).map(Some),
            None => Ok(None),
        }
    }

    /// As [`Self::flattened_optional`], but an invalid one is absent, with a report.
    ///
    /// # Errors
    /// When its members are invalid and leniency is off.
    pub fn flattened_lenient<T: FromObject>(
        &mut self,
        tag: &'static str,
    ) -> Result<Option<T>, DecodeError> {
        let strict = self.cx.strict;
        let union = self.attempt(strict, |object| object.flattened_optional(tag));
        union.or_else(|error| {
            self.cx
                .at(Step::Field(tag), |cx| cx.drop_value(None, error))
        })
    }

    /// The tag of a union among the members; it stays where it is.
    pub(crate) fn tag(&mut self, name: &'static str) -> Result<Option<String>, DecodeError> {
        let Some(index) = self.find(name)? else {
            return Ok(None);
        };
        let tag = self.read(index, name, String::from_json);
        self.members[index].taken = false;
        tag.map(Some)
    }

    /// Passes over the member `name`, which nobody gets to see any more.
    pub(crate) fn skip(&mut self, name: &str) {
        let members = self.members.iter_mut();
        let found = members.filter(|member| member.name == name);
        found.for_each(|member| member.taken = true);
    }

    /// An error that says that the member `name` is missing.
    pub(crate) fn missing(&mut self, name: &'static str) -> DecodeError {
        self.cx
            .at(Step::Field(name), |cx| cx.error("missing, but required"))
    }

    /// All members that nobody took, in order.
    pub(crate) fn rest(&mut self, tag: &str) -> UnknownVariant {
        UnknownVariant::from_members(tag, self.members.iter().filter(|member| !member.taken))
    }

    /// Whether there is a member `name`.
    pub(super) fn has(&self, name: &str) -> bool {
        self.members
            .iter()
            .any(|member| !member.taken && member.name == name)
    }

    /// Runs `read` as an attempt: when it fails, no member is taken by it.
    pub(crate) fn attempt<T>(
        &mut self,
        strict: bool,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let taken: Vec<bool> = self.members.iter().map(|member| member.taken).collect();
        let attempt = self.cx.start(strict);
        let result = read(self);
        self.cx.finish(attempt, result.is_ok());
        if result.is_err() {
            for (member, taken) in self.members.iter_mut().zip(taken) {
                member.taken = taken;
            }
        }
        result
    }

    fn expect(&mut self, name: &'static str) -> Result<usize, DecodeError> {
        match self.find(name)? {
            Some(index) => Ok(index),
            None => Err(self.missing(name)),
        }
    }

    /// The member `name`: the last of several, which is a leniency.
    fn find(&mut self, name: &'static str) -> Result<Option<usize>, DecodeError> {
        let mut found: Option<usize> = None;
        for index in 0..self.members.len() {
            if self.members[index].taken || self.members[index].name != name {
                continue;
            }
            if let Some(earlier) = found.replace(index) {
                self.members[earlier].taken = true;
                self.cx.at(Step::Field(name), |cx| {
                    let error = cx.error("given more than once, the last one counts");
                    cx.drop_value((), error)
                })?;
            }
        }
        Ok(found)
    }

    /// Reads a member in place, and takes it.
    fn read<T>(
        &mut self,
        index: usize,
        name: &'static str,
        read: impl FnOnce(&RawValue, &mut Decode) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let member = &mut self.members[index];
        member.taken = true;
        self.cx.at(Step::Field(name), |cx| read(&member.raw, cx))
    }

    fn read_or_default<T: Default>(
        &mut self,
        index: usize,
        name: &'static str,
        read: impl FnOnce(&RawValue, &mut Decode) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        self.read_or(index, name, read, T::default)
    }

    fn read_or<T>(
        &mut self,
        index: usize,
        name: &'static str,
        read: impl FnOnce(&RawValue, &mut Decode) -> Result<T, DecodeError>,
        default: impl FnOnce() -> T,
    ) -> Result<T, DecodeError> {
        self.read(index, name, |raw, cx| {
            let strict = cx.strict;
            cx.attempt(strict, |cx| read(raw, cx))
                .or_else(|error| cx.drop_value((), error).map(|()| default()))
        })
    }
}

/// What kind of JSON value `raw` is, in words.
pub(super) fn kind(raw: &RawValue) -> &'static str {
    match raw.get().as_bytes().first() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b'n') => "null",
        Some(b't' | b'f') => "boolean",
        _ => "number",
    }
}
