//! What the other crates of this project use beside the API. It changes without notice.

pub use crate::ids::{connection_id, session_id};
pub use crate::log_repeated;
pub use crate::repeated::Repeated;

/// The environment variable with the token of `acp-server serve`. Processes that an agent starts do
/// not inherit it.
pub const TOKEN_VARIABLE: &str = "ACP_SERVER_TOKEN";

pub mod clock {
    //! The time of day as the protocol writes it.

    pub use crate::clock::{jittered, milliseconds, now, system_time, text, text_of};
}

pub mod raw_object {
    //! JSON objects as text.

    pub use crate::raw_object::{RawObject, json_text};
}

pub mod connection {
    //! What endpoints know of a client.

    pub use crate::connection::{
        Gate, RESTARTED, Role, Subscription, answer, check, check_login, elicitation_needs,
    };
    #[cfg(feature = "unstable")]
    pub use crate::connection::{ProvidedServer, Subscribed};
}

pub mod event {
    //! Events as text.

    pub use crate::event::{RawUpdate, split_params, sum};
    pub use crate::turn::Role as Speaker;
}

pub mod server {
    //! What a server tells endpoints.

    pub use crate::server::DeletionObserver;
}

pub mod store {
    //! What stores share that keep a row per commit.

    pub use crate::store::page::PageBuilder;
}

pub mod turn {
    //! What a turn has for handlers that pass messages on.

    pub use crate::turn::OfferedInput;
}

pub mod session {
    //! What a session has for endpoints and handlers that pass messages on.

    pub use crate::session::{
        Answerer, Ask, Attached, LONGEST_NAME, ReceivedText, Refusal, Reply, TurnResult,
        WeakSession, current_value, is_name,
    };

    /// Returns the number of the last event, which may still be lost with a commit that fails.
    #[must_use]
    pub fn last_appended(session: &crate::Session) -> u64 {
        session.last_appended()
    }
}
