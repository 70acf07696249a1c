//! The rules, applied to a connection while it goes on.

use std::sync::LazyLock;

use super::{Fault, Look, Said, State, View};
use crate::clients;
use crate::requirements::{self, Check, Tier};
use crate::wire::{Finding, Kind, Level, Party, Rule, Version};

/// A rule with what a finding says of it.
struct Watched {
    id: &'static str,
    level: Level,
    by: Party,
    look: Look,
}

/// The rules about messages and ends of version 1; findings of the wire are found anyway.
static FIRST: LazyLock<Vec<Watched>> = LazyLock::new(|| {
    let clients = of_clients(Version::V1, clients::live::RULES);
    of_agents(Version::V1).chain(clients).collect()
});

/// The same of version 2.
static SECOND: LazyLock<Vec<Watched>> = LazyLock::new(|| {
    let clients = of_clients(Version::V2, clients::live::SECOND);
    of_agents(Version::V2).chain(clients).collect()
});

fn rules(version: Version) -> &'static [Watched] {
    match version {
        Version::V1 => &FIRST,
        Version::V2 => &SECOND,
    }
}

fn of_clients(
    version: Version,
    rules: &'static [(&'static str, Look)],
) -> impl Iterator<Item = Watched> {
    rules.iter().filter_map(move |(id, look)| {
        let row = clients::of(version).find(|row| row.id == *id)?;
        Some(Watched {
            id: row.id,
            // A client in a recording is often a test that probes its agent.
            level: match row.tier {
                Tier::Must | Tier::Capability | Tier::Derived => Level::Warning,
                Tier::Should | Tier::Info => Level::Note,
            },
            by: Party::Client,
            look: *look,
        })
    })
}

fn of_agents(version: Version) -> impl Iterator<Item = Watched> {
    let rows = requirements::of(version).filter_map(|(_, row)| match row.check {
        Check::Watch { look, .. } => Some(Watched {
            id: row.id,
            level: level(row.tier),
            by: row.side,
            look,
        }),
        Check::Run(_) | Check::Excluded(_) => None,
    });
    rows.filter(|rule| !matches!(rule.look, Look::Findings(..)))
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
            let is_text = view.is_text();
            for rule in rules(version) {
                if let Some(look) = rule.look.at_message(&view)
                    && let Err(fault) = look(&view)
                {
                    let method = Some(view.method.to_owned()).filter(|method| !method.is_empty());
                    each(rule.finding(said.place, method, fault));
                }
            }
            if is_text {
                return;
            }
        }
        state.take(said);
    }

    /// Messages were lost, or could not be read.
    pub(crate) fn lose(&mut self) {
        self.state.get_or_insert_with(State::partial).lose();
    }

    /// The connection has ended. What was not done may have been cut off, so that
    /// nothing found now is an error.
    pub(crate) fn finish(self, each: &mut dyn FnMut(Finding)) {
        let Some(state) = self.state else { return };
        for rule in rules(self.version) {
            if let Look::End(look) = rule.look
                && let Err(fault) = look(&state)
            {
                let mut finding = rule.finding(0, None, fault);
                finding.level = finding.level.min(Level::Warning);
                each(finding);
            }
        }
    }
}

impl Watched {
    fn finding(&self, place: u64, method: Option<String>, fault: Fault) -> Finding {
        Finding {
            place: fault.place.unwrap_or(place),
            level: self.level,
            rule: Rule::Requirement(self.id),
            by: Some(self.by),
            method,
            pointer: String::new(),
            message: fault.reason,
        }
    }
}

fn level(tier: Tier) -> Level {
    match tier {
        Tier::Must | Tier::Capability => Level::Error,
        Tier::Derived | Tier::Should => Level::Warning,
        Tier::Info => Level::Note,
    }
}
