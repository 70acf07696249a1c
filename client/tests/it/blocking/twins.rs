//! Each public async method has a blocking twin.

use std::collections::BTreeSet;
use std::path::PathBuf;

const BLOCKING: &str = include_str!("../../../src/blocking.rs");

/// Returns the sources of clients, sessions, turns and their builders.
fn sources() -> Vec<String> {
    let mut folders = vec![PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/client"
    ))];
    folders.push(concat!(env!("CARGO_MANIFEST_DIR"), "/src/session").into());
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => sources.push(std::fs::read_to_string(path).unwrap()),
            }
        }
    }
    sources
}

/// Methods without a twin of their name, with the reason.
const WITHOUT: [(&str, &str); 2] = [
    (
        "ClientBuilder::connect",
        "`Client::connect_transport`: the name is that of the method with a URL",
    ),
    (
        "Child::cancel",
        "rare: `Session::inner` has the children, and `Client::block_on` waits",
    ),
];

/// Returns the methods with this prefix in the blocks of inherent methods and iterators.
fn methods(source: &str, prefix: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut of = "";
    for line in source.lines() {
        if let Some(block) = line.strip_prefix("impl ") {
            let block = block.strip_prefix("Iterator for ").unwrap_or(block);
            of = block.split_once(' ').map_or("", |(name, _)| name);
        }
        if let Some(name) = line.trim_start().strip_prefix(prefix) {
            let name = name.split(['(', '<']).next().unwrap_or_default();
            found.insert(format!("{of}::{name}"));
        }
    }
    found
}

#[test]
fn each_async_method_has_a_blocking_twin() {
    let mut twins = methods(BLOCKING, "pub fn ");
    twins.extend(methods(BLOCKING, "fn "));
    let mut methods: BTreeSet<_> = sources()
        .iter()
        .flat_map(|source| methods(source, "pub async fn "))
        .collect();
    for known in [
        "ClientBuilder::spawn",
        "Client::fork_session",
        "Session::prompt",
        "Turn::next",
    ] {
        assert!(
            methods.contains(known),
            "{known} is not found in the sources"
        );
    }
    for (name, reason) in WITHOUT {
        assert!(methods.remove(name), "{name} does not exist: {reason}");
    }
    methods.retain(|name| !twins.contains(&name.replace("ClientBuilder::", "Client::")));
    assert!(
        methods.is_empty(),
        "no blocking twin: {methods:?}; add them to src/blocking.rs, or to `WITHOUT` with a reason"
    );
}

#[test]
fn methods_are_found_in_the_blocks_of_their_types() {
    let source = "impl A {\n    pub async fn a(&self) {}\n}\nimpl Iterator for B {\n    pub async fn b<T>() {}\n}";
    let expected = ["A::a", "B::b"].map(str::to_owned).into();
    assert_eq!(methods(source, "pub async fn "), expected);
}
