//! Sessions: events, their readers, turns and outcomes.

mod calls;
mod children;
mod event;
mod events;
mod inbox;
mod live;
mod outcome;
mod prompt;
mod reader;
mod settings;
mod table;
mod turn;
mod turn_state;
mod weight;

pub use self::calls::Calls;
pub use self::children::{
    ANNOUNCEMENT, Announced, ChildInfo, ChildUpdate, SessionTree, announced_child,
};
pub(crate) use self::event::Origin;
pub use self::event::{Answered, Event, Gap, Phase, SessionEvent};
pub use self::events::Events;
pub(crate) use self::inbox::{Inbox, ReaderTimeout, Rest};
pub use self::live::{ChildConversations, ConversationStep, LiveConversation};
pub use self::outcome::separator;
pub use self::outcome::{Outcome, TokenUsage};
pub use self::prompt::Prompt;
pub use self::settings::{ConfigValue, SessionSettings};
pub(crate) use self::settings::{OpenedState, set_opened};
pub(crate) use self::table::{Receiver, Sessions};
pub use self::turn::Turn;
pub(crate) use self::turn_state::{Signal, TurnState};
