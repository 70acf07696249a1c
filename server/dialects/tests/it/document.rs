//! `docs/dialects.md` names a test for each rule: each of them exists.

use std::fs;
use std::path::Path;

#[test]
fn every_test_that_the_document_names_exists() {
    let dialects = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = fs::read_to_string(dialects.join("../../docs/dialects.md")).unwrap();
    let mut tests = fs::read_to_string(dialects.join("../cli/tests/it/process.rs")).unwrap();
    let http = "../remote/tests/it/rest/openoxide.rs";
    let tools = "../cli/src/allowed_tools.rs";
    for file in ["src/detect.rs", "src/permission.rs", http, tools] {
        tests += &fs::read_to_string(dialects.join(file)).unwrap();
    }
    for file in [
        "client/cli/tests/it/dialect.rs",
        "conformance/tests/it/dialects.rs",
    ] {
        tests += &fs::read_to_string(dialects.join("../..").join(file)).unwrap();
    }
    for folder in ["tests/it", "../../client/dialects/tests/it"] {
        for file in fs::read_dir(dialects.join(folder)).unwrap() {
            tests += &fs::read_to_string(file.unwrap().path()).unwrap();
        }
    }
    // Names of tests are those in backticks that are sentences.
    let names = document.split('`').skip(1).step_by(2);
    let names: Vec<_> = names
        .map(|name| name.rsplit("::").next().unwrap_or(name))
        .filter(|name| {
            let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            name.chars().all(is_word) && name.matches('_').count() > 2
        })
        .collect();
    assert!(names.len() > 40, "{names:?}");
    for name in names {
        assert!(tests.contains(&format!("fn {name}(")), "no test {name}");
    }
}
