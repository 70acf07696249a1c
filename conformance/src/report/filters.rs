//! The filters of a page: checkboxes that hide rows by style alone, without a script.
//!
//! In a group without a mark nothing is hidden, else what has no mark. A browser that does not know
//! the selector `:has` shows all rows.

use std::fmt::Write as _;

use super::escape::html;
use super::{Document, Entry, Outcome};
use crate::requirements::Tier;

/// A group of checkboxes.
struct Group {
    name: &'static str,
    /// Labels, each with the number of its requirements.
    choices: Vec<(String, usize)>,
}

/// The filters of a report.
pub(super) struct Filters {
    groups: [Group; 3],
    /// What stands in each area: marks of the outcomes, and of the tiers.
    areas: Vec<[Vec<usize>; 2]>,
}

const OUTCOMES: [Outcome; 6] = [
    Outcome::Fail,
    Outcome::Pass,
    Outcome::Inconclusive,
    Outcome::Blocked,
    Outcome::Skip,
    Outcome::Excluded,
];

impl Filters {
    /// The filters for the requirements of a report.
    pub(super) fn of(report: &Document) -> Self {
        let count = |is_wanted: &dyn Fn(&Entry) -> bool| {
            let entries = report.requirements.iter();
            entries.filter(|entry| is_wanted(entry)).count()
        };
        let outcomes = OUTCOMES.map(|outcome| {
            let count = count(&|entry| entry.verdict == outcome);
            (outcome.as_str().to_owned(), count)
        });
        let tiers = Tier::ALL.map(|tier| {
            let count = count(&|entry| entry.tier == tier);
            (tier.as_str().to_owned(), count)
        });
        let areas = report.areas();
        let names = areas.iter();
        let names = names.map(|(area, entries)| ((*area).to_owned(), entries.len()));
        let held = areas.iter().map(|(_, entries)| {
            let marks = entries.iter().map(|entry| marks(entry));
            let (mut outcomes, mut tiers): (Vec<_>, Vec<_>) = marks.unzip();
            for marks in [&mut outcomes, &mut tiers] {
                marks.sort_unstable();
                marks.dedup();
            }
            [outcomes, tiers]
        });
        let group = |name, choices| Group { name, choices };
        Self {
            areas: held.collect(),
            groups: [
                group("outcome", outcomes.to_vec()),
                group("tier", tiers.to_vec()),
                group("area", names.collect()),
            ],
        }
    }

    /// The classes by which a requirement is hidden.
    pub(super) fn classes(&self, entry: &Entry) -> String {
        let (outcome, tier) = marks(entry);
        let area = self.area(&entry.area);
        format!("outcome-{outcome} tier-{tier} {area}")
    }

    /// The class by which an area is hidden.
    pub(super) fn area(&self, name: &str) -> String {
        let [.., areas] = &self.groups;
        let place = areas.choices.iter().position(|(area, _)| area == name);
        format!("area-{}", place.unwrap_or_default())
    }

    /// The checkboxes.
    pub(super) fn form(&self) -> String {
        let mut out = String::from("<form class=\"filters\" aria-label=\"filter requirements\">\n");
        for group in &self.groups {
            let name = group.name;
            // Writing to a string does not fail.
            let _ = write!(out, "<fieldset id=\"by-{name}\"><legend>{name}</legend>");
            for (index, (label, count)) in group.choices.iter().enumerate() {
                if *count > 0 {
                    let label = html(label);
                    let _ = write!(
                        out,
                        "<label><input type=\"checkbox\" id=\"by-{name}-{index}\"> {label} \
                         <span class=\"dim\">{count}</span></label>"
                    );
                }
            }
            out.push_str("</fieldset>\n");
        }
        out.push_str("<button type=\"reset\">Show all</button>\n</form>\n");
        out
    }

    /// The rules that hide; no text of the report stands in them.
    pub(super) fn style(&self) -> String {
        let mut out = String::new();
        for group in &self.groups {
            let name = group.name;
            for (index, (_, count)) in group.choices.iter().enumerate() {
                if *count > 0 {
                    let _ = writeln!(
                        out,
                        "main:has(#by-{name} :checked):not(:has(#by-{name}-{index}:checked)) \
                         .{name}-{index} {{ display: none; }}"
                    );
                }
            }
        }
        // An area goes when all its rows do.
        for (area, held) in self.areas.iter().enumerate() {
            for (name, marks) in ["outcome", "tier"].into_iter().zip(held) {
                let marks = marks
                    .iter()
                    .map(|mark| format!("#by-{name}-{mark}:checked"));
                let marks = marks.collect::<Vec<_>>().join(", ");
                let _ = writeln!(
                    out,
                    "main:has(#by-{name} :checked):not(:has({marks})) \
                     .whole-area.area-{area} {{ display: none; }}"
                );
            }
        }
        out
    }
}

/// The places of an outcome and a tier among the choices.
fn marks(entry: &Entry) -> (usize, usize) {
    let outcome = OUTCOMES.iter().position(|known| *known == entry.verdict);
    let tier = Tier::ALL.iter().position(|known| *known == entry.tier);
    (outcome.unwrap_or_default(), tier.unwrap_or_default())
}
