//! Layers that most agents and hosts need.

mod access;
mod concurrency;
mod deadline;

pub use self::access::AccessCheck;
pub use self::concurrency::ConcurrencyLimit;
pub use self::deadline::Deadline;
