//! Proxies that are ready for use. `acp conduct` has each by its name.

mod audit;
mod context;
mod policy;
mod record;
mod redact;
mod tools;

pub use self::audit::audit;
pub use self::context::context;
pub use self::policy::policy;
pub use self::record::record;
pub use self::redact::{SECRETS, redact};
#[cfg(feature = "mcp")]
pub(crate) use self::tools::add as add_servers;
pub use self::tools::tools;
