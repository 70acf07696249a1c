//! Members that an extension adds to a tagged union, as the open variant of the union.

use serde_core::Serialize;
use serde_core::de::DeserializeOwned;

use super::{Described, Json, Map, UnknownVariant, decode, encode};

/// Returns the open variant with the tag `tag`, whose value is `value`, and the members of
/// `payload`.
///
/// A payload that is not a JSON object has no members.
pub fn variant_of<T: Serialize>(tag: &str, value: &str, payload: &T) -> UnknownVariant {
    let mut text = Vec::new();
    let members = match encode(payload, &mut text) {
        Ok(()) => members(&text),
        Err(_) => Map::default(),
    };
    let members = members.into_iter().filter(|(name, _)| name != tag);
    let tag = (tag.to_owned(), Json::from(serde_json::Value::from(value)));
    UnknownVariant::new(value, std::iter::once(tag).chain(members).collect())
}

/// Returns the members of an open variant as a `T`, `None` when the tag is not `value` or the
/// members are not those of a `T`.
pub fn payload_of<T: DeserializeOwned + Described>(
    value: &str,
    variant: &UnknownVariant,
) -> Option<T> {
    let mut text = Vec::new();
    (variant.tag() == value).then_some(())?;
    encode(variant, &mut text).ok()?;
    decode(std::str::from_utf8(&text).ok()?, &mut |_| {}).ok()
}

fn members(text: &[u8]) -> Map<Json> {
    let text = std::str::from_utf8(text).unwrap_or_default();
    decode(text, &mut |_| {}).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{payload_of, variant_of};
    use crate::json::{Json, Map};

    #[test]
    fn a_payload_becomes_the_members_beside_the_tag_and_back() {
        let value = |text: &str| Json::from(serde_json::Value::from(text));
        let payload: Map<Json> = [("rows", value("a")), ("kind", value("ignored"))]
            .into_iter()
            .collect();
        let variant = variant_of("kind", "_x/table", &payload);
        let text = serde_json::to_string(&variant).unwrap();
        assert_eq!(text, r#"{"kind":"_x/table","rows":"a"}"#);
        let read: Map<Json> = payload_of("_x/table", &variant).unwrap();
        assert_eq!(read.get("rows"), Some(&value("a")));
        assert!(payload_of::<Map<Json>>("_x/other", &variant).is_none());
        assert!(payload_of::<Map<u8>>("_x/table", &variant).is_none());
    }
}
