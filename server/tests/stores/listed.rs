//! Every store is tested by the contract, offered by the command, and documented.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the sources of this folder and of the crates in it.
fn sources() -> Vec<(PathBuf, String)> {
    let (mut folders, mut files) = (
        vec![Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()],
        vec![],
    );
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true if path.ends_with("target") => {}
                true => folders.push(path),
                false if path.extension().is_some_and(|extension| extension == "rs") => {
                    let text = fs::read_to_string(&path).unwrap();
                    files.push((path, text));
                }
                false => {}
            }
        }
    }
    files
}

#[test]
fn every_store_is_tested_offered_and_documented() {
    let sources = sources();
    let lines = sources.iter().flat_map(|(_, text)| text.lines());
    let stores = lines.filter_map(|line| line.strip_prefix("impl Store for ")?.strip_suffix(" {"));
    // Tests have stores of their own.
    let stores: Vec<_> = stores.filter(|name| name.ends_with("Store")).collect();
    let mut sorted = stores.clone();
    sorted.sort_unstable();
    assert!(sorted.starts_with(&["MemoryStore"]), "{sorted:?}");
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/server.md");
    let document = fs::read_to_string(document).unwrap();
    for store in stores {
        let anywhere = |words: [&str; 2]| {
            let mut texts = sources.iter().map(|(_, text)| text);
            texts.any(|text| words.iter().all(|word| text.contains(word)))
        };
        let opened = format!("{store}::");
        let is_tested = anywhere(["acp_store_tests::contract", &opened]);
        assert!(
            is_tested,
            "no test runs the contract of `acp-store-tests` on {store}"
        );
        let is_offered = anywhere(["enum StoreKind", store]);
        assert!(is_offered, "no variant of `StoreKind` opens {store}");
        assert!(
            document.contains(store),
            "docs/server.md does not name {store}"
        );
    }
}
