//! The tables of facts are those of the documents.

#![allow(clippy::unwrap_used, reason = "a helper of tests fails by panicking")]

use acp_schema::{Document, EXTENSIONS, Protocol, Side};
use acp_sdk::facts::{MethodFacts, MethodTable};

/// Facts as words, for a comparison of two enums with the same names.
fn words(facts: &MethodFacts) -> String {
    let MethodFacts {
        scope,
        access,
        retry,
        joins,
        login,
        capability,
        ..
    } = facts;
    format!("{scope:?} {access:?} {retry:?} {joins:?} {login:?} {capability:?}")
}

#[track_caller]
fn assert_same(document: Document, proposals: (&str, &str), tables: [(Side, &MethodTable); 2]) {
    let document = document.overlay(proposals.0, proposals.1).unwrap();
    let document = document.overlay("extensions.json", EXTENSIONS).unwrap();
    let protocol = Protocol::from_document(&document).unwrap();
    for (side, table) in tables {
        let handled = |method: &&acp_schema::Method| {
            method.side.includes(side) || [Side::PROTOCOL, Side::PROXY].contains(&method.side)
        };
        let mut expected: Vec<(String, String)> = protocol
            .methods()
            .filter(handled)
            .map(|method| {
                let acp_schema::MethodFacts {
                    scope,
                    access,
                    retry,
                    joins,
                    login,
                    capability,
                } = method.facts.clone().unwrap();
                let facts =
                    format!("{scope:?} {access:?} {retry:?} {joins:?} {login:?} {capability:?}");
                (method.name.clone(), facts)
            })
            .collect();
        expected.sort();
        // A request and a notification of one name have one row.
        expected.dedup();
        let found: Vec<_> = table
            .iter()
            .map(|row| (row.name.to_owned(), words(row)))
            .collect();
        assert_eq!(found, expected, "{side}");
        for row in table.iter() {
            assert_eq!(table.get(row.name), Some(row));
        }
        assert_eq!(table.get("no/such/method"), None);
    }
}

#[test]
fn the_tables_of_version_1_are_those_of_its_documents() {
    use acp_sdk::v1::{AGENT_METHODS, CLIENT_METHODS};
    let tables = [
        (Side::AGENT, &AGENT_METHODS),
        (Side::CLIENT, &CLIENT_METHODS),
    ];
    let proposals = ("v1.unstable.json", acp_schema::V1_UNSTABLE);
    assert_same(Document::v1().unwrap(), proposals, tables);
}

#[cfg(feature = "v2")]
#[test]
fn the_tables_of_version_2_are_those_of_its_documents() {
    use acp_sdk::v2::{AGENT_METHODS, CLIENT_METHODS};
    let tables = [
        (Side::AGENT, &AGENT_METHODS),
        (Side::CLIENT, &CLIENT_METHODS),
    ];
    let proposals = ("v2.unstable.json", acp_schema::V2_UNSTABLE);
    assert_same(Document::v2().unwrap(), proposals, tables);
}

/// What is decided before the version is known must not depend on it.
#[cfg(feature = "v2")]
#[test]
fn the_versions_agree_on_scope_access_attachment_and_login() {
    use acp_sdk::{v1, v2};
    for (first, second) in [
        (&v1::AGENT_METHODS, &v2::AGENT_METHODS),
        (&v1::CLIENT_METHODS, &v2::CLIENT_METHODS),
    ] {
        let mut shared = 0;
        for one in first.iter() {
            let Some(two) = second.get(one.name) else {
                continue;
            };
            let facts = |it: &MethodFacts| (it.scope, it.access, it.joins, it.login);
            assert_eq!(facts(one), facts(two), "{}", one.name);
            shared += 1;
        }
        assert!(shared > 5, "{shared}");
    }
}

#[test]
fn the_table_of_updates_is_that_of_the_documents() {
    let document = Document::v1()
        .and_then(|document| document.overlay("v1.unstable.json", acp_schema::V1_UNSTABLE))
        .unwrap();
    let contents = document.contents().unwrap();
    let [updates] = contents.as_slice() else {
        panic!("{contents:?}");
    };
    assert_eq!(updates.union, "SessionUpdate");
    let table = &acp_sdk::v1::SESSION_UPDATE_CONTENT;
    assert_eq!(table.iter().count(), updates.variants.len());
    for (tag, content) in &updates.variants {
        let found = table.get(tag).map(|content| format!("{content:?}"));
        assert_eq!(found, Some(format!("{content:?}")), "{tag}");
    }
    assert_eq!(table.get("no_such_update"), None);
}

#[cfg(feature = "v2")]
#[test]
fn the_versions_agree_on_the_content_of_updates() {
    use acp_sdk::{v1, v2};
    let mut shared = 0;
    for (tag, content) in v1::SESSION_UPDATE_CONTENT.iter() {
        if let Some(other) = v2::SESSION_UPDATE_CONTENT.get(tag) {
            assert_eq!(content, other, "{tag}");
            shared += 1;
        }
    }
    assert!(shared > 5, "{shared}");
}

/// The table for people has the rows of the tables for programs.
#[cfg(feature = "v2")]
#[test]
fn the_document_says_what_may_be_sent_again() {
    use acp_sdk::facts::Retry;
    use acp_sdk::{v1, v2};
    let word = |table: &MethodTable, name: &str| match table.get(name).map(|facts| facts.retry) {
        Some(Retry::Safe) => "yes",
        Some(Retry::Keyed) => "with its key",
        Some(Retry::Never) => "no",
        None => "–",
    };
    let (first, second) = (&v1::AGENT_METHODS, &v2::AGENT_METHODS);
    let names = first.iter().chain(second.iter()).map(|facts| facts.name);
    let names: std::collections::BTreeSet<_> = names.collect();
    let rows = names.iter().map(|name| {
        let (first, second) = (word(first, name), word(second, name));
        format!("| `{name}` | {first} | {second} |\n")
    });
    let expected = format!(
        "\n| method | version 1 | version 2 |\n|---|---|---|\n{}\n",
        rows.collect::<String>()
    );
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/remote.md");
    let document = std::fs::read_to_string(path).unwrap();
    assert!(
        document.contains(&expected),
        "docs/remote.md needs this table:\n{expected}"
    );
}
