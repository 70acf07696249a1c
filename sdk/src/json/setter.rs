//! Arguments of setters: a value or an `Option`.

/// A value, or an `Option` of a value, that converts into a `T`.
///
/// The compiler infers `M`.
pub trait IntoOption<T, M> {
    /// Converts the argument.
    fn into_option(self) -> Option<T>;
}

/// Marks a plain value.
#[derive(Debug)]
pub enum Plain {}

/// Marks an `Option`.
#[derive(Debug)]
pub enum Optional {}

impl<T, V: Into<T>> IntoOption<T, Plain> for V {
    fn into_option(self) -> Option<T> {
        Some(self.into())
    }
}

impl<T, V: Into<T>> IntoOption<T, Optional> for Option<V> {
    fn into_option(self) -> Option<T> {
        self.map(Into::into)
    }
}
