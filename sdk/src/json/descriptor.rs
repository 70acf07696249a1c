//! Describes the JSON form of a type as data, for the lenient pass.
//!
//! A type returns its descriptor from a function, so that descriptors can be recursive.

/// Returns the descriptor of a type.
pub type DescriptorFn = fn() -> &'static TypeDescriptor;

/// Describes the JSON form of a type.
#[derive(Debug)]
#[non_exhaustive]
pub enum TypeDescriptor {
    /// Any JSON value; the type itself checks it.
    Any,
    /// A value that a function checks as a whole.
    #[doc(hidden)]
    Scalar(fn(&str) -> Result<(), serde_json::Error>),
    /// `null` or a value of the given type.
    #[doc(hidden)]
    Nullable(DescriptorFn),
    /// An array of items of one type.
    #[doc(hidden)]
    List(DescriptorFn),
    /// An object whose members all have one type.
    #[doc(hidden)]
    Map(DescriptorFn),
    /// An object with known members.
    #[doc(hidden)]
    Object(&'static [Field]),
    /// A union of objects with a tag.
    #[doc(hidden)]
    TaggedUnion(TaggedVariants),
    /// A union of objects, selected by their required members.
    #[doc(hidden)]
    ObjectUnion {
        /// Names the union and its branches in errors.
        expected: &'static str,
        /// The required members and the type of each branch.
        branches: &'static [(&'static [&'static str], DescriptorFn)],
    },
    /// A union of values, selected by trying.
    #[doc(hidden)]
    ValueUnion {
        /// Names the union and its branches in errors.
        expected: &'static str,
        /// The JSON kind and the type of each branch.
        branches: &'static [(JsonKind, DescriptorFn)],
    },
}

/// A member that a type has.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DescribedMember {
    /// One of this type.
    Of(DescriptorFn),
    /// The tag of a union.
    Tag,
}

/// The deepest nesting of types in one object that [`TypeDescriptor::knows`] follows.
const MERGED: usize = 8;

impl TypeDescriptor {
    /// Whether an object of this type names each of the members. What takes any member is no
    /// better than a type that drops an unknown one.
    pub(in crate::json) fn knows<'a>(&self, mut names: impl Iterator<Item = &'a str>) -> bool {
        names.all(|name| {
            let mut known = false;
            self.members(name, MERGED, &mut |_| known = true);
            known && !matches!(self, Self::Map(_))
        })
    }

    /// Calls `found` with the members `name` of the type, or of the items of an array. Unions have
    /// those of their variants. Follows types into each other `depth` times.
    pub(crate) fn members(&self, name: &str, depth: usize, found: &mut dyn FnMut(DescribedMember)) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        match self {
            Self::Any | Self::Scalar(_) => {}
            Self::Nullable(of) | Self::List(of) => of().members(name, depth, found),
            Self::Map(of) => found(DescribedMember::Of(*of)),
            Self::Object(fields) => {
                for field in *fields {
                    match field.flattened {
                        true => (field.of)().members(name, depth, found),
                        false if field.name == name => found(DescribedMember::Of(field.of)),
                        false => {}
                    }
                }
            }
            Self::TaggedUnion(variants) => {
                if name == variants.tag {
                    found(DescribedMember::Tag);
                }
                let known = variants.known.iter().map(|(_, of)| of);
                for of in known.chain(&variants.default) {
                    of().members(name, depth, found);
                }
            }
            Self::ObjectUnion { branches, .. } => {
                for (_, of) in *branches {
                    of().members(name, depth, found);
                }
            }
            Self::ValueUnion { branches, .. } => {
                for (_, of) in *branches {
                    of().members(name, depth, found);
                }
            }
        }
    }
}

/// The variants of a tagged union.
#[derive(Debug)]
pub struct TaggedVariants {
    /// Name of the tag member.
    pub tag: &'static str,
    /// Known tag values with their payload types; `()` for a variant without payload.
    pub known: &'static [(&'static str, DescriptorFn)],
    /// Type of the variant without a tag.
    pub default: Option<DescriptorFn>,
    /// Whether `default` is also tried for unknown tag values.
    pub takes_unknown: bool,
}

/// A member of an object, or a union whose members are merged into the object.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name on the wire; for a union the name of its tag.
    pub(super) name: &'static str,
    pub(super) of: DescriptorFn,
    /// Whether absence is an error.
    pub(super) required: bool,
    /// Whether an invalid value is dropped.
    pub(super) lenient: bool,
    /// Whether invalid items are dropped.
    pub(super) items: bool,
    /// Whether `null` means the default.
    pub(super) nullable: bool,
    /// Whether its members are merged into the object: those of a union, or of a map.
    pub(super) flattened: bool,
}

impl Field {
    /// Describes a required member.
    #[must_use]
    pub const fn required(name: &'static str, of: DescriptorFn) -> Self {
        Self {
            name,
            of,
            required: true,
            lenient: false,
            items: false,
            nullable: false,
            flattened: false,
        }
    }

    /// Describes a member whose absence means the default.
    #[must_use]
    pub const fn optional(name: &'static str, of: DescriptorFn) -> Self {
        Self {
            required: false,
            ..Self::required(name, of)
        }
    }

    /// Allows an invalid value to be dropped.
    #[must_use]
    pub const fn or_default(self) -> Self {
        Self {
            lenient: true,
            ..self
        }
    }

    /// Allows invalid items to be dropped.
    #[must_use]
    pub const fn valid_items(self) -> Self {
        Self {
            items: true,
            ..self
        }
    }

    /// Lets `null` mean the default.
    #[must_use]
    pub const fn or_null(self) -> Self {
        Self {
            nullable: true,
            ..self
        }
    }

    /// Merges the members of a union or map into the object.
    ///
    /// An optional union is absent when its tag is absent or `null`. A map gets the members that
    /// no earlier field has, so it comes last.
    #[must_use]
    pub const fn flattened(self) -> Self {
        Self {
            flattened: true,
            ..self
        }
    }
}

/// The kind of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonKind {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// Any number.
    Number,
    /// Any string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
    /// Any value.
    Any,
}

impl JsonKind {
    /// Whether a value with this first byte is of this kind.
    pub(in crate::json) fn has(self, first: u8) -> bool {
        match self {
            Self::Null => first == b'n',
            Self::Boolean => matches!(first, b't' | b'f'),
            Self::Number => matches!(first, b'-' | b'0'..=b'9'),
            Self::String => first == b'"',
            Self::Array => first == b'[',
            Self::Object => first == b'{',
            Self::Any => true,
        }
    }
}
