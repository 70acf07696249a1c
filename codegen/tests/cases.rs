//! Minimal documents, one feature each: the text they give, compiled and tried.

#![allow(clippy::unwrap_used, reason = "a helper of tests fails by panicking")]

mod support;

use std::fmt::Debug;

use acp_codegen::{Options, generate};
use acp_schema::Document;
use acp_sdk::runtime::{Described, Meta, decode};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Compiles each case and adds a test that compares its text.
macro_rules! cases {
    ($($name:ident)*) => {
        /// The generated modules.
        #[allow(dead_code, unreachable_pub, reason = "a case is compiled whole and used in part")]
        mod case {
            $(pub mod $name {
                include!(concat!("cases/", stringify!($name), "/expected.rs"));
            })*
        }

        $(#[test]
        fn $name() {
            let directory = support::tests(concat!("cases/", stringify!($name)));
            let schema = std::fs::read_to_string(directory.join("schema.json")).unwrap();
            let document = Document::parse("schema.json", &schema).unwrap();
            let output = generate(&document, &options(stringify!($name))).unwrap();
            support::compare(&directory.join("expected.rs"), &output.text, "cases")
                .unwrap_or_else(|diff| panic!("{diff}"));
        })*

        #[test]
        fn every_case_is_declared() {
            let mut declared = vec![$(stringify!($name)),*];
            declared.sort_unstable();
            let mut found: Vec<String> = std::fs::read_dir(support::tests("cases"))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            found.sort_unstable();
            assert_eq!(found, declared);
        }
    };
}

cases! {
    calls default_variant defaults external flattened_union id integer keywords leniency map nested_union
    object one_role open_object patch recursive roles string_enum tagged_union untagged_union wrapper
}

/// The options of a case.
fn options(case: &str) -> Options {
    let mut options = Options::other();
    if case == "external" {
        for (name, path) in [
            ("Session", "::acp_sdk::v1::SessionId"),
            ("ToolCallStatus", "::acp_sdk::v1::ToolCallStatus"),
        ] {
            options.external.insert(name.into(), path.into());
        }
    }
    options
}

/// Reads and writes `text`, which must stay the same, and gives the value.
fn same<T: DeserializeOwned + Described + Serialize + Debug>(text: &str) -> T {
    let value = decode::<T>(text, &mut |leniency| panic!("{leniency:?}")).unwrap();
    assert_eq!(serde_json::to_string(&value).unwrap(), text);
    value
}

/// Reads `text` and gives what it is written as, and what was dropped.
fn lenient<T: DeserializeOwned + Described + Serialize>(text: &str) -> (String, Vec<String>) {
    let mut dropped = Vec::new();
    let value = decode::<T>(text, &mut |leniency| dropped.push(leniency.path)).unwrap();
    (serde_json::to_string(&value).unwrap(), dropped)
}

fn fails<T: DeserializeOwned + Described + Debug>(text: &str) -> String {
    decode::<T>(text, &mut |_| {}).unwrap_err().path
}

#[test]
fn objects_keep_their_order() {
    use case::object::Person;
    let person: Person =
        same(r#"{"name":"n","birthYear":1900,"height":1.5,"nickNames":["x"],"extra":[1]}"#);
    assert_eq!(person.nick_names, ["x"]);
    assert_eq!(
        fails::<Person>(r#"{"name":"n","birthYear":65536}"#),
        "/birthYear"
    );
}

#[test]
fn names_that_are_words_of_rust() {
    use case::keywords::Keywords;
    let value: Keywords = same(r#"{"type":"a","const":"b","self":true,"$odd-name":"c"}"#);
    assert_eq!(value.type_, "a");
}

#[test]
fn an_inline_payload_is_a_type_of_its_own() {
    use case::tagged_union::{Shape, ShapeSquare};
    let shape: Shape = same(r#"{"kind":"square","side":0.5}"#);
    assert_eq!(shape, Shape::from(ShapeSquare::new(0.5)));
    assert_eq!(same::<Shape>(r#"{"kind":"point"}"#), Shape::Point);
    same::<Shape>(r#"{"kind":"oval","a":1}"#);
    assert_eq!(
        fails::<Shape>(r#"{"kind":"circle","radius":0.5}"#),
        "/radius"
    );
}

#[test]
fn a_union_without_tags_takes_the_first_that_fits() {
    use case::untagged_union::{Content, Resource};
    assert_eq!(same::<Content>("null"), Content::Nothing);
    assert_eq!(
        same::<Content>(r#"["a"]"#),
        Content::Texts(vec!["a".into()])
    );
    assert_eq!(fails::<Content>(r#"["a",1]"#), "/1");
    assert_eq!(fails::<Content>("true"), "");
    same::<Resource>(r#"{"blob":"b"}"#);
}

#[test]
fn a_union_among_members() {
    use case::flattened_union::Setting;
    same::<Setting>(r#"{"name":"n","note":"x","type":"flag","value":true}"#);
    same::<Setting>(r#"{"name":"n","type":"later","more":1}"#);
    assert_eq!(fails::<Setting>(r#"{"name":"n"}"#), "/type");
    let (text, dropped) = lenient::<Setting>(r#"{"name":"n","note":5,"type":"later","more":1}"#);
    assert_eq!(
        (text.as_str(), dropped),
        (
            r#"{"name":"n","type":"later","more":1}"#,
            vec!["/note".into()]
        )
    );
}

#[test]
fn a_union_in_a_variant_of_another() {
    use case::nested_union::State;
    let (text, dropped) = lenient::<State>(r#"{"state":"idle","why":"later","more":1,"note":5}"#);
    assert_eq!(dropped, ["/note"]);
    assert_eq!(text, r#"{"state":"idle","why":"later","more":1}"#);
}

#[test]
fn members_of_an_open_object_with_types() {
    use case::open_object::{Letter, Readers};
    let text = r#"{"text":"t","_meta":{"other":[1],"example.com/seen-by":{"names":["a"]}},"extra":{"readers":5}}"#;
    let note: Letter = same(text);
    assert_eq!(note.meta_seen_by(), Some(Readers::new(vec!["a".into()])));
    // What does not fit its type is kept, but not given.
    assert_eq!(note.extra_readers(), None);
    let note = Letter::new("t", Meta::new())
        .with_meta_seen_by(&Readers::new(vec![]))
        .with_extra_readers(&Readers::new(vec![]));
    assert_eq!(
        serde_json::to_string(&note).unwrap(),
        r#"{"text":"t","_meta":{"example.com/seen-by":{"names":[]}},"extra":{"readers":{"names":[]}}}"#
    );
}

#[test]
fn a_type_by_another_name_knows_its_paths() {
    use case::wrapper::{Origin, Path};
    same::<Origin>(r#"{"x":1}"#);
    assert_eq!(fails::<Origin>(r#"{"x":"1"}"#), "/x");
    assert_eq!(fails::<Path>(r#"[{"x":1},{}]"#), "/1/x");
}

#[test]
fn every_marker_of_leniency() {
    use case::leniency::Lenient;
    let (text, dropped) = lenient::<Lenient>(
        r#"{"must":["a",1],"nullMust":null,"may":1,"items":[1,"b"],"skipping":["c",null],"nullMay":null}"#,
    );
    assert_eq!(
        text,
        r#"{"must":["a"],"nullMust":[],"items":["b"],"skipping":["c"]}"#
    );
    assert_eq!(dropped, ["/must/1", "/may", "/items/0", "/skipping/1"]);
    for (text, path) in [
        (r#"{"nullMust":[]}"#, "/must"),
        (r#"{"must":[]}"#, "/nullMust"),
        (r#"{"must":[],"nullMust":[1]}"#, "/nullMust/0"),
        (r#"{"must":[],"nullMust":[],"skipping":5}"#, "/skipping"),
        (r#"{"must":[],"nullMust":[],"nullMay":{}}"#, "/nullMay"),
        (r#"{"must":[],"nullMust":[],"strict":5}"#, "/strict"),
    ] {
        assert_eq!(fails::<Lenient>(text), path, "{text}");
    }
}

#[test]
fn defaults_other_than_the_types_own() {
    use case::defaults::{Mode, Options};
    let options = decode::<Options>("{}", &mut |_| {}).unwrap();
    assert_eq!(options, Options::new());
    assert_eq!(
        (options.on, options.limit, &options.mode),
        (true, 20, &Mode::Fast)
    );
    let (text, dropped) = lenient::<Options>(r#"{"on":5,"mode":"slow"}"#);
    assert_eq!(dropped, ["/on"]);
    let all =
        r#"{"off":false,"on":true,"limit":20,"mode":"slow","list":[],"inner":{"deep":false}}"#;
    assert_eq!(text, all);
}

#[test]
fn external_types_are_those_of_the_other_crate() {
    use case::external::Call;
    let call: Call = decode(r#"{"session":"s"}"#, &mut |_| {}).unwrap();
    let session: acp_sdk::v1::SessionId = call.session;
    assert_eq!(session.as_ref(), "s");
    assert_eq!(call.status, acp_sdk::v1::ToolCallStatus::Failed);
}

#[test]
fn patches_of_three_states() {
    use case::patch::Update;
    for text in [
        "{}",
        r#"{"title":null}"#,
        r#"{"title":"t","tags":["a"]}"#,
        r#"{"tags":null}"#,
    ] {
        same::<Update>(text);
    }
    let (text, dropped) = lenient::<Update>(r#"{"title":null,"tags":["a",5]}"#);
    assert_eq!(
        (text.as_str(), dropped),
        (r#"{"title":null,"tags":["a"]}"#, vec!["/tags/1".into()])
    );
}

#[test]
fn maps_keep_their_order() {
    use case::map::Form;
    same::<Form>(r#"{"fields":{"z":{"title":"1"},"a":{"title":"2"}},"texts":{"y":"","b":""}}"#);
    assert_eq!(fails::<Form>(r#"{"fields":{"z":{}}}"#), "/fields/z/title");
}

#[test]
fn recursive_types_are_boxed_and_bounded() {
    use case::recursive::Tree;
    same::<Tree>(r#"{"value":1,"left":{"value":2},"children":[{"value":3}]}"#);
    let deep = format!(
        "{}{}",
        r#"{"value":1,"left":"#.repeat(100_000),
        "}".repeat(100_000)
    );
    assert!(decode::<Tree>(&deep, &mut |_| {}).is_err());
}
