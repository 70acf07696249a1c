//! JSON Pointers with one addition: a name `[key=text]` is the first element of an array whose
//! member `key` is that text.

use serde::Deserialize;
use serde_json::Value;

/// A place in a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Pointer(Vec<Name>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Plain(String),
    Element { key: String, text: String },
}

impl TryFrom<String> for Pointer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let names = match text.strip_prefix('/') {
            Some(names) => names.split('/').map(Name::new).collect(),
            None if text.is_empty() => Vec::new(),
            None => return Err(format!("the pointer `{text}` does not begin with `/`")),
        };
        Ok(Self(names))
    }
}

impl Name {
    fn new(text: &str) -> Self {
        let element = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'));
        match element.and_then(|element| element.split_once('=')) {
            Some((key, text)) => Self::Element {
                key: key.to_owned(),
                text: text.to_owned(),
            },
            None => Self::Plain(text.replace("~1", "/").replace("~0", "~")),
        }
    }

    /// Its place in an array.
    fn index(&self, elements: &[Value]) -> Option<usize> {
        match self {
            Self::Plain(number) => number.parse().ok().filter(|index| *index < elements.len()),
            Self::Element { key, text } => elements
                .iter()
                .position(|element| element.get(key).and_then(Value::as_str) == Some(text)),
        }
    }

    fn within<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value> {
        match (value, self) {
            (Value::Object(members), Self::Plain(name)) => members.get_mut(name),
            (Value::Array(elements), name) => {
                let index = name.index(elements)?;
                elements.get_mut(index)
            }
            _ => None,
        }
    }
}

impl Pointer {
    /// Returns the first name, which is a member of a message.
    pub(super) fn root(&self) -> &str {
        match self.0.first() {
            Some(Name::Plain(name)) => name,
            _ => "",
        }
    }

    /// Returns what stands at this place.
    pub(super) fn find<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value> {
        self.0
            .iter()
            .try_fold(value, |value, name| name.within(value))
    }

    /// Puts a value at this place, in the stead of what stands there or as a new member. Returns
    /// whether the place exists.
    pub(super) fn set(&self, value: &mut Value, new: Value) -> bool {
        match self.parent(value) {
            Some((Value::Object(members), Name::Plain(name))) => {
                members.insert(name.clone(), new);
                true
            }
            _ => self.replace(value, new),
        }
    }

    /// Puts a value in the stead of what stands at this place. Returns whether something did.
    pub(super) fn replace(&self, value: &mut Value, new: Value) -> bool {
        self.find(value).map(|place| *place = new).is_some()
    }

    /// Takes away what stands at this place. Returns whether something did.
    pub(super) fn remove(&self, value: &mut Value) -> bool {
        match self.parent(value) {
            Some((Value::Object(members), Name::Plain(name))) => members.remove(name).is_some(),
            Some((Value::Array(elements), name)) => {
                let index = name.index(elements);
                index.map(|index| elements.remove(index)).is_some()
            }
            _ => false,
        }
    }

    /// Adds a copy of the element at this place to its array. Returns whether there is one.
    pub(super) fn repeat(&self, value: &mut Value) -> bool {
        let Some((Value::Array(elements), name)) = self.parent(value) else {
            return false;
        };
        let element = name.index(elements).and_then(|index| elements.get(index));
        let Some(element) = element.cloned() else {
            return false;
        };
        elements.push(element);
        true
    }

    fn parent<'v, 'p>(&'p self, value: &'v mut Value) -> Option<(&'v mut Value, &'p Name)> {
        let (last, parents) = self.0.split_last()?;
        let parent = parents
            .iter()
            .try_fold(value, |value, name| name.within(value))?;
        Some((parent, last))
    }
}
