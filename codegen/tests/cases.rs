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
        #[allow(clippy::large_enum_variant, clippy::upper_case_acronyms, reason = "the schema's")]
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
    calls composed default_variant defaults entries enums external flattened_union id integer keywords leniency
    letters map method_names nested_union object object_choice one_role open_object patch recursive roles string_enum
    tagged_union typed_defaults untagged_union version_roles wrapper
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

/// As `lenient`, without what was dropped; `None` when the text is invalid.
fn lenient_or_none<T: DeserializeOwned + Described + Serialize>(text: &str) -> Option<String> {
    let value = decode::<T>(text, &mut |_| {}).ok()?;
    serde_json::to_string(&value).ok()
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
fn enums_of_any_values() {
    use case::enums::{Enums, EnumsKinds};
    let text = r#"{"maybe":"a","state":"off","yes":true,"level":2,"ratio":0.5,"mixed":[true],"one":1,"nothing":null,"kinds":5,"named":"b"}"#;
    let value: Enums = same(text);
    assert_eq!(value.kinds, EnumsKinds::Integer(5));
    let (text, _) = lenient::<Enums>(
        r#"{"maybe":null,"state":null,"yes":false,"mixed":1.50,"nothing":null,"kinds":"x","named":null}"#,
    );
    assert_eq!(
        text,
        r#"{"yes":false,"mixed":1.50,"nothing":null,"kinds":"x"}"#
    );
}

#[test]
fn members_that_the_schema_does_not_name_are_kept() {
    use case::entries::{
        Anything, Either, Extensions, Headers, Inner, Later, Open, Part, Score, Scores,
    };
    for text in [r#"{"z":"1","a":"2"}"#, "{}"] {
        same::<Headers>(text);
        same::<Either>(text);
    }
    let scores: Scores = same(r#"{"total":1,"note":"n","z":{"value":0.5},"a":{"value":2.0}}"#);
    assert_eq!(
        scores.additional_properties.get("z"),
        Some(&Score::new(0.5))
    );
    // The members of the schema stand first.
    let (text, _) = lenient::<Scores>(r#"{"z":{"value":1.0},"total":1,"z":{"value":2.0}}"#);
    assert_eq!(text, r#"{"total":1,"z":{"value":2.0}}"#);
    assert_eq!(
        fails::<Scores>(r#"{"total":1,"z":{"value":"x"}}"#),
        "/z/value"
    );
    assert_eq!(fails::<Headers>(r#"{"z":1}"#), "/z");
    let open: Open = same(r#"{"additionalProperties":true,"more":[1e400],"_meta":{}}"#);
    assert_eq!(open.other_properties.len(), 2);
    same::<Extensions>(r#"{"x-a":1}"#);
    same::<Anything>(r#"{"a":[1.50],"b":null}"#);
    same::<Later>(r#"{"kind":"big","size":5}"#);
    same::<Inner>(r#"{"point":{"x":1,"y":2}}"#);
    same::<Part>(r#"{"kind":"headers","a":"b"}"#);
    same::<Part>(r#"{"kind":"scores","total":1,"a":{"value":1.0}}"#);
    same::<Either>(r#"{"total":1,"a":{"value":1.0}}"#);
    // The tag after other members.
    let (text, _) = lenient::<Part>(r#"{"a":"b","kind":"headers"}"#);
    assert_eq!(text, r#"{"kind":"headers","a":"b"}"#);
    let built = Scores::new(3).with_additional_properties([("a", Score::new(1.0))].into());
    assert_eq!(
        serde_json::to_string(&built).unwrap(),
        r#"{"total":3,"a":{"value":1.0}}"#
    );
    assert_eq!(
        serde_json::from_str::<Scores>(r#"{"total":3,"a":{"value":1.0}}"#).unwrap(),
        built
    );
}

#[test]
fn defaults_of_every_type() {
    use case::typed_defaults::{Mode, Settings, Value};
    let settings = decode::<Settings>("{}", &mut |_| {}).unwrap();
    assert_eq!(settings, Settings::new());
    assert_eq!(
        (settings.scale, settings.least, settings.zero),
        (1.0, -1e300, 0.0)
    );
    assert_eq!((settings.port.get(), settings.no_port.get()), (3, 0));
    assert_eq!(
        (settings.off.0, settings.on.0, settings.weight.0),
        (false, true, 2.0)
    );
    assert_eq!(settings.more, ["a", "b"]);
    assert_eq!(settings.table.get("a"), Some(&1));
    assert_eq!(settings.free.as_str(), r#"{"a":[1.5]}"#);
    assert_eq!(settings.any.get(), r#"{"b":false}"#);
    assert_eq!((settings.id.as_str(), settings.mode), ("x", Mode::Fast));
    assert_eq!(settings.value, Value::Text("text".into()));
    assert_eq!(settings.count, Value::Count(5));
}

#[test]
fn parts_of_all_of_are_one_type() {
    use case::composed::{Event, OneOfTwo, Pair, Same, Stopped, Untyped};
    same::<Event>(r#"{"seq":1,"type":"event","body":"b"}"#);
    assert_eq!(fails::<Event>(r#"{"type":"event","body":"b"}"#), "/seq");
    same::<Stopped>(r#"{"seq":1,"type":"event","body":"b","reason":"r"}"#);
    same::<Same>(r#"{"seq":1,"type":"t"}"#);
    same::<OneOfTwo>(r#"{"b":"x"}"#);
    same::<Pair>(r#"["a",1]"#);
    same::<Untyped>(r#"{"a":{"any":1}}"#);
}

#[test]
fn names_of_one_letter() {
    use case::letters::{ABC, D, Either, Holder, S, Value, W};
    same::<ABC>(r#"{"kind":"W","text":"t","next":{"text":"x"},"id":"q"}"#);
    same::<Either>(r#"{"text":"t"}"#);
    same::<Value>(r#"[{"text":"t"}]"#);
    let value: Value = same(r#"{"text":"s"}"#);
    assert_eq!(value, Value::from(S::new("s")));
    let holder: Holder = same(r#"{"d":{"text":"d"},"w":{"text":"w"}}"#);
    assert_eq!(holder.d, D::new("d"));
    assert_eq!(holder.additional_properties.get("w"), Some(&W::new("w")));
}

#[test]
fn methods_named_as_what_generated_code_uses() {
    use acp_sdk::runtime::{Method as _, Notification as _};
    use case::method_names::methods;
    assert_eq!(methods::Method::NAME, "a/method");
    assert_eq!(methods::Self_::NAME, "a/self");
    assert_eq!(methods::Notification::NAME, "n/notification");
    assert_eq!(methods::Request::NAME, "n/request");
}

#[test]
fn the_version_of_other_roles() {
    use acp_sdk::runtime::{Method as _, ProtocolVersion as _};
    use case::version_roles::{InitializeResponse, V7, methods};
    assert_eq!(methods::Initialize::NEGOTIATES, Some(7));
    let mut response = InitializeResponse::new(1);
    V7::set_version(&mut response);
    assert_eq!(response.protocol_version, 7);
}

#[test]
fn a_union_of_objects_takes_the_one_that_knows_all_members() {
    use case::object_choice::{Choice, Large, Mixed};
    let choice: Choice = same(r#"{"name":"n","size":1}"#);
    let large = Large::new().with_name("n").with_size(1);
    assert_eq!(choice, Choice::Large(large.clone()));
    assert_eq!(
        same::<Mixed>(r#"{"name":"n","size":1}"#),
        Mixed::Large(large)
    );
    // Without one, the first that fits.
    let (text, _) = lenient::<Choice>(r#"{"name":"n","other":1}"#);
    assert_eq!(text, r#"{"name":"n"}"#);
    for text in [r#"{"name":1,"size":1}"#, r#"{"name":"n","size":"x"}"#] {
        assert_eq!(
            lenient_or_none::<Choice>(text),
            lenient_or_none::<Mixed>(text)
        );
    }
}

#[test]
fn recursive_types_are_boxed_and_bounded() {
    use case::recursive::Tree;
    let tree: Tree = same(
        r#"{"value":1,"left":{"value":2},"next":{"value":3,"next":{"value":4}},"children":[{"value":5}]}"#,
    );
    // An optional member is indirect whether or not it may be null.
    let next = tree.next.and_then(|next| next.next);
    assert_eq!(next, Some(Box::new(Tree::new(4))));
    let deep = format!(
        "{}{}",
        r#"{"value":1,"left":"#.repeat(100_000),
        "}".repeat(100_000)
    );
    assert!(decode::<Tree>(&deep, &mut |_| {}).is_err());
}
