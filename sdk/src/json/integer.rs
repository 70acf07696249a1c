//! Impls shared by generated integer newtypes, such as error codes.

/// Implements an integer newtype that keeps unknown values.
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_integer {
    ($name:ident, $repr:ty) => {
        impl $name {
            /// Creates the value from a number.
            #[must_use]
            pub const fn new(number: $repr) -> Self {
                Self(number)
            }

            /// Returns the number.
            #[must_use]
            pub const fn get(self) -> $repr {
                self.0
            }
        }

        impl ::core::convert::From<$repr> for $name {
            fn from(number: $repr) -> Self {
                Self(number)
            }
        }

        impl ::core::convert::From<$name> for $repr {
            fn from(value: $name) -> Self {
                value.0
            }
        }

        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(&self.0, f)
            }
        }

        $crate::__acp_wrapper!($name, $repr);
    };
}
