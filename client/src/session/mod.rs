//! Sessions: what they are told, the turns in them, and what a turn comes to.

mod inbox;
mod outcome;
mod prompt;
mod table;
mod turn;

pub use self::inbox::{Answered, Event, Gap};
pub(crate) use self::inbox::{Inbox, TurnState};
pub use self::outcome::Outcome;
pub(crate) use self::outcome::{Joint, separator};
pub use self::prompt::Prompt;
pub use self::table::Missed;
pub(crate) use self::table::Sessions;
pub use self::turn::Turn;
