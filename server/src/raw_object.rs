//! A JSON object whose members are kept as text, in their order.
//!
//! What is passed on for somebody else must not lose a member that this crate does not know, nor
//! the digits of a number.

use std::fmt;

use acp_sdk::Json;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object, not parsed.
#[derive(Clone, Debug, Default)]
pub struct RawObject(Vec<(String, Json)>);

impl RawObject {
    /// Reads an object; `None` if the text is another value or no JSON.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns the text of a member.
    pub fn get(&self, key: &str) -> Option<&str> {
        let member = self.0.iter().rev().find(|(name, _)| name == key);
        member.map(|(_, value)| value.get())
    }

    /// Returns a member that is a string.
    pub fn text(&self, key: &str) -> Option<String> {
        serde_json::from_str(self.get(key)?).ok()
    }

    /// Removes a member.
    pub fn remove(&mut self, key: &str) -> Option<Json> {
        let at = self.0.iter().rposition(|(name, _)| name == key)?;
        let (_, value) = self.0.remove(at);
        self.0.retain(|(name, _)| name != key);
        Some(value)
    }

    /// Replaces a member where it is, or adds it at the end.
    pub fn set(&mut self, key: &str, value: Json) {
        match self.0.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    /// Adds a member before all others.
    pub fn set_first(&mut self, key: &str, value: Json) {
        self.remove(key);
        self.0.insert(0, (key.to_owned(), value));
    }

    /// Returns whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the object as JSON.
    pub fn to_json(&self) -> Json {
        let bytes: usize = self
            .0
            .iter()
            .map(|(name, value)| name.len() + value.get().len() + 4)
            .sum();
        let mut text = String::with_capacity(bytes + 2);
        text.push('{');
        for (at, (name, value)) in self.0.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            // A text always has a JSON form.
            text.push_str(&serde_json::to_string(name).unwrap_or_default());
            text.push(':');
            text.push_str(value.get());
        }
        text.push('}');
        // Its parts are JSON, so it is.
        let raw = RawValue::from_string(text);
        Json::from(raw.unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = RawObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    members.push((name, Json::from(value)));
                }
                Ok(RawObject(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// Returns a text as JSON.
pub fn json_text(text: &str) -> Json {
    Json::from(serde_json::Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_text_and_order() {
        let text = r#"{"n":1.50,"ü\n":{"a": [1e2]},"s":"x\u00fc"}"#;
        let mut object = RawObject::parse(text).unwrap();
        assert_eq!(object.to_json().get(), text);
        assert_eq!(object.text("s").as_deref(), Some("xü"));
        object.set("n", json_text("\""));
        object.set_first("s", json_text("y"));
        object.set("more", json_text("z"));
        let changed = r#"{"s":"y","n":"\"","ü\n":{"a": [1e2]},"more":"z"}"#;
        assert_eq!(object.to_json().get(), changed);
        assert_eq!(object.remove("absent"), None);
        for name in ["s", "n", "more", "ü\n"] {
            assert!(object.remove(name).is_some(), "{name}");
        }
        assert!(object.is_empty());
        assert_eq!(object.to_json().get(), "{}");
    }

    #[test]
    fn other_values_are_no_objects() {
        for text in ["[]", "1", "null", "{", r#"{"a":}"#] {
            assert!(RawObject::parse(text).is_none(), "{text}");
        }
    }
}
