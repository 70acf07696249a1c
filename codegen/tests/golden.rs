//! The Rust of the bundled document, kept so that a schema change shows its diff.

mod support;

use acp_codegen::{Builder, Options, generate};
use acp_schema::Document;

#[test]
fn the_bundled_document_gives_the_kept_text() {
    let text = Builder::v1().generate().unwrap();
    let kept = support::tests("golden/v1.rs");
    support::compare(&kept, &text, "golden").unwrap_or_else(|diff| panic!("{diff}"));
}

#[test]
fn generation_does_not_depend_on_the_order_of_runs() {
    let document = Document::v1().unwrap();
    let first = generate(&document, &Options::v1()).unwrap();
    let second = generate(&document, &Options::v1()).unwrap();
    assert_eq!(first.text, second.text);
    assert_eq!(first.methods, 25);
}

#[test]
fn a_diff_shows_the_place_and_no_more() {
    let old: Vec<String> = (0..100).map(|line| line.to_string()).collect();
    let mut new = old.clone();
    new[50] = "fifty".to_owned();
    assert_eq!(
        support::diff(&old.join("\n"), &new.join("\n")),
        "@@ line 51 @@\n  47\n  48\n  49\n- 50\n+ fifty\n  51\n  52\n  53\n"
    );
}
