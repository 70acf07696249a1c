//! How much of a message is known well enough to be shown.
//!
//! What a response holds is known by its request, so requests are remembered until they are
//! answered; a bounded number, and the answer to one that was not remembered shows nothing.

use std::collections::HashMap;

use super::Side;
use crate::jsonrpc::Incoming;
use crate::runtime::{Method, Notification};
use crate::v1::methods;

/// Requests remembered at once.
const MAX_OPEN: usize = 10_000;

/// What the payload of a message may show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    /// The members that say what it is about, wherever they stand.
    Known,
    /// This member, and of the others only their shape.
    Only(&'static str),
    /// Only its shape.
    Nothing,
}

/// The methods whose payload the schema describes.
pub(super) const KNOWN: [&str; 25] = [
    methods::Initialize::NAME,
    methods::Authenticate::NAME,
    methods::Logout::NAME,
    methods::NewSession::NAME,
    methods::LoadSession::NAME,
    methods::ListSessions::NAME,
    methods::DeleteSession::NAME,
    methods::ResumeSession::NAME,
    methods::CloseSession::NAME,
    methods::SetSessionMode::NAME,
    methods::SetSessionConfigOption::NAME,
    methods::Prompt::NAME,
    methods::Cancel::NAME,
    methods::SessionUpdate::NAME,
    methods::RequestPermission::NAME,
    methods::ReadTextFile::NAME,
    methods::WriteTextFile::NAME,
    methods::CreateTerminal::NAME,
    methods::TerminalOutput::NAME,
    methods::ReleaseTerminal::NAME,
    methods::WaitForTerminalExit::NAME,
    methods::KillTerminal::NAME,
    methods::CreateElicitation::NAME,
    methods::CompleteElicitation::NAME,
    methods::CancelRequest::NAME,
];

/// What was asked and not yet answered.
#[derive(Debug, Default)]
pub(super) struct Policies {
    open: HashMap<(Side, Box<str>), Policy>,
}

impl Policies {
    /// What may be shown of the payload of a message that `from` wrote.
    pub(super) fn of(&mut self, from: Side, message: &Incoming<'_>) -> Policy {
        match message {
            Incoming::Request { id, method, .. } => {
                if self.open.len() < MAX_OPEN {
                    self.open.insert((from, id.get().into()), result_of(method));
                }
                params_of(method)
            }
            Incoming::Notification { method, .. } => params_of(method),
            Incoming::Response { id, .. } => {
                let asked = self.open.remove(&(from.other(), id.get().into()));
                asked.unwrap_or(Policy::Nothing)
            }
            Incoming::Complaint { .. } | Incoming::Invalid { .. } => Policy::Nothing,
        }
    }
}

fn params_of(method: &str) -> Policy {
    if method == methods::Authenticate::NAME {
        Policy::Only("methodId")
    } else if KNOWN.contains(&method) {
        Policy::Known
    } else {
        Policy::Nothing
    }
}

fn result_of(method: &str) -> Policy {
    if method == methods::CreateElicitation::NAME {
        Policy::Only("action")
    } else if KNOWN.contains(&method) {
        Policy::Known
    } else {
        Policy::Nothing
    }
}
