//! Mapping documents: each difference between two documents needs a row, and each row a
//! difference.

#![allow(clippy::unwrap_used, reason = "a helper of tests fails by panicking")]

use acp_codegen::{Document, generate_conversions};
use acp_schema::{V1_UNSTABLE, V1_V2, V1_V2_UNSTABLE, V2_UNSTABLE};
use serde_json::{Value, json};

/// Generates the conversions between two documents with these definitions.
fn generated(v1: &Value, v2: &Value, mapping: &Value) -> Result<String, String> {
    let document = |name: &str, definitions: &Value| {
        let text = json!({ "$defs": definitions }).to_string();
        Document::parse(name, &text).unwrap()
    };
    let (v1, v2) = (document("one.json", v1), document("two.json", v2));
    let text = mapping.to_string();
    generate_conversions(&v1, &v2, &[("map.json", &text)]).map_err(|error| error.to_string())
}

/// Returns an object with optional text members.
fn object(members: &[&str]) -> Value {
    let text = |name: &&str| ((*name).to_owned(), json!({ "type": ["string", "null"] }));
    let members: serde_json::Map<_, _> = members.iter().map(text).collect();
    json!({ "type": "object", "properties": members })
}

/// Returns a tagged union of objects without members.
fn union(tags: &[&str]) -> Value {
    let branch = |tag: &&str| {
        json!({ "type": "object", "required": ["type"],
            "properties": { "type": { "type": "string", "const": tag } } })
    };
    json!({ "oneOf": tags.iter().map(branch).collect::<Vec<_>>() })
}

#[test]
fn equal_definitions_need_no_row() {
    let definitions = json!({ "A": object(&["a", "b"]), "B": union(&["x", "y"]) });
    let text = generated(&definitions, &definitions, &json!({})).unwrap();
    for conversion in [
        "impl Convert<v1::A> for v2::A",
        "impl Convert<v2::A> for v1::A",
        "impl Convert<v1::B> for v2::B",
        "impl Convert<v2::B> for v1::B",
    ] {
        assert!(text.contains(conversion), "{conversion} in {text}");
    }
}

#[test]
fn a_difference_without_a_row_is_named_with_its_remedy() {
    let required = json!({ "type": "object", "required": ["a"],
        "properties": { "a": { "type": "string" } } });
    let number =
        json!({ "type": "object", "properties": { "a": { "type": ["boolean", "null"] } } });
    let values = |values: Value| json!({ "enum": values });
    for (v1, v2, expected) in [
        (
            json!({ "A": object(&["a"]), "B": object(&[]) }),
            json!({ "A": object(&["a"]) }),
            "one.json: /$defs/B: `B` has no equal in v2; add it to map.json: to `pairs` with the \
             type that is its equal, or to `lost` with a reason",
        ),
        (
            json!({ "A": object(&["a"]) }),
            json!({ "A": object(&["a", "b/c"]) }),
            "two.json: /$defs/A/properties/b~1c: `b/c` has no equal in `A` of v1; add it to \
             `members` of the pair of `A` in map.json: {\"v2\": \"b/c\", \"lost\": \"reason\"}, or \
             the name of its equal instead of `lost`",
        ),
        (
            json!({ "A": object(&["a"]) }),
            json!({ "A": required }),
            "one.json: /$defs/A/properties/a: `a` is optional in v1 and required in v2; add it to \
             the members of the pair `A` in map.json, with `given` for its absence, or without if \
             there is no equal then",
        ),
        (
            json!({ "A": object(&["a"]) }),
            json!({ "A": number }),
            "two.json: /$defs/A/properties/a: `a` is a `Option < bool >` and has no conversion to \
             `Option < String >`; map the two types, or the member with `by`, in map.json",
        ),
        (
            json!({ "A": union(&["x"]) }),
            json!({ "A": union(&["x", "y"]) }),
            "two.json: /$defs/A: `y` has no equal in `A` of v1; add it to `variants` of the pair \
             of `A` in map.json: {\"v2\": \"y\", \"lost\": \"reason\"}, or the name of its equal",
        ),
        (
            json!({ "A": values(json!(["x", "z"])) }),
            json!({ "A": values(json!(["x"])) }),
            "one.json: /$defs/A: `z` has no equal in `A` of v2; add it to `variants` of the pair \
             of `A` in map.json: {\"v1\": \"z\", \"kept\": \"reason\"}, or the name of its equal",
        ),
        (
            json!({ "A": object(&["a"]) }),
            json!({ "A": union(&["x"]) }),
            "two.json: /$defs/A: `A` of v2 and `A` of v1 have different shapes; add a pair with \
             `by` to map.json",
        ),
    ] {
        assert_eq!(generated(&v1, &v2, &json!({})).unwrap_err(), expected);
    }
}

#[test]
fn a_row_about_nothing_is_an_error() {
    let definitions = json!({ "A": object(&["a"]), "B": union(&["x"]) });
    for (mapping, expected) in [
        (
            json!({ "pairs": [{ "v1": "A", "v2": "C" }] }),
            "map.json: /pairs/0: v2 has no type `C`; correct the name, or remove the row \
             (/$defs/C)",
        ),
        (
            json!({ "lost": [{ "v1": ["C"], "reason": "r" }] }),
            "map.json: /lost/0/v1: v1 has no type `C`; correct the name, or remove the row \
             (/$defs/C)",
        ),
        (
            json!({ "pairs": [{ "type": "A", "members": [{ "v1": "c", "lost": "r" }] }] }),
            "map.json: /pairs/0/members/0: `A` of v1 has no member `c`; correct the name, or \
             remove the row",
        ),
        (
            json!({ "pairs": [{ "type": "B", "variants": [{ "v2": "z", "lost": "r" }] }] }),
            "map.json: /pairs/0/variants/0: v2 has no variant `z`; use one of x, or remove the row",
        ),
        (
            json!({ "pairs": [{ "type": "A", "members": [{ "v1": "a" }] }] }),
            "map.json: /pairs/0/members/0: not a mapping of members; write `lost` with a reason \
             for a member of one version, or the names in both versions",
        ),
        (
            json!({ "pairs": [{ "type": "A", "rename": {} }] }),
            "map.json: /pairs/0: unknown member `rename`; use type, v1, v2, only, by, list, \
             members, variants, unknown",
        ),
        (
            json!({ "lost": [{ "v1": ["A"] }] }),
            "map.json: /lost/0: no reason; say why there is no equal: `reason`",
        ),
    ] {
        assert_eq!(
            generated(&definitions, &definitions, &mapping).unwrap_err(),
            expected
        );
    }
}

#[test]
fn a_lost_member_is_reported_and_a_renamed_one_is_not() {
    let (v1, v2) = (
        json!({ "A": object(&["a", "old"]) }),
        json!({ "A": object(&["new"]) }),
    );
    let rows = json!([{ "v1": "a", "lost": "no place" }, { "v1": "old", "v2": "new" }]);
    let mapping = json!({ "pairs": [{ "type": "A", "members": rows }] });
    let text = generated(&v1, &v2, &mapping).unwrap();
    assert_eq!(
        text.matches("losses.lost(\"a\", \"no place\")").count(),
        1,
        "{text}"
    );
    assert!(
        text.contains("new: optional(\"old\", self.old, losses)"),
        "{text}"
    );
}

#[test]
fn a_row_of_an_overlay_replaces_the_one_about_the_same_name() {
    let document = |name: &str| {
        let definitions = json!({ "A": object(&["a"]), "B": union(&["x"]) });
        let text = json!({ "$defs": definitions }).to_string();
        Document::parse(name, &text).unwrap()
    };
    let rows = |member: Value, variant: Value| {
        let (a, b) = (
            json!({ "type": "A", "members": [member] }),
            json!({ "type": "B", "variants": [variant] }),
        );
        json!({ "pairs": [a, b] }).to_string()
    };
    let base = rows(
        json!({ "v2": "a", "lost": "no place" }),
        json!({ "v2": "x", "lost": "no variant" }),
    );
    let overlay = rows(
        json!({ "v1": "a", "v2": "a" }),
        json!({ "v1": "x", "v2": "x" }),
    );
    let mapping = [("base.json", base.as_str()), ("overlay.json", &overlay)];
    let text = generate_conversions(&document("one.json"), &document("two.json"), &mapping);
    let text = text.unwrap();
    assert!(
        !text.contains("no place") && !text.contains("no variant"),
        "{text}"
    );
}

/// The bundled documents, with an operation of a JSON Patch on that of version 2.
fn bundled(unstable: bool, operation: Value) -> Result<String, String> {
    let (mut v1, mut v2) = (Document::v1().unwrap(), Document::v2().unwrap());
    let mut mapping = vec![("v1-v2.json", V1_V2)];
    if unstable {
        v1 = v1.overlay("v1.unstable.json", V1_UNSTABLE).unwrap();
        v2 = v2.overlay("v2.unstable.json", V2_UNSTABLE).unwrap();
        mapping.push(("v1-v2.unstable.json", V1_V2_UNSTABLE));
    }
    let overlay = json!({ "x-patch": [operation] }).to_string();
    let v2 = v2.overlay("patch.json", &overlay).unwrap();
    generate_conversions(&v1, &v2, &mapping).map_err(|error| error.to_string())
}

#[test]
fn a_new_member_of_a_bundled_document_fails_until_it_is_mapped() {
    for unstable in [false, true] {
        let same = json!({ "op": "test", "path": "/$defs/Cost/type", "value": "object" });
        assert!(bundled(unstable, same).is_ok());
        let at = "/$defs/PromptRequest/properties/priority";
        let member = json!({ "op": "add", "path": at, "value": { "type": ["string", "null"] } });
        let error = bundled(unstable, member).unwrap_err();
        assert!(error.starts_with(&format!("patch.json: {at}: ")), "{error}");
        assert!(error.contains("v1-v2.json"), "{error}");
    }
}
