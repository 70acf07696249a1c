//! What the generated text calls for types that are no objects and no unions.

/// Implements the conversion of an enum of strings, of which every text is a value.
macro_rules! text {
    ($from:path, $to:path) => {
        impl Convert<$to> for $from {
            fn convert(self, _: &mut Losses) -> Option<$to> {
                Some(self.as_str().into())
            }
        }
    };
}

/// Implements the conversion of an identifier, without a copy of its text.
macro_rules! id {
    ($from:path, $to:path) => {
        impl Convert<$to> for $from {
            fn convert(self, _: &mut Losses) -> Option<$to> {
                Some(::std::sync::Arc::<str>::from(self).into())
            }
        }
    };
}

/// Implements the conversions of an identifier that is a string in the other version.
macro_rules! string {
    ($id:path) => {
        impl Convert<$id> for String {
            fn convert(self, _: &mut Losses) -> Option<$id> {
                Some(self.into())
            }
        }

        impl Convert<String> for $id {
            fn convert(self, _: &mut Losses) -> Option<String> {
                Some(self.as_str().to_owned())
            }
        }
    };
}

/// Implements the conversion of an integer with a type of its own.
macro_rules! integer {
    ($from:path, $to:path) => {
        impl Convert<$to> for $from {
            fn convert(self, losses: &mut Losses) -> Option<$to> {
                self.get().convert(losses).map(<$to>::new)
            }
        }
    };
}

/// Lists the definitions that convert in both directions, for tests.
macro_rules! pairs {
    ({ $($v1:literal : $a:path = $v2:literal : $b:path),* $(,)? }) => {
        #[cfg(test)]
        pub(super) const PAIRS: &[super::tests::Pair] = &[
            $(super::tests::Pair::new::<$a, $b>($v1, $v2)),*
        ];
    };
}
