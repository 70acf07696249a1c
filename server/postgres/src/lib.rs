#![doc = include_str!("../README.md")]

mod commit;
mod database;
mod ending;
mod failure;
mod lease;
mod node;
mod nodes;
mod options;
mod read;
mod rows;
mod schema;
mod slots;
mod store;
mod tls;

pub use nodes::NodeInfo;
pub use options::PostgresOptions;
pub use store::PostgresStore;

/// The steps that bring the tables up to date; for tests.
#[doc(hidden)]
pub const STEPS: &[&str] = schema::STEPS;
