//! Reports of a run: for people, and for machines.

mod client;
mod html;
mod json;
mod junit;
mod text;

pub use self::client::{ClientDocument, client_text};
pub use self::html::html;
pub use self::json::{Document, Listed};
pub use self::junit::junit;
pub use self::text::{list, text};
