//! What the generated conversions of objects and unions call.

use std::ops::RangeBounds;

use serde_core::Serialize;
use serde_core::de::DeserializeOwned;

use super::{Convert, Losses};
use crate::json::{Map, UnknownVariant};
use crate::{Json, Patch};

/// The reason of a member that the other version can set only.
const CLEARED: &str = "the other version cannot clear it";

/// Converts a member that may be absent. One without a form in the other version becomes absent.
pub(super) fn optional<A: Convert<B>, B>(
    name: &str,
    value: Option<A>,
    losses: &mut Losses,
) -> Option<B> {
    let value = value?;
    losses.within(name, |losses| value.convert(losses))
}

/// Converts a member that may be cleared in both versions.
pub(super) fn patched<A: Convert<B>, B>(
    name: &str,
    value: Patch<A>,
    losses: &mut Losses,
) -> Patch<B> {
    match value {
        Patch::Absent => Patch::Absent,
        Patch::Null => Patch::Null,
        Patch::Value(value) => patch(optional(name, Some(value), losses)),
    }
}

/// Returns a member that is set, or not changed.
pub(super) fn patch<T>(value: Option<T>) -> Patch<T> {
    value.map_or(Patch::Absent, Patch::Value)
}

/// Returns the value of a member, the one that `null` stands for when it is cleared.
pub(super) fn cleared<T: DeserializeOwned>(
    name: &str,
    value: Patch<T>,
    null: &str,
    losses: &mut Losses,
) -> Option<T> {
    match value {
        Patch::Absent => None,
        Patch::Null => {
            losses.lost(name, CLEARED);
            given(null)
        }
        Patch::Value(value) => Some(value),
    }
}

/// Returns the value of a member that the other version cannot clear.
pub(super) fn uncleared<T>(name: &str, value: Patch<T>, losses: &mut Losses) -> Option<T> {
    match value {
        Patch::Absent => None,
        Patch::Null => losses.within(name, |losses| losses.none(CLEARED)),
        Patch::Value(value) => Some(value),
    }
}

/// Converts a list or map all of whose items need a form in the other version.
pub(super) fn every<A: Convert<B> + Measure, B: Measure>(
    name: &str,
    value: Option<A>,
    losses: &mut Losses,
) -> Option<B> {
    let value = value?;
    let items = value.measure();
    let converted: B = optional(name, Some(value), losses)?;
    (converted.measure() == items).then_some(converted)
}

/// Returns a value unless it is outside of the limits of the other version.
pub(super) fn limit<T: Measure>(
    name: &str,
    value: Option<T>,
    limits: impl RangeBounds<f64>,
    losses: &mut Losses,
) -> Option<T> {
    let value = value?;
    if limits.contains(&value.measure()) {
        return Some(value);
    }
    losses.within(name, |losses| {
        losses.none("outside of the limits of the other version")
    })
}

/// Returns a value that the other version always has.
pub(super) fn or_default<T: Default + PartialEq>(
    name: &str,
    value: Option<T>,
    losses: &mut Losses,
) -> T {
    let Some(value) = value else {
        return T::default();
    };
    if is_default(&value) {
        losses.lost(
            name,
            "the other version does not tell it from an absent one",
        );
    }
    value
}

/// Returns a value that the other version requires.
pub(super) fn required<T>(name: &str, value: Option<T>, losses: &mut Losses) -> Option<T> {
    if value.is_none() {
        losses.lost(name, "the other version requires it");
    }
    value
}

/// Returns whether a value is the default.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Returns a value that the other version requires, the one of the mapping for an absent one.
pub(super) fn or_given<T: DeserializeOwned>(
    name: &str,
    value: Option<T>,
    given_text: &str,
    losses: &mut Losses,
) -> Option<T> {
    required(name, value, losses).or_else(|| given(given_text))
}

/// Returns a value unless it is the default, which absence means in the other version.
pub(super) fn unless_default<T: Default + PartialEq>(value: T) -> Option<T> {
    (!is_default(&value)).then_some(value)
}

/// Returns the object that marks support, for a flag.
pub(super) fn marker<T: Default>(flag: bool) -> Option<T> {
    flag.then(T::default)
}

/// Returns the flag of an object that marks support.
pub(super) fn flag<T: Default + PartialEq>(
    name: &str,
    marker: Option<T>,
    losses: &mut Losses,
) -> bool {
    if marker.as_ref().is_some_and(|marker| !is_default(marker)) {
        losses.lost(name, "a flag in the other version");
    }
    marker.is_some()
}

/// Returns the value that the mapping gives for an absent one.
pub(super) fn given<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}

/// Returns a variant as one that the other version does not know, with all its members.
pub(super) fn kept<T: Serialize>(
    tag: &str,
    value: &T,
    losses: &mut Losses,
) -> Option<UnknownVariant> {
    let members = Json::new(value).and_then(|json| json.parse::<Map<Json>>());
    match members {
        Ok(members) => Some(UnknownVariant::new(tag, members.into_iter().collect())),
        Err(_) => losses.none("it has no JSON form"),
    }
}

/// Converts a variant that the source does not know. `names` are members with other names, `known`
/// are the tags that the target knows, `required` what it demands of others.
pub(super) fn unknown<T: DeserializeOwned>(
    variant: UnknownVariant,
    names: &[(&str, &str)],
    known: &[&str],
    required: &[&str],
    wrap: fn(UnknownVariant) -> T,
    losses: &mut Losses,
) -> Option<T> {
    let variant = match names {
        [] => variant,
        _ => {
            let renamed = |(name, value): &(String, Json)| {
                let other = names.iter().find(|(from, _)| from == name);
                let name = other.map_or(name.as_str(), |(_, to)| to);
                (name.to_owned(), value.clone())
            };
            UnknownVariant::new(
                variant.tag(),
                variant.fields().iter().map(renamed).collect(),
            )
        }
    };
    if known.contains(&variant.tag()) {
        let value = Json::new(&variant).and_then(|json| json.parse());
        return match value {
            Ok(value) => Some(value),
            Err(_) => losses.none("not valid in the version that has it"),
        };
    }
    match required.iter().all(|name| variant.get(name).is_some()) {
        true => Some(wrap(variant)),
        false => losses.none("the other version requires more members"),
    }
}

/// A value with limits: a number, or a list by its length.
pub(super) trait Measure {
    fn measure(&self) -> f64;
}

impl<T> Measure for Vec<T> {
    #[allow(clippy::cast_precision_loss, reason = "limits of lists are small")]
    fn measure(&self) -> f64 {
        self.len() as f64
    }
}

impl<T> Measure for Map<T> {
    #[allow(clippy::cast_precision_loss, reason = "limits of maps are small")]
    fn measure(&self) -> f64 {
        self.len() as f64
    }
}

impl Measure for f64 {
    fn measure(&self) -> f64 {
        *self
    }
}

impl Measure for u32 {
    fn measure(&self) -> f64 {
        (*self).into()
    }
}
