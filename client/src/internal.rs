//! What the command of this project uses beside the API. It changes without notice.

pub use crate::client::{Request, Response};
pub use crate::guard::{Effect, Ended, is_mode, tool_question};
pub use crate::hooks::check_field;
pub use crate::idempotency::prompt_to_v2;
pub use crate::idempotency::{honors_keys, key_of, with_key};
pub use crate::permission::{Shown, as_diff};
pub use crate::process::memory::{ProcessTree, resident_bytes};
pub use crate::process::sweep::VARIABLE as MARKS;
pub use crate::process::sweep::{kill_marked, with_mark};
pub use crate::process::tokens::withhold;
pub use crate::process::why_not;
pub use crate::prompt_id::new as new_prompt_id;
pub use crate::reconnect::envelope::{Envelope, Kind, attachment, login};
pub use crate::reconnect::message;
pub use crate::reconnect::{
    Backoff, Bridge, Closed, Connector, GAP, LinkReceiver, LinkSender, RESTARTED, Received,
    SessionGap, is_lost_request,
};
#[cfg(feature = "remote")]
pub use crate::remote::{PersistentConnection, download_client, http_client};
pub use crate::session::{ANNOUNCEMENT, Announced, Calls, SessionTree, announced_child, separator};
pub use crate::steering::{SteeringMethod, is_steered};
pub use crate::v2::{Converter, End, Usage, Work, requests};
