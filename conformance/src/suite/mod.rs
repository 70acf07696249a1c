//! A run of the suite against an agent: which checks, in what order, their
//! verdicts, and what of the protocol they have exercised.

mod cancel_times;
mod coverage;
mod exploration;
mod fields;
mod passive;
mod plan;
mod preflight;
mod report;
mod run;
mod setup;
mod trouble;
mod unusable;
mod violations;

pub use self::cancel_times::CancelTimes;
pub(crate) use self::cancel_times::seconds;
pub use self::coverage::{Coverage, KindUse, MethodUse, UnionUse};
pub use self::fields::FieldUse;
pub use self::plan::{Effort, Options, QuickLimits};
pub use self::report::{Messages, Report, RootCause, Row, Verdict};
pub use self::run::{estimate, run};
#[cfg(all(unix, feature = "remote"))]
pub(crate) use self::trouble::without_model_trouble;
