//! Conversions between the types of version 1 and version 2.
//!
//! They are generated from `v1-v2.json`, the mapping document beside the schemas, which has the
//! differences that names do not show. What data cannot say is in functions that the document
//! names: `to_v1` and `to_v2`.
//!
//! A conversion takes a value and returns its form in the other version. What that version has no
//! place for is lost and reported to [`Losses`], with the place in the source:
//!
//! ```
//! use acp_sdk::convert::{Convert, Losses};
//! use acp_sdk::{v1, v2};
//!
//! let mut losses = Losses::default();
//! let icon = v2::Icon::new("https://example.com/a.png");
//! let link = v2::ResourceLink::new("a", "file:///a").with_icons(vec![icon]);
//! let link: Option<v1::ContentBlock> = v2::ContentBlock::from(link).convert(&mut losses);
//! assert!(link.is_some());
//! assert_eq!(losses.list()[0].pointer(), "/icons");
//! ```
//!
//! - A variant that one version does not know is kept as an unknown variant with all its members,
//!   and becomes a known one again on its way back. `_meta` is kept.
//! - An optional member, or an item of a list, without a form in the other version is left out. A
//!   required member without one makes the whole value one without a form: `None`.
//! - A value that breaks a limit that only the other version has, such as the least number of
//!   items, is treated in the same way.
//! - The protocol version in `initialize` is kept as it is. Negotiation chooses it.

#[macro_use]
mod macros;

mod diff;
mod losses;
mod members;
#[cfg(test)]
mod tests;
mod to_v1;
mod to_v2;
mod values;

pub use self::losses::{Loss, Losses};

/// A value of one version that may have a form in the other.
pub trait Convert<T>: Sized {
    /// Returns the form in the other version, and reports to `losses` what it has no place for.
    ///
    /// `None` if there is no form; the reason is reported.
    fn convert(self, losses: &mut Losses) -> Option<T>;

    /// Appends the form to a list, for values that become several items or none there.
    fn convert_into(self, list: &mut Vec<T>, losses: &mut Losses) {
        list.extend(self.convert(losses));
    }
}

/// Converts a value, and logs what is lost at the level `DEBUG`.
pub fn convert_logged<A: Convert<B>, B>(value: A) -> Option<B> {
    let mut losses = Losses::default();
    let converted = value.convert(&mut losses);
    for loss in losses.list() {
        tracing::debug!(
            pointer = loss.pointer(),
            reason = loss.reason(),
            from = std::any::type_name::<A>(),
            "no place in the other protocol version"
        );
    }
    converted
}

/// The conversions of all pairs of types.
#[allow(
    clippy::all,
    clippy::pedantic,
    unused_qualifications,
    reason = "the generator writes the same form for every member"
)]
mod generated {
    use super::members::*;
    use super::{Convert, Losses, to_v1, to_v2};
    use crate::{v1, v2};

    include!(concat!(env!("ACP_SDK_GENERATED"), "/convert.rs"));
}
