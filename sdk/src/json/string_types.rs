//! Impls shared by generated string types: ids and extensible enums.

/// Implements an identifier as a newtype over `Arc<str>`, which is cheap to clone.
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_string_id {
    ($name:ident) => {
        impl $name {
            /// Returns the text of the identifier.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl ::core::convert::From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(::std::sync::Arc::from(text))
            }
        }

        impl ::core::convert::From<::std::string::String> for $name {
            fn from(text: ::std::string::String) -> Self {
                Self(::std::sync::Arc::from(text))
            }
        }

        impl ::core::convert::From<::std::sync::Arc<str>> for $name {
            fn from(text: ::std::sync::Arc<str>) -> Self {
                Self(text)
            }
        }

        impl ::core::convert::From<$name> for ::std::sync::Arc<str> {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl ::core::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                self.as_str()
            }
        }

        impl ::core::convert::From<&$name> for $name {
            fn from(id: &$name) -> Self {
                id.clone()
            }
        }

        $crate::__acp_string_type!($name);
    };
}

/// Implements an enum of strings. The variant after `..` keeps unknown text.
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_string_enum {
    ($name:ident { $($variant:ident = $text:literal,)* .. $other:ident }) => {
        impl $name {
            /// Returns the text of the value on the wire.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::$other(text) => text,
                }
            }
        }

        impl ::core::convert::From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)*
                    other => Self::$other(::std::convert::Into::into(other)),
                }
            }
        }

        impl ::core::convert::From<::std::string::String> for $name {
            fn from(text: ::std::string::String) -> Self {
                match text.as_str() {
                    $($text => Self::$variant,)*
                    _ => Self::$other(text),
                }
            }
        }

        $crate::__acp_string_type!($name);
    };
}

/// Impls shared by identifiers and string enums.
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_string_type {
    ($name:ident) => {
        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl ::core::convert::AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl ::core::cmp::PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl ::core::cmp::PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl $crate::runtime::serde::Serialize for $name {
            fn serialize<S: $crate::runtime::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        $crate::__acp_described!(
            $name,
            <::std::string::String as $crate::runtime::Described>::descriptor(),
            |reader| reader.text_as()
        );
    };
}
