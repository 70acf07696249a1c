//! The changes between two documents, and whom they break.
//!
//! Descriptions are not compared, only the wire format. A change is *breaking for agents*
//! when an agent that was written for the old document may fail with a client that was
//! written for the new one, and likewise for clients. That follows from the direction
//! of a value: new values break receivers, removed values break senders. What a peer must ask for with a capability is not
//! visible in a schema, so new variants of a closed union count as breaking.
//!
//! - `flow`: who sends which definition;
//! - `compare`: two schemas, change by change, over what `shape` says of each.

mod compare;
mod flow;
mod shape;

use acp_schema::{Document, Method, Protocol, Side};

use self::compare::Comparison;
use self::flow::Flow;
use crate::Error;

/// One difference between two documents.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The method, or the definition with the path inside it.
    pub at: String,
    /// The change.
    pub what: String,
    /// Whether the change breaks agents of the old document.
    pub breaks_agents: bool,
    /// Whether the change breaks clients of the old document.
    pub breaks_clients: bool,
}

/// Compares two documents: first their methods, then their definitions, each in the
/// order of the documents.
///
/// # Errors
/// When the method table of a document is not complete, or a reference leads nowhere.
pub fn diff(old: &Document, new: &Document) -> Result<Vec<Change>, Error> {
    let protocols = [Protocol::from_document(old)?, Protocol::from_document(new)?];
    let [before, after] = &protocols;
    let flow = Flow::new([(old, before), (new, after)]);
    let mut comparison = Comparison::new(old, new, &flow);
    for method in before.methods() {
        match form(after, method) {
            Some(kept) => comparison.method(method, kept),
            None => comparison.changes.push(removed(method)),
        }
    }
    for method in after.methods() {
        if form(before, method).is_none() {
            comparison.changes.push(change(method, "added"));
        }
    }
    for (name, _) in old.defs() {
        if new.def(name).is_some() {
            comparison.pair(name, name);
        }
    }
    Ok(comparison.finish())
}

/// The same form of the same method in another table.
fn form<'a>(protocol: &'a Protocol, method: &Method) -> Option<&'a Method> {
    if method.kind.is_request() {
        protocol.request(method.side, &method.name)
    } else {
        protocol.notification(method.side, &method.name)
    }
}

fn change(method: &Method, what: &str) -> Change {
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
        breaks_agents: false,
        breaks_clients: false,
    }
}

/// A removed method breaks its callers.
fn removed(method: &Method) -> Change {
    Change {
        breaks_agents: method.side != Side::AGENT,
        breaks_clients: method.side != Side::CLIENT,
        ..change(method, "removed")
    }
}

#[cfg(test)]
mod tests;
