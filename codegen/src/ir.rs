//! The passes' view of a document: types and what the wire asks of them.
//!
//! Names of Rust items and fields are not here: `skeletons` has them, and
//! what follows looks them up by the name on the wire.

use serde_json::Value;

/// A type to be generated.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Type {
    /// The Rust name, which is the definition's name unless the type was inline.
    pub(crate) name: String,
    /// JSON Pointer to the schema.
    pub(crate) at: String,
    pub(crate) docs: Option<String>,
    /// What the schema says of a value that no variant takes.
    pub(crate) unknown: Option<String>,
    pub(crate) shape: Shape,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Struct(Vec<Field>),
    /// A string newtype.
    Id,
    /// An enum of strings, open at the end.
    Text(Vec<Constant<String>>),
    /// An integer newtype with named values.
    Integer(Vec<Constant<i64>>),
    /// A newtype over a map.
    Map,
    /// A newtype over any other type.
    Wrapper,
    Union(Union),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Constant<T> {
    pub(crate) name: String,
    pub(crate) docs: Option<String>,
    pub(crate) value: T,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    /// The name on the wire; of a flattened union the name of the Rust field.
    pub(crate) wire: String,
    pub(crate) docs: Option<String>,
    pub(crate) presence: Presence,
    pub(crate) leniency: Leniency,
    pub(crate) place: Place,
    /// The members of a free object that have a type.
    pub(crate) typed: Vec<Typed>,
}

/// A member of a free object that has a type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Typed {
    /// The name on the wire.
    pub(crate) key: String,
    pub(crate) docs: Option<String>,
    /// The definition of its type.
    pub(crate) ty: String,
}

/// Where the value of a field is in the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is a member.
    Member,
    /// Its members are among the object's own; they are those of a union.
    Union,
    /// It has the members that no other field has.
    Entries,
}

impl Place {
    /// Whether the members of the field's object stand among the struct's own.
    pub(crate) fn is_flattened(self) -> bool {
        self != Self::Member
    }
}

/// What the absence of a field means.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Presence {
    Required,
    /// `Option`: no value; `null` is the same.
    Optional,
    /// A list or map: an empty one.
    Empty,
    /// The value that the schema names.
    Default(Value),
    /// Absent and `null` are values of their own.
    Patch,
}

/// What a decoder tolerates in a field.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Leniency {
    pub(crate) on_error: bool,
    pub(crate) on_null: bool,
    pub(crate) skip_items: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Union {
    /// The member that tells the variants apart, if there is one.
    pub(crate) tag: Option<String>,
    pub(crate) variants: Vec<Variant>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Variant {
    /// The tag's value; of a variant without a tag its title.
    pub(crate) key: String,
    pub(crate) docs: Option<String>,
    pub(crate) content: Content,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing but the tag.
    Unit,
    /// The members beside the tag.
    Payload,
    /// All members, when there is no tag.
    Default {
        /// Also when the tag is unknown and the members fit.
        takes_unknown: bool,
    },
    /// A variant of a union without tags that is `null`.
    Null,
    /// A variant of a union without tags: an object.
    Object,
    /// A variant of a union without tags: another value.
    Value(Form),
}

/// What a value without members looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Boolean,
    Number,
    String,
    Array,
    Any,
}

impl Shape {
    /// Whether the JSON form is an object, so that it can share one with others.
    pub(crate) fn is_object(&self) -> bool {
        match self {
            Self::Struct(_) | Self::Map => true,
            Self::Union(union) => {
                union.tag.is_some()
                    || union
                        .variants
                        .iter()
                        .all(|variant| variant.content == Content::Object)
            }
            Self::Id | Self::Text(_) | Self::Integer(_) | Self::Wrapper => false,
        }
    }
}
