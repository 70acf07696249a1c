//! What is tested, as a page of Markdown for each area, made from the table.

use std::fmt::Write as _;

use super::escape::markdown;
use super::list::{Checked, Listed};
use crate::requirements::Tier;
use crate::specification::{Coverage, PINNED};
use crate::wire::{Party, Version};

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AreaPage {
    /// The name of its file.
    pub file: String,
    /// Its text.
    pub text: String,
}

/// A requirement in the versions that have it, at least one.
type Row = Vec<(Version, Listed)>;

/// An area and its requirements.
struct Area {
    name: &'static str,
    side: Party,
    rows: Vec<Row>,
}

/// The pages of all areas of both versions, and `README.md`, which lists them. A build without the
/// feature `remote` lacks those of the remote transport.
#[must_use]
pub fn area_pages() -> Vec<AreaPage> {
    let areas = areas();
    let index = AreaPage {
        file: "README.md".to_owned(),
        text: index(&areas),
    };
    let pages = areas.iter().map(|area| AreaPage {
        file: format!("{}.md", area.name),
        text: page(area),
    });
    std::iter::once(index).chain(pages).collect()
}

fn areas() -> Vec<Area> {
    let mut areas: Vec<Area> = Vec::new();
    for version in [Version::V1, Version::V2] {
        for listed in Listed::of(version) {
            let name = listed.page();
            let place = areas.iter().position(|area| area.name == name);
            let place = place.unwrap_or_else(|| {
                let (side, rows) = (listed.side, Vec::new());
                areas.push(Area { name, side, rows });
                areas.len() - 1
            });
            let Some(Area { rows, .. }) = areas.get_mut(place) else {
                continue;
            };
            let is_same = |row: &&mut Row| row.iter().any(|(_, known)| known.id == listed.id);
            match rows.iter_mut().find(is_same) {
                Some(row) => row.push((version, listed)),
                None => rows.push(vec![(version, listed)]),
            }
        }
    }
    // Those of clients follow, and areas that only version 2 has stand among the others.
    areas.sort_by_key(|area| area.side != Party::Agent);
    areas
}

fn index(areas: &[Area]) -> String {
    let mut out = String::from(
        "# What is tested\n\n\
         The requirements of `acp-conformance`, by area. Written by\n\
         `acp-conformance list --pages docs/requirements` from the tables in\n\
         [conformance/requirements](../../conformance/requirements).\n\n\
         | area | of |",
    );
    // Writing to a string does not fail.
    for tier in Tier::ALL {
        let _ = write!(out, " {} |", tier.as_str());
    }
    out.push_str(" unchecked |\n|---|---|");
    out.push_str(&"--:|".repeat(Tier::ALL.len() + 1));
    out.push('\n');
    for area in areas {
        let Area { name, side, rows } = area;
        let _ = write!(out, "| [{name}]({name}.md) | {side}s |");
        let count = |is_wanted: &dyn Fn(&Listed) -> bool| {
            let rows = rows.iter().filter_map(|row| row.first());
            match rows.filter(|(_, row)| is_wanted(row)).count() {
                0 => "-".to_owned(),
                count => count.to_string(),
            }
        };
        for tier in Tier::ALL {
            let _ = write!(out, " {} |", count(&|row| row.tier == tier));
        }
        let unchecked = count(&|row| matches!(row.checked, Checked::Not(_)));
        let _ = writeln!(out, " {unchecked} |");
    }
    out.push_str(
        "\nA requirement of both versions is counted once, with its tier in v1. The tiers are explained in\n\
         [conformance/README.md](../../conformance/README.md).\n",
    );
    coverage(&mut out);
    out
}

/// How many sentences of the specification are judged.
fn coverage(out: &mut String) {
    out.push_str(
        "\n## Normative sentences\n\n\
         Sentences of the specification with MUST, SHALL, REQUIRED, SHOULD or RECOMMENDED, each counted once in a\n\
         source. A sentence is *decided* if a requirement of the tiers `must` and `capability` has a check for it,\n\
         *advised* if one of another tier has. It has *no check* if its requirement has none, and a *reason* if there\n\
         is no requirement: [uncovered.toml](../../conformance/requirements/uncovered.toml) has the reasons.\n\n",
    );
    out.push_str(&Coverage::of(&PINNED).table());
}

fn page(area: &Area) -> String {
    let Area { name, side, rows } = area;
    let mut out = format!(
        "# {name}\n\n\
         Requirements of {side}s, from [the table](../../conformance/requirements/{name}.toml).\n\
         Written by `acp-conformance list --pages docs/requirements`.\n"
    );
    for row in rows {
        requirement(&mut out, row);
    }
    out
}

fn requirement(out: &mut String, row: &Row) {
    let Some((_, first)) = row.first() else {
        return;
    };
    // Writing to a string does not fail.
    let _ = writeln!(out, "\n## {}\n", first.id);
    let is_uniform = row.iter().all(|(_, listed)| listed.tier == first.tier);
    let tiers = row.iter().map(|(version, listed)| {
        let (tier, version) = (listed.tier.as_str(), version.as_str());
        match is_uniform {
            true => format!("v{version}"),
            false => format!("`{tier}` in v{version}"),
        }
    });
    let tiers = tiers.collect::<Vec<_>>().join(", ");
    let _ = match is_uniform {
        true => writeln!(out, "`{}`: {tiers}", first.tier.as_str()),
        false => writeln!(out, "{tiers}"),
    };
    for (version, listed) in row {
        let (quote, cite) = (prose(listed.quote), &listed.cite);
        let version = version.as_str();
        let _ = writeln!(out, "\n> {quote} ([v{version}]({cite}))");
    }
    each(out, row, |listed| Some(("", listed.because?)));
    each(out, row, |listed| Some(test(listed)));
    each(out, row, not_exercised);
    scenarios(out, row);
    mutants(out, first.id);
}

/// A label and a text of the tables.
type Labelled = (&'static str, &'static str);

/// What the check does, or why there is none.
fn test(listed: &Listed) -> Labelled {
    match listed.checked {
        Checked::Not(reason) => ("Not checked", reason),
        _ => ("Test", listed.test.unwrap_or_default()),
    }
}

/// What was not seen when a rule about all messages is skipped.
fn not_exercised(listed: &Listed) -> Option<Labelled> {
    match listed.checked {
        Checked::Inspects(missing) => Some(("Skipped if not exercised", missing)),
        _ => None,
    }
}

/// The scenarios that a client is played.
fn scenarios(out: &mut String, row: &Row) {
    let scenarios = row.iter().filter_map(|(version, listed)| {
        let Checked::After(scenario) = listed.checked else {
            return None;
        };
        Some(match row.len() {
            1 => format!("`{scenario}`"),
            _ => format!("`{scenario}` in v{}", version.as_str()),
        })
    });
    let scenarios = scenarios.collect::<Vec<_>>().join(", ");
    if !scenarios.is_empty() {
        // Writing to a string does not fail.
        let _ = writeln!(out, "\nScenario: {scenarios}");
    }
}

/// How many mutants of a requirement are named.
const NAMED: usize = 5;

/// The mutants that break a requirement, those that break few others first.
fn mutants(out: &mut String, id: &str) {
    let breaking = crate::mutants::all().filter(|mutant| mutant.breaks.contains(&id));
    let mut breaking: Vec<_> = breaking.collect();
    breaking.sort_by_key(|mutant| (mutant.breaks.len(), mutant.name));
    let named = breaking.iter().take(NAMED);
    let named: Vec<_> = named.map(|mutant| format!("`{}`", mutant.name)).collect();
    let named = named.join(", ");
    // Writing to a string does not fail.
    let _ = match breaking.len() {
        0 => Ok(()),
        1..=NAMED => writeln!(out, "\nMutants: {named}"),
        count => writeln!(out, "\nMutants: {named} and {} more", count - NAMED),
    };
}

/// A paragraph for each version, one for all if it is the same.
fn each(out: &mut String, row: &Row, of: impl Fn(&Listed) -> Option<Labelled>) {
    let first = row.first().and_then(|(_, listed)| of(listed));
    let is_uniform = row.iter().all(|(_, listed)| of(listed) == first);
    for (version, listed) in row.iter().take(if is_uniform { 1 } else { row.len() }) {
        let Some((label, text)) = of(listed) else {
            continue;
        };
        let version = version.as_str();
        let label = match (label, is_uniform) {
            ("", true) => String::new(),
            ("", false) => format!("v{version}: "),
            (label, true) => format!("{label}: "),
            (label, false) => format!("{label} in v{version}: "),
        };
        let end = if text.ends_with(['.', '!', '?']) {
            ""
        } else {
            "."
        };
        // Writing to a string does not fail.
        let _ = writeln!(out, "\n{label}{}{end}", prose(text));
    }
}

/// Text of the tables, in which backticks stand around code.
fn prose(text: &str) -> String {
    // A sentence that was cut within code.
    if text.matches('`').count() % 2 == 1 {
        return markdown(text);
    }
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(place, part)| match place % 2 {
        0 => markdown(part),
        _ => format!("`{part}`"),
    });
    parts.collect()
}

#[cfg(all(test, unix, feature = "remote"))]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_pages_of_the_documentation_are_current() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/requirements");
        let pages = area_pages();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            for page in &pages {
                std::fs::write(folder.join(&page.file), &page.text).unwrap();
            }
        }
        for page in &pages {
            let found = std::fs::read_to_string(folder.join(&page.file)).unwrap_or_default();
            assert!(
                found == page.text,
                "docs/requirements/{} is stale: run with UPDATE_GOLDEN=1",
                page.file
            );
        }
        let files = std::fs::read_dir(&folder).unwrap();
        let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let expected: BTreeSet<_> = pages.into_iter().map(|page| page.file).collect();
        assert_eq!(files.collect::<BTreeSet<_>>(), expected);
    }

    #[test]
    fn every_requirement_has_a_section_with_its_sentence_and_its_check() {
        let pages = area_pages();
        for version in [Version::V1, Version::V2] {
            for listed in Listed::of(version) {
                let heading = format!("\n## {}\n", listed.id);
                let mut with = pages.iter().filter(|page| page.text.contains(&heading));
                let page = with.next().unwrap();
                assert!(with.next().is_none(), "{}", listed.id);
                let (_, section) = page.text.split_once(&heading).unwrap();
                let section = section.split("\n## ").next().unwrap();
                for what in [
                    prose(listed.quote),
                    format!("([v{}]({}))", version.as_str(), listed.cite),
                    prose(test(&listed).1),
                    prose(not_exercised(&listed).unwrap_or_default().1),
                    prose(listed.because.unwrap_or_default()),
                ] {
                    assert!(section.contains(&what), "{} lacks {what}", listed.id);
                }
            }
        }
    }

    #[test]
    fn the_mutants_of_a_requirement_are_named_up_to_a_limit() {
        let written = |id: &str| {
            let mut out = String::new();
            mutants(&mut out, id);
            out
        };
        assert_eq!(written("no.such"), "");
        let goes_on = written("session-load.goes-on");
        assert!(goes_on.contains("`loaded-is-read-only`"), "{goes_on}");
        let count = |id: &str| {
            let breaking = crate::mutants::all().filter(|mutant| mutant.breaks.contains(&id));
            breaking.count()
        };
        let rows = Listed::of(Version::V1);
        let (most, id) = rows
            .iter()
            .map(|row| (count(row.id), row.id))
            .max()
            .unwrap();
        assert!(most > NAMED, "{id} has {most}");
        let text = written(id);
        assert!(
            text.ends_with(&format!(" and {} more\n", most - NAMED)),
            "{text}"
        );
        assert_eq!(text.matches('`').count(), 2 * NAMED, "{text}");
    }
}
