//! Who sends the values of which definition.

use std::collections::BTreeMap;

use acp_schema::{Document, Kind, Protocol, Side};
use serde_json::Value;

/// The sides that send a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Senders {
    pub(super) agents: bool,
    pub(super) clients: bool,
}

impl Senders {
    pub(super) const BOTH: Self = Self {
        agents: true,
        clients: true,
    };

    fn and(self, other: Self) -> Self {
        Self {
            agents: self.agents || other.agents,
            clients: self.clients || other.clients,
        }
    }

    /// Who calls a method of `side`, and who answers it.
    fn of(side: Side) -> [Self; 2] {
        let agents = Self {
            agents: true,
            clients: false,
        };
        let clients = Self {
            agents: false,
            clients: true,
        };
        match side {
            Side::AGENT => [clients, agents],
            Side::CLIENT => [agents, clients],
            // A proxy is an agent to one neighbour and a client to the other. Roles of other
            // protocols are not told apart.
            _ => [Self::BOTH, Self::BOTH],
        }
    }
}

/// Senders by definition, of both documents together.
#[derive(Debug)]
pub(super) struct Flow(BTreeMap<String, Senders>);

impl Flow {
    pub(super) fn new(documents: [(&Document, &Protocol); 2]) -> Self {
        let mut flow = Self(BTreeMap::new());
        for (document, protocol) in documents {
            for method in protocol.methods() {
                let [callers, answerers] = Senders::of(method.side);
                match &method.kind {
                    Kind::Request { params, result } => {
                        flow.send(document, params, callers);
                        flow.send(document, result, answerers);
                    }
                    Kind::Notification { params } => flow.send(document, params, callers),
                }
            }
        }
        flow
    }

    /// Who sends the definition `name`; both, if no method reaches it.
    pub(super) fn senders(&self, name: &str) -> Senders {
        self.0.get(name).copied().unwrap_or(Senders::BOTH)
    }

    /// Notes senders of a definition and of all that it refers to.
    fn send(&mut self, document: &Document, name: &str, senders: Senders) {
        let mut waiting = vec![name.to_owned()];
        while let Some(name) = waiting.pop() {
            let Some(schema) = document.def(&name) else {
                continue;
            };
            let known = self.0.get(&name).copied();
            let all = known.unwrap_or_default().and(senders);
            if known != Some(all) {
                self.0.insert(name, all);
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
