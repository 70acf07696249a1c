//! The rules, applied to a connection while it goes on.

use std::sync::LazyLock;

use crate::clients;
use crate::passive::{Rule, Said, State, View, Violation};
use crate::requirements::{self, Check};
use crate::wire::{Excuse, Finding, FindingKind, Kind, Party, Version};

/// A rule with what a finding says of it.
struct Watched {
    id: &'static str,
    by: Party,
    look: Rule,
}

/// The rules about messages and ends of version 1; findings of the wire are found anyway.
static V1: LazyLock<Vec<Watched>> = LazyLock::new(|| all(Version::V1));

/// The same of version 2.
static V2: LazyLock<Vec<Watched>> = LazyLock::new(|| all(Version::V2));

fn rules(version: Version) -> &'static [Watched] {
    match version {
        Version::V1 => &V1,
        Version::V2 => &V2,
    }
}

/// The requirements that the rules of a version belong to.
#[cfg(test)]
pub(super) fn ids(version: Version) -> impl Iterator<Item = &'static str> {
    rules(version).iter().map(|rule| rule.id)
}

fn all(version: Version) -> Vec<Watched> {
    let agents = requirements::of(version).filter_map(|(_, row)| match row.check {
        Check::Watch { look, .. } => Some((row.id, Party::Agent, look)),
        _ => None,
    });
    let also = requirements::live::rules(version).iter();
    let also = also.map(|(id, look)| (*id, Party::Agent, *look));
    let clients = clients::rules::of(version);
    let clients = clients.map(|(id, look, _)| (*id, Party::Client, *look));
    agents
        .chain(also)
        .chain(clients)
        .filter(|(_, _, look)| !matches!(look, Rule::Findings(_)))
        .map(|(id, by, look)| Watched { id, by, look })
        .collect()
}

/// A connection that is watched.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// `None` until the first message.
    state: Option<State>,
    /// The version that was spoken last.
    version: Version,
}

impl Live {
    /// Takes the next message, of this version of the protocol; `each` is given what is
    /// found in it.
    pub(crate) fn see(&mut self, version: Version, said: Said<'_>, each: &mut dyn FnMut(Finding)) {
        self.version = version;
        let state = self.state.get_or_insert_with(|| {
            let nothing = State::whole();
            match View::new(&nothing, said).calls(Party::Client, "initialize") {
                true => nothing,
                false => State::partial(),
            }
        });
        state.speak(version);
        if said.kind != Kind::Malformed {
            let view = View::new(state, said);
            let is_known = view.is_text() && !view.is_news();
            for rule in rules(version) {
                if let Some(look) = rule.look.at_message(&view)
                    && let Err(violation) = look(&view)
                {
                    let method = Some(view.method.to_owned()).filter(|method| !method.is_empty());
                    each(rule.finding(said.place, method, violation));
                }
            }
            if is_known {
                return;
            }
        }
        state.take(said);
    }

    /// Messages were lost, or could not be read.
    pub(crate) fn lose(&mut self) {
        self.state.get_or_insert_with(State::partial).lose();
    }

    /// The connection has ended. What was not done may have been cut off if it ended while
    /// something was to be answered.
    pub(crate) fn finish(self, each: &mut dyn FnMut(Finding)) {
        let Some(state) = self.state else { return };
        let mut open = [Party::Agent, Party::Client]
            .into_iter()
            .flat_map(|side| state.all_open(side));
        let excuse = open.next().map(|_| Excuse::CutOff);
        for rule in rules(self.version) {
            if let Rule::End(look) = rule.look
                && let Err(violation) = look(&state)
            {
                let mut finding = rule.finding(0, None, violation);
                finding.excuse = finding.excuse.or(excuse);
                each(finding);
            }
        }
    }
}

impl Watched {
    fn finding(&self, place: u64, method: Option<String>, violation: Violation) -> Finding {
        Finding {
            place: violation.place.unwrap_or(place),
            rule: FindingKind::Requirement(self.id),
            by: Some(self.by),
            method,
            pointer: violation.pointer,
            message: violation.reason,
            excuse: violation.excuse,
        }
    }
}
