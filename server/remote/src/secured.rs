//! Which requests are encrypted.

/// An extension of requests that came over TLS to [`listen()`](crate::listen()).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Secured;
