//! What is tested, as a page of Markdown for each area, made from the table.

use serde::Serialize;

use super::list::{Checked, Listed};
use super::render::render;
use crate::Result;
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

/// An area and its requirements.
#[derive(Debug, Serialize)]
struct Area {
    name: &'static str,
    side: Party,
    rows: Vec<Row>,
}

/// A requirement in the versions that have it, at least one.
type Versions = Vec<(Version, Listed)>;

/// A requirement.
#[derive(Debug, Serialize)]
struct Row {
    id: &'static str,
    /// Its tier in the first version that has it.
    tier: Tier,
    /// Whether it has the same tier in all versions.
    is_uniform: bool,
    is_unchecked: bool,
    versions: Vec<Sentence>,
    /// Texts of the tables with what precedes them.
    paragraphs: Vec<(String, &'static str)>,
    /// The scenarios that a client is played, with the version.
    scenarios: Vec<(&'static str, &'static str)>,
    /// The mutants that break it, those that break few others first.
    mutants: Vec<&'static str>,
}

/// What a requirement is founded on in a version.
#[derive(Debug, Serialize)]
struct Sentence {
    version: &'static str,
    tier: Tier,
    quote: &'static str,
    cite: String,
}

/// What the page that lists the others is given.
#[derive(Debug, Serialize)]
struct Index<'a> {
    areas: &'a [Area],
    /// How many sentences of the specification are judged, as a table.
    sentences: String,
}

/// The pages of all areas of both versions, and `README.md`, which lists them. A build without the
/// feature `remote` lacks those of the remote transport.
///
/// # Errors
/// When the table does not fit a template.
pub fn area_pages() -> Result<Vec<AreaPage>> {
    let areas = areas();
    let sentences = Coverage::of(&PINNED).table().trim_end().to_owned();
    let index = Index {
        areas: &areas,
        sentences,
    };
    let mut pages = vec![AreaPage {
        file: "README.md".to_owned(),
        text: render("areas.md", index)?,
    }];
    for area in &areas {
        pages.push(AreaPage {
            file: format!("{}.md", area.name),
            text: render("area.md", area)?,
        });
    }
    Ok(pages)
}

fn areas() -> Vec<Area> {
    let mut areas: Vec<(&str, Party, Vec<Versions>)> = Vec::new();
    for version in [Version::V1, Version::V2] {
        for listed in Listed::of(version) {
            let name = listed.page();
            let place = areas.iter().position(|(area, ..)| *area == name);
            let place = place.unwrap_or_else(|| {
                areas.push((name, listed.side, Vec::new()));
                areas.len() - 1
            });
            let Some((.., rows)) = areas.get_mut(place) else {
                continue;
            };
            let is_same = |row: &&mut Versions| row.iter().any(|(_, known)| known.id == listed.id);
            match rows.iter_mut().find(is_same) {
                Some(row) => row.push((version, listed)),
                None => rows.push(vec![(version, listed)]),
            }
        }
    }
    // Those of clients follow, and areas that only version 2 has stand among the others.
    areas.sort_by_key(|(_, side, _)| *side != Party::Agent);
    let areas = areas.into_iter().map(|(name, side, rows)| Area {
        name,
        side,
        rows: rows.iter().filter_map(|row| Row::of(row)).collect(),
    });
    areas.collect()
}

impl Row {
    /// A requirement in the versions that have it.
    fn of(row: &[(Version, Listed)]) -> Option<Self> {
        let (_, first) = row.first()?;
        let sentences = row.iter().map(|(version, listed)| Sentence {
            version: version.as_str(),
            tier: listed.tier,
            quote: listed.quote,
            cite: listed.cite.clone(),
        });
        let scenarios = row
            .iter()
            .filter_map(|(version, listed)| match listed.checked {
                Checked::After(scenario) => Some((scenario, version.as_str())),
                _ => None,
            });
        let because = each(row, |listed| Some(("", listed.because?)));
        let test = each(row, |listed| Some(test(listed)));
        Some(Self {
            id: first.id,
            tier: first.tier,
            is_uniform: row.iter().all(|(_, listed)| listed.tier == first.tier),
            is_unchecked: matches!(first.checked, Checked::Not(_)),
            versions: sentences.collect(),
            paragraphs: [because, test, each(row, not_exercised)].concat(),
            scenarios: scenarios.collect(),
            mutants: mutants(first.id),
        })
    }
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

/// A paragraph for each version, one for all if it is the same.
fn each(
    row: &[(Version, Listed)],
    of: impl Fn(&Listed) -> Option<Labelled>,
) -> Vec<(String, &'static str)> {
    let first = row.first().and_then(|(_, listed)| of(listed));
    let is_uniform = row.iter().all(|(_, listed)| of(listed) == first);
    let rows = row.iter().take(if is_uniform { 1 } else { row.len() });
    let paragraphs = rows.filter_map(|(version, listed)| {
        let (label, text) = of(listed)?;
        let version = version.as_str();
        let label = match (label, is_uniform) {
            ("", true) => String::new(),
            ("", false) => format!("v{version}: "),
            (label, true) => format!("{label}: "),
            (label, false) => format!("{label} in v{version}: "),
        };
        Some((label, text))
    });
    paragraphs.collect()
}

fn mutants(id: &str) -> Vec<&'static str> {
    let breaking = crate::mutants::all().filter(|mutant| mutant.breaks.contains(&id));
    let mut breaking: Vec<_> = breaking.collect();
    breaking.sort_by_key(|mutant| (mutant.breaks.len(), mutant.name));
    breaking.iter().map(|mutant| mutant.name).collect()
}

#[cfg(all(test, unix, feature = "remote"))]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::report::escape::prose;

    #[test]
    fn the_pages_of_the_documentation_are_current() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/requirements");
        let pages = area_pages().unwrap();
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
        let pages = area_pages().unwrap();
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
        assert_eq!(mutants("no.such"), [""; 0]);
        assert!(mutants("session-load.goes-on").contains(&"loaded-is-read-only"));
        let rows = Listed::of(Version::V1);
        let most = rows.iter().max_by_key(|row| mutants(row.id).len()).unwrap();
        let more = mutants(most.id).len() - 5;
        let pages = area_pages().unwrap();
        let heading = format!("\n## {}\n", most.id);
        let mut sections = pages
            .iter()
            .filter_map(|page| page.text.split_once(&heading));
        let (_, section) = sections.next().unwrap();
        let line = section
            .lines()
            .find(|line| line.starts_with("Mutants: "))
            .unwrap();
        assert!(line.ends_with(&format!(" and {more} more")), "{line}");
        assert_eq!(line.matches('`').count(), 10, "{line}");
    }
}
