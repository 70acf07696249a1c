//! `docs/field.md` names a test for each fault: each of them exists.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the files of Rust in a folder, and those in its folders.
fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns whether a crate has a test in a file, or in the folder of a module, of this name.
fn has_test(workspace: &Path, package: &str, module: &str, test: &str) -> bool {
    let rooms = match package {
        "files" => &["sdk/files"][..],
        "client" => &["client", "client/cli", "client/dialects", "client/proxy"],
        "conformance" => &[
            "conformance",
            "conformance/cli",
            "conformance/fuzz",
            "conformance/proxy",
            "conformance/script",
        ],
        "server" => &[
            "server",
            "server/agent",
            "server/cli",
            "server/dialects",
            "server/host",
            "server/inbox",
            "server/mcp",
            "server/remote",
        ],
        other => &[other],
    };
    let mut files = Vec::new();
    for (room, folder) in rooms
        .iter()
        .flat_map(|room| [(room, "src"), (room, "tests")])
    {
        rust_files(&workspace.join(room).join(folder), &mut files);
    }
    let is_module = |file: &&PathBuf| {
        let path = file.with_extension("");
        path.ends_with(module) || path.parent().is_some_and(|folder| folder.ends_with(module))
    };
    let function = format!("fn {test}(");
    let has_function = |file: &PathBuf| fs::read_to_string(file).unwrap().contains(&function);
    files.iter().filter(is_module).any(has_function)
}

/// Returns the references of a table's cell, `crate file: tests`, that name no test.
fn stale(workspace: &Path, cell: &str) -> Vec<String> {
    let (mut stale, mut at) = (Vec::new(), None);
    for (position, part) in cell.split('`').enumerate() {
        if position % 2 == 1 {
            let found =
                at.is_some_and(|(package, module)| has_test(workspace, package, module, part));
            if !found {
                stale.push(format!("{at:?}: {part}"));
            }
        } else if let Some(named) = part.trim().strip_suffix(':') {
            let named = named.rsplit([';', ',']).next().unwrap_or(named);
            at = named.trim().split_once(' ');
        }
    }
    stale
}

#[test]
fn every_test_that_the_list_of_faults_names_exists() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = fs::read_to_string(workspace.join("docs/field.md")).unwrap();
    let rows = text
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| fault "));
    let (mut rows_with_tests, mut all_stale) = (0, Vec::new());
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let [_, tests] = cells[..] else {
            panic!("expected a fault and its tests in two cells, got {row}");
        };
        assert!(tests.contains('`'), "the fault has no test: {row}");
        all_stale.extend(stale(&workspace, tests));
        rows_with_tests += 1;
    }
    assert_eq!(all_stale, [""; 0]);
    assert!(rows_with_tests > 60, "{rows_with_tests} rows");
}

#[test]
fn a_test_that_does_not_exist_is_found() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let here = "conformance field: `a_test_that_does_not_exist_is_found`";
    assert_eq!(stale(&workspace, here), [""; 0]);
    for cell in [
        "conformance field: `a_test_that_never_was`",
        "conformance fair: `a_test_that_does_not_exist_is_found`",
        "server field: `a_test_that_does_not_exist_is_found`",
    ] {
        assert_eq!(stale(&workspace, cell).len(), 1, "{cell}");
    }
}
