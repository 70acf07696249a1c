//! What the table must satisfy as a table.

use std::collections::HashSet;

use super::*;

/// The rows of one version after the other.
fn every_row() -> impl Iterator<Item = (&'static Area, &'static Requirement)> {
    all().chain(of_remote(Version::V1)).chain(of(Version::V2))
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
            pages::address(row.cite).is_some(),
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
            Check::Run(_) => {}
        }
    }
}

#[test]
fn there_are_as_many_rows_as_promised() {
    assert!(all().count() >= 30, "{}", all().count());
    assert!(of(Version::V2).count() >= 90, "{}", of(Version::V2).count());
}
