//! What the variants of a union contribute to a conversation, from the keyword `x-content`.
//!
//! The keyword stands at the variants with a tag, at all of them or at none. Custom variants, whose
//! tags start with `_`, may have none beside others that do.

use serde_json::Value;

use crate::walk::escaped;
use crate::{Document, Error};

/// What a variant contributes to a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Words of the user.
    Input,
    /// What the agent produces in a turn.
    Output,
    /// State of the session, which may change at any time.
    State,
}

impl Content {
    fn new(word: &str) -> Option<Self> {
        match word {
            "input" => Some(Self::Input),
            "output" => Some(Self::Output),
            "state" => Some(Self::State),
            _ => None,
        }
    }
}

/// The tagged variants of a union, by tag, in the order of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentInfo<'a> {
    /// The definition.
    pub union: &'a str,
    /// The tags of the variants.
    pub variants: Vec<(&'a str, Content)>,
}

impl Document {
    /// Returns the unions whose variants are marked with `x-content`.
    ///
    /// # Errors
    /// When a tagged variant of such a union has no mark, or an unknown one.
    pub fn contents(&self) -> Result<Vec<ContentInfo<'_>>, Error> {
        let mut found = Vec::new();
        for (union, schema) in self.defs() {
            let branches = ["oneOf", "anyOf"].into_iter().flat_map(|keyword| {
                let branches = schema.get(keyword).and_then(Value::as_array);
                let branches = branches.into_iter().flatten().enumerate();
                branches.map(move |(index, branch)| {
                    let at = format!("/$defs/{}/{keyword}/{index}", escaped(union));
                    (at, branch)
                })
            });
            let tagged: Vec<_> = branches
                .filter_map(|(at, branch)| Some((at, tag(branch)?, branch.get("x-content"))))
                .filter(|(_, tag, mark)| mark.is_some() || !tag.starts_with('_'))
                .collect();
            if tagged.iter().all(|(_, _, mark)| mark.is_none()) {
                continue;
            }
            let variants = tagged.into_iter().map(|(at, tag, mark)| {
                let content = mark.and_then(Value::as_str).and_then(Content::new);
                let missing = || {
                    let message = "expected `input`, `output` or `state`, as at other variants";
                    self.invalid(&format!("{at}/x-content"), message)
                };
                Ok((tag, content.ok_or_else(missing)?))
            });
            let variants = variants.collect::<Result<_, Error>>()?;
            found.push(ContentInfo { union, variants });
        }
        Ok(found)
    }
}

/// Returns the value of a variant's tag.
fn tag(branch: &Value) -> Option<&str> {
    let mut properties = branch.get("properties")?.as_object()?.values();
    properties.find_map(|property| property.get("const")?.as_str())
}
