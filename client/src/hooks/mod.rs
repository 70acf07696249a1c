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
mod object_safe;
mod terminals;

pub use self::buffers::{Buffers, OpenFiles};
pub(crate) use self::context::Directories;
pub use self::context::{ConnectionId, SessionContext};
pub use self::elicitation::Elicitation;
pub(crate) use self::elicitation::elicit;
pub use self::extensions::Extensions;
pub use self::files::Files;
pub use self::form::check_field;
pub use self::form::{InvalidAnswer, check_form};
pub(crate) use self::object_safe::{
    AnyElicitation, AnyExtensions, AnyFiles, AnyPermissions, AnyTerminals,
};
pub use self::terminals::Terminals;
