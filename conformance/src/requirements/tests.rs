//! What the table must satisfy as a table.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::*;
use crate::{clients, specification};

/// The rows of one version after the other.
fn every_row() -> impl Iterator<Item = (&'static Area, &'static Requirement)> {
    all().chain(of_remote(Version::V1)).chain(of(Version::V2))
}

fn every_client_row() -> impl Iterator<Item = &'static clients::ClientRequirement> {
    let versions = [Version::V1, Version::V2].into_iter();
    versions.flat_map(|version| clients::of(version).chain(clients::of_remote(version)))
}

#[test]
fn ids_are_unique_and_belong_to_their_area() {
    for version in [Version::V1, Version::V2] {
        let mut seen = HashSet::new();
        for (_, row) in of(version).chain(of_remote(version)) {
            assert!(seen.insert(row.id), "{} stands twice", row.id);
        }
    }
    for (area, row) in every_row() {
        let name = row.id.strip_prefix(area.name);
        let name = name.and_then(|name| name.strip_prefix('.'));
        let plain = |name: &str| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        };
        assert!(name.is_some_and(plain), "{} in {}", row.id, area.name);
    }
}

#[test]
fn citations_name_a_page_and_a_heading_that_exist() {
    for (_, row) in every_row() {
        assert!(
            specification::address(row.cite).is_some(),
            "{} cites {}",
            row.id,
            row.cite
        );
    }
}

#[test]
fn quotes_are_one_line_and_say_something() {
    for (_, row) in every_row() {
        let length = row.quote.chars().count();
        assert!((8..=120).contains(&length), "{}: {length}", row.id);
        assert!(!row.quote.contains('\n'), "{}", row.id);
    }
}

#[test]
fn what_is_not_checked_has_a_reason() {
    for (_, row) in every_row() {
        match row.check {
            Check::Excluded(reason) => assert!(reason.len() > 20, "{}", row.id),
            Check::Watch { missing, .. } => assert!(!missing.is_empty(), "{}", row.id),
            Check::Run(_) | Check::Steps(_) => {}
        }
    }
}

#[test]
fn what_is_checked_says_how_in_two_sentences_at_most() {
    for (_, row) in every_row() {
        let test = row.test.unwrap_or_default();
        if matches!(row.check, Check::Excluded(_)) {
            assert_eq!(test, "", "{} has no check", row.id);
            continue;
        }
        assert!(
            (30..=200).contains(&test.chars().count()),
            "{}: {test:?}",
            row.id
        );
        assert!(
            test.ends_with('.') && !test.contains('\n'),
            "{}: {test:?}",
            row.id
        );
    }
}

/// The words in upper case are those of RFC 2119; "must" in a description of the schema is none.
#[test]
fn a_tier_stands_on_a_sentence_of_its_strength() {
    let agents = every_row().map(|(_, row)| (row.id, row.tier, row.quote, row.because));
    let clients = every_client_row().map(|row| (row.id, row.tier, row.quote, row.because));
    for (id, tier, quote, because) in agents.chain(clients) {
        let has = |words: &[&str]| words.iter().any(|word| quote.contains(word));
        let stands = match tier {
            Tier::Must | Tier::Capability => has(&["MUST", "REQUIRED", "SHALL"]),
            Tier::Should => has(&["SHOULD", "RECOMMENDED"]),
            Tier::Derived => because.is_some_and(|because| because.len() > 20),
            Tier::Info => true,
        };
        assert!(stands, "{id} ({}): {quote}", tier.as_str());
    }
}

#[test]
fn a_version_may_be_tested_in_another_way() {
    let text = "[[requirement]]\nid = \"a.b\"\ntier = \"must\"\ntest = \"Both.\"\n\
                v1.cite = \"overview#x\"\nv1.quote = \"It is so.\"\n\
                v2.cite = \"v2/overview#x\"\nv2.quote = \"It is so.\"\n";
    let of = |text: &str, version| {
        let file: File = basic_toml::from_str(text).unwrap();
        // Tables live as long as the program.
        let file: &'static File = Box::leak(Box::new(file));
        file.entries(version).unwrap().first().unwrap().test
    };
    assert_eq!(of(text, Version::V2), Some("Both."));
    let text = format!("{text}v2.test = \"Second.\"\nv1.unchecked = \"It cannot be.\"\n");
    assert_eq!(of(&text, Version::V2), Some("Second."));
    assert_eq!(of(&text, Version::V1), None);
}

#[test]
fn a_disputed_row_decides_nothing_and_says_where_it_is_discussed() {
    let link = "Read otherwise in https://example.org/discussions/1.";
    let row = format!(
        "[[requirement]]\nid = \"a.b\"\ntier = \"must\"\nv1.cite = \"overview#x\"\n\
         v1.quote = \"It MUST be.\"\nv1.disputed = \"{link}\"\nv2.cite = \"overview#x\"\n\
         v2.quote = \"It MUST be.\"\n"
    );
    let file: File = basic_toml::from_str(&row).unwrap();
    let file: &'static File = Box::leak(Box::new(file));
    let of = |version| {
        let entries = file.entries(version).unwrap();
        (entries[0].tier, entries[0].because)
    };
    assert_eq!(of(Version::V1), (Tier::Info, Some(link)));
    assert_eq!(of(Version::V2), (Tier::Must, None));
}

#[test]
fn ids_are_in_the_ledger() {
    let ledger = include_str!("../../requirements/ids.txt");
    let mut known = BTreeMap::new();
    for line in ledger.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<_> = line.split(' ').collect();
        assert!(matches!(words.len(), 2..=4), "{line}");
        assert!(
            known.insert(words[0], words).is_none(),
            "{line} is there twice"
        );
    }
    let agents = every_row().map(|(_, row)| row.id);
    let ids: BTreeSet<_> = agents.chain(every_client_row().map(|row| row.id)).collect();
    for id in &ids {
        let line = known
            .get(id)
            .unwrap_or_else(|| panic!("requirements/ids.txt lacks `{id}`"));
        assert_eq!(
            line.len(),
            2,
            "{id} is retired, and an id is never used again"
        );
    }
    for (id, line) in &known {
        let gone = !ids.contains(id);
        assert_eq!(
            gone,
            line.len() > 2,
            "{id} has no row: say in requirements/ids.txt when it was retired"
        );
        let heir = line.get(3);
        assert!(
            heir.is_none_or(|heir| ids.contains(heir)),
            "{id} was replaced by an unknown row"
        );
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    let of = |text: &str| -> Result<usize, String> {
        let file: File = basic_toml::from_str(text).map_err(|error| error.to_string())?;
        // Tables live as long as the program.
        let file: &'static File = Box::leak(Box::new(file));
        file.entries(Version::V1).map(|entries| entries.len())
    };
    let row = "[[requirement]]\nid = \"a.b\"\n";
    let source = "v1.cite = \"overview#x\"\nv1.quote = \"It is so.\"\n";
    assert_eq!(of(&format!("{row}tier = \"must\"\n{source}")), Ok(1));
    let two = "v2.cite = \"overview#x\"\nv2.quote = \"It is so.\"\n";
    assert_eq!(of(&format!("{row}tier = \"must\"\n{two}")), Ok(0));
    let none = of(&format!("{row}{source}")).unwrap_err();
    assert_eq!(none, "a.b has no tier");
    let derived = of(&format!("{row}tier = \"derived\"\n{source}")).unwrap_err();
    assert_eq!(derived, "a.b does not say how it is derived");
    let disputed = format!("{row}tier = \"must\"\n{source}v1.disputed = \"Some say otherwise.\"\n");
    assert_eq!(of(&disputed).unwrap_err(), "a.b does not link its dispute");
    let must = format!("{row}tier = \"must\"\n");
    let steps = format!("{must}steps = [{{ settle = true }}, {{ setle = true }}]\n{source}");
    let step = of(&steps).unwrap_err();
    assert!(step.starts_with("a.b, step 2: no verb"), "{step}");
    let unseen = of(&format!("{must}free_of = [\"schema\"]\n{source}")).unwrap_err();
    assert_eq!(unseen, "a.b has one of `free_of` and `missing`");
    let finding = format!("{must}free_of = [\"late\"]\nmissing = \"none\"\n{source}");
    let finding = of(&finding).unwrap_err();
    assert_eq!(finding, "a.b names an unknown finding `late`");
    let unknown = of(&format!("{row}teir = \"must\"\n")).unwrap_err();
    assert!(unknown.contains("teir"), "{unknown}");
    let file: File = basic_toml::from_str(&format!("{row}tier = \"must\"\n{source}")).unwrap();
    let file: &'static File = Box::leak(Box::new(file));
    let joined = |id| file.join(Version::V1, [(id, ())].into_iter(), |entry, _| Ok(entry.id));
    assert_eq!(joined("a.b"), Ok(vec!["a.b"]));
    assert_eq!(joined("a.c").unwrap_err(), "a.c has a check and no row");
}
