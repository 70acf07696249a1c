//! Strict parsing of JSON documents: a duplicate member is an error.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::Error;

/// Parses a text; errors call it `name`. A byte order mark is ignored.
///
/// # Errors
///
/// When the text is not JSON, or an object has two members of one name, of which all but one
/// would be lost.
pub(crate) fn read(name: &str, text: &str) -> Result<Value, Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match serde_json::from_str::<Once>(text) {
        Ok(Once(value)) => Ok(value),
        Err(source) => Err(Error::Json {
            name: name.into(),
            source,
        }),
    }
}

/// A value with every member once.
struct Once(Value);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Once(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if object.contains_key(&name) {
                let reason = format!("a second member `{name}` in one object; remove one of them");
                return Err(A::Error::custom(reason));
            }
            let Once(value) = members.next_value()?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_read_as_it_stands() {
        let text = r#"{"b": [null, true, -1, 18446744073709551615, 0.5, "\u00e9"], "a": {}}"#;
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(read("doc.json", text).unwrap(), expected);
        let marked = format!("\u{feff}{text}");
        assert_eq!(
            read("doc.json", &marked).unwrap().to_string(),
            expected.to_string(),
            "the order of members too"
        );
    }

    #[test]
    fn a_member_twice_is_an_error_with_its_place() {
        let text = "{\"$defs\": {\n\"A\": {},\n\"A\": {}}}";
        let error = read("doc.json", text).unwrap_err().to_string();
        assert_eq!(
            error,
            "doc.json: a second member `A` in one object; remove one of them at line 3 column 3"
        );
        let error = read("doc.json", "{").unwrap_err().to_string();
        assert!(error.starts_with("doc.json: not JSON: EOF"), "{error}");
    }
}
