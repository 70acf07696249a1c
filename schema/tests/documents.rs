//! The bundled documents are complete, and broken ones are named.

use acp_schema::{Document, Protocol, V1_UNSTABLE};

const BASE: &str = r#"{"$defs": {"A": {"type": "object"}}}"#;

#[track_caller]
fn overlay_error(text: &str) -> String {
    let base = Document::parse("base.json", BASE).expect("an object");
    let error = base.overlay("mine.json", text).expect_err("must fail");
    error.to_string()
}

#[track_caller]
fn table_error(text: &str) -> String {
    let document = Document::parse("base.json", text).expect("an object");
    let error = Protocol::from_document(&document).expect_err("must fail");
    error.to_string()
}

#[test]
fn version_1_is_complete() {
    let document = Document::v1().expect("v1 is valid");
    assert_eq!(document.defs().count(), 178);
    let protocol = Protocol::from_document(&document).expect("v1 is valid");
    assert_eq!(protocol.methods().count(), 25);
}

#[test]
fn the_overlay_adds_fork_alone() {
    let document = Document::v1()
        .and_then(|document| document.overlay("v1.unstable.json", V1_UNSTABLE))
        .expect("the overlay applies");
    assert_eq!(document.defs().count(), 181);
    let protocol = Protocol::from_document(&document).expect("the overlay is valid");
    assert_eq!(protocol.methods().count(), 26);
}

#[test]
fn text_that_is_not_json_is_named() {
    let error = Document::parse("base.json", "{").expect_err("not JSON");
    assert!(error.to_string().starts_with("base.json: not JSON"));
}

#[test]
fn an_overlay_clash_is_named() {
    let error = overlay_error(r#"{"$defs": {"A": {}}}"#);
    assert!(error.starts_with("mine.json: /$defs/A: already"), "{error}");
}

#[test]
fn a_wrong_patch_path_is_named() {
    let error = overlay_error(r#"{"x-patch": [{"op": "add", "path": "/$defs/B/x", "value": 1}]}"#);
    assert!(error.starts_with("mine.json: /x-patch"), "{error}");
}

#[test]
fn unpaired_methods_are_named() {
    let error = table_error(r#"{"$defs": {"ARequest": {"x-method": "a", "x-side": "agent"}}}"#);
    assert!(error.contains("/$defs/ARequest: no response"), "{error}");
    let error = table_error(r#"{"$defs": {"AResponse": {"x-method": "a", "x-side": "agent"}}}"#);
    assert!(error.contains("/$defs/AResponse: no request"), "{error}");
}

#[test]
fn a_missing_side_is_named() {
    let error = table_error(r#"{"$defs": {"ARequest": {"x-method": "a"}}}"#);
    assert!(error.contains("/$defs/ARequest/x-side"), "{error}");
}

#[test]
fn an_unknown_keyword_is_named_but_a_property_is_not_one() {
    let error = table_error(r#"{"$defs": {"A": {"properties": {"x-b": {"x-c": 1}}}}}"#);
    assert!(
        error.contains("/$defs/A/properties/x-b/x-c: unknown keyword"),
        "{error}"
    );
}
