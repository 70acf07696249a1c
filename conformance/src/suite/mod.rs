//! A run of the suite against an agent: which checks, in what order, what they
//! came to, and what of the protocol they have exercised.

mod coverage;
mod cx;
mod fields;
mod preflight;
mod report;
mod run;
mod tour;

pub use self::coverage::{Coverage, KindUse, MethodUse, UnionUse};
pub use self::cx::Cx;
pub use self::fields::FieldUse;
pub use self::report::{Report, Row, Verdict};
pub use self::run::{Options, run};
