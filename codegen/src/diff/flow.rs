//! Which roles send the values of which definition.

use std::collections::{BTreeMap, BTreeSet};

use acp_schema::{Document, Kind, Protocol, Side};
use serde_json::Value;

/// Roles of the documents.
pub(super) type Roles = BTreeSet<Side>;

/// Senders by definition, of both documents together.
#[derive(Debug)]
pub(super) struct Flow {
    senders: BTreeMap<String, Roles>,
    roles: Roles,
    /// The role at the other end of a connection.
    peers: BTreeMap<Side, Side>,
}

impl Flow {
    pub(super) fn new(documents: [(&Document, &Protocol); 2]) -> Self {
        let mut flow = Self {
            senders: BTreeMap::new(),
            roles: Roles::new(),
            peers: BTreeMap::new(),
        };
        for (_, protocol) in documents {
            flow.roles.extend(protocol.roles());
            let peers = protocol.roles().iter();
            flow.peers
                .extend(peers.filter_map(|role| Some((*role, protocol.peer(*role)?))));
        }
        if flow.roles.is_empty() {
            flow.roles.insert(Side::BOTH);
        }
        for (document, protocol) in documents {
            for method in protocol.methods() {
                let callers = flow.callers(method.side);
                match &method.kind {
                    Kind::Request { params, result } => {
                        let responders = flow.handlers(method.side);
                        flow.send(document, params, &callers);
                        flow.send(document, result, &responders);
                    }
                    Kind::Notification { params } => flow.send(document, params, &callers),
                }
            }
        }
        flow
    }

    /// Returns the roles of both documents; `both` when they name none.
    pub(super) fn roles(&self) -> &Roles {
        &self.roles
    }

    /// Returns the roles that call the methods of a side.
    pub(super) fn callers(&self, side: Side) -> Roles {
        self.receivers(&self.handlers(side))
    }

    /// Returns the roles that handle the methods of a side. A proxy is each role to one of its
    /// neighbours.
    fn handlers(&self, side: Side) -> Roles {
        match side.is_role() {
            true => Roles::from([side]),
            false => self.roles.clone(),
        }
    }

    /// Returns the roles that receive what `senders` send. A role that is the only one of its
    /// documents stands at both ends.
    pub(super) fn receivers(&self, senders: &Roles) -> Roles {
        let peer = |role: &Side| *self.peers.get(role).unwrap_or(role);
        senders.iter().map(peer).collect()
    }

    /// Returns the roles that send the definition `name`; all, if no method refers to it.
    pub(super) fn senders(&self, name: &str) -> Roles {
        self.senders.get(name).unwrap_or(&self.roles).clone()
    }

    /// Records senders of a definition and of all definitions that it refers to.
    fn send(&mut self, document: &Document, name: &str, senders: &Roles) {
        let mut waiting = vec![name.to_owned()];
        while let Some(name) = waiting.pop() {
            let Some(schema) = document.def(&name) else {
                continue;
            };
            let known = self.senders.entry(name).or_default();
            if !senders.is_subset(known) {
                known.extend(senders);
                references(schema, &mut waiting);
            }
        }
    }
}

fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members {
                match value.as_str().and_then(|to| to.strip_prefix("#/$defs/")) {
                    Some(name) if key == "$ref" => found.push(name.to_owned()),
                    _ => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}
