//! The changes between two documents, and the roles that they break.
//!
//! Compares the wire format, not descriptions. A change is *breaking for a role* when an
//! implementation of that role for the old document may fail with a peer for the new one. That
//! follows from the direction of a value: new values break receivers, removed values break senders.
//! A schema does not show which values need a capability of the peer, so new variants of a closed
//! union count as breaking.
//!
//! - `flow`: the roles that send a definition;
//! - `compare`: two schemas, change by change, with the facts of each from `shape`.

mod compare;
mod flow;
mod shape;

use acp_schema::{Document, Method, Protocol, Side};

use self::compare::Comparison;
use self::flow::{Flow, Roles};
use crate::Error;

/// One difference between two documents.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The method, or the definition with the path inside it.
    pub at: String,
    /// The change.
    pub what: String,
    /// The roles whose implementations for the old document break, in the order of their names.
    pub breaks: Vec<Side>,
}

/// The differences between two documents.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diff {
    /// The roles of both documents, in the order of their names; `both` when they name none.
    pub roles: Vec<Side>,
    /// First the methods, then the definitions, each in the order of the documents.
    pub changes: Vec<Change>,
}

/// Compares two documents.
///
/// # Errors
/// When the method table of a document is not complete, or a reference leads nowhere.
pub fn diff(old: &Document, new: &Document) -> Result<Diff, Error> {
    let protocols = [Protocol::from_document(old)?, Protocol::from_document(new)?];
    let [before, after] = &protocols;
    let flow = Flow::new([(old, before), (new, after)]);
    let mut comparison = Comparison::new(old, new, &flow);
    for method in before.methods() {
        match form(after, method) {
            Some(kept) => comparison.method(method, kept),
            None => {
                // A removed method breaks its callers.
                let callers = flow.callers(method.side);
                comparison.changes.push(change(method, "removed", callers));
            }
        }
    }
    for method in after.methods() {
        if form(before, method).is_none() {
            comparison
                .changes
                .push(change(method, "added", Roles::new()));
        }
    }
    for (name, _) in old.defs() {
        if new.def(name).is_some() {
            comparison.pair(name, name);
        }
    }
    let changes = comparison.finish();
    let roles = flow.roles().iter().copied().collect();
    Ok(Diff { roles, changes })
}

/// The same form of the same method in another table.
fn form<'a>(protocol: &'a Protocol, method: &Method) -> Option<&'a Method> {
    if method.kind.is_request() {
        protocol.request(method.side, &method.name)
    } else {
        protocol.notification(method.side, &method.name)
    }
}

fn change(method: &Method, what: &str, breaks: Roles) -> Change {
    let form = if method.kind.is_request() {
        "request"
    } else {
        "notification"
    };
    let to = match method.side {
        Side::PROTOCOL | Side::BOTH => "both sides".to_owned(),
        Side::PROXY => "proxies".to_owned(),
        role => format!("{role}s"),
    };
    Change {
        at: method.name.clone(),
        what: format!("{form} to {to} {what}"),
        breaks: breaks.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests;
