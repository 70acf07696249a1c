//! Which rules apply to a message.
//!
//! The rules for a response are those of its request's method. Open requests are remembered,
//! a bounded number of them; a response to any other request shows only its form.

use std::collections::HashMap;

use super::Side;
use super::place::Place;
use super::rules::{Rules, Visible};
use crate::jsonrpc::Incoming;

/// Requests remembered at once.
const MAX_OPEN: usize = 10_000;

/// What is shown of the params or the result of a message.
#[derive(Debug, Clone)]
pub(super) enum Policy {
    /// As the method's row says.
    Method(Visible, Place),
    /// Only the form.
    Nothing,
}

/// The policies of a connection's messages.
#[derive(Debug, Default)]
pub(super) struct Policies {
    rules: Rules,
    open: HashMap<(Side, Box<str>), Policy>,
}

impl Policies {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            open: HashMap::new(),
        }
    }

    pub(super) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The policy for the params or the result of a message that `from` wrote.
    pub(super) fn of(&mut self, from: Side, message: &Incoming<'_>) -> Policy {
        match message {
            Incoming::Request { id, method, .. } => {
                let (params, result) = self.of_method(method);
                if self.open.len() < MAX_OPEN {
                    self.open.insert((from, id.get().into()), result);
                }
                params
            }
            Incoming::Notification { method, .. } => self.of_method(method).0,
            Incoming::Response { id, .. } => {
                let policy = self.open.remove(&(from.other(), id.get().into()));
                policy.unwrap_or(Policy::Nothing)
            }
            Incoming::UncorrelatedError { .. } | Incoming::Invalid { .. } => Policy::Nothing,
        }
    }

    /// The policies for the params and the result of a method.
    fn of_method(&self, method: &str) -> (Policy, Policy) {
        match self.rules.method(method) {
            Some([params, result]) => (
                Policy::Method(params.0, params.1),
                Policy::Method(result.0, result.1),
            ),
            None => (Policy::Nothing, Policy::Nothing),
        }
    }
}
