//! Arguments of setters: a value or an `Option`.

/// An argument of a setter of an optional member: a value, or an `Option` of a value, that converts
/// into a `T`. The compiler infers `M`.
///
/// ```
/// use acp_sdk::v1::Implementation;
///
/// let agent = Implementation::new("agent", "1").with_title("Agent");
/// assert_eq!(agent.title.as_deref(), Some("Agent"));
/// let unknown: Option<String> = None;
/// assert_eq!(agent.with_title(unknown).title, None);
/// ```
pub trait IntoOption<T, M> {
    /// Converts the argument.
    fn into_option(self) -> Option<T>;
}

/// The `M` of [`IntoOption`] for a value.
#[derive(Debug)]
pub enum OfValue {}

/// The `M` of [`IntoOption`] for an `Option`.
#[derive(Debug)]
pub enum OfOption {}

impl<T, V: Into<T>> IntoOption<T, OfValue> for V {
    fn into_option(self) -> Option<T> {
        Some(self.into())
    }
}

impl<T, V: Into<T>> IntoOption<T, OfOption> for Option<V> {
    fn into_option(self) -> Option<T> {
        self.map(Into::into)
    }
}
