//! The agent's requests to its client: one trait for each kind of request.
//!
//! Each hook is set separately on [`ClientBuilder`](crate::ClientBuilder): [`Files`], [`Terminals`]
//! ([`Workspace`](crate::Workspace) implements both), [`Permissions`](crate::Permissions),
//! [`Elicitation`] and [`Extensions`]. The declared capabilities follow from the hooks that are
//! set.

mod buffers;
mod context;
mod elicitation;
mod extensions;
mod files;
mod form;
mod terminals;

use std::pin::Pin;

pub use self::buffers::{Buffers, OpenFiles};
pub(crate) use self::context::Place;
pub use self::context::{ConnectionId, SessionContext};
pub use self::elicitation::Elicitation;
pub(crate) use self::elicitation::{AnyElicitation, elicit};
pub(crate) use self::extensions::AnyExtensions;
pub use self::extensions::Extensions;
pub(crate) use self::files::AnyFiles;
pub use self::files::Files;
pub use self::form::check_field;
pub use self::form::{InvalidAnswer, check_form};
pub(crate) use self::terminals::AnyTerminals;
pub use self::terminals::Terminals;

/// A future of an object-safe hook.
pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
