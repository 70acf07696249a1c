//! Members of objects: absent, odd, given twice, and what they are called.

use crate::json::Described;
use crate::json::descriptor::{Field, TypeDescriptor};
use crate::json::{Json, Map, Meta};

use super::{NUMBER, NUMBERS, TEXT, entry, refused, repaired, whole};

#[test]
fn members_are_written_in_the_order_of_the_shape() {
    let text = r#" { "count" : 7 , "later" : [1], "name" : "n" } "#;
    assert_eq!(whole(text, entry()), r#"{"name":"n","count":7}"#);
    assert_eq!(whole(r#"{"name":"n"}"#, entry()), r#"{"name":"n"}"#);
    assert_eq!(whole("{}", &TypeDescriptor::Object(&[])), "{}");
}

#[test]
fn a_required_member_is_missed() {
    assert_eq!(
        refused(r#"{"count":7}"#, entry()),
        "/name: required member is missing"
    );
    assert_eq!(
        refused(r#"{"name":null}"#, entry()),
        "/name: invalid type: null, expected a string"
    );
}

#[test]
fn an_odd_member_is_left_out_and_reported() {
    let (text, reports) = repaired(r#"{"name":"n","count":"7"}"#, entry());
    assert_eq!(text, r#"{"name":"n"}"#);
    assert_eq!(
        reports,
        [r#"/count: invalid type: string "7", expected u8"#]
    );
}

#[test]
fn what_must_be_there_gets_its_default_in_place_of_an_odd_value() {
    const FIELDS: &[Field] = &[
        Field::required("list", NUMBERS).or_default(),
        Field::required("map", Map::<u8>::descriptor).or_default(),
        Field::required("option", Option::<u8>::descriptor).or_default(),
    ];
    let (text, reports) = repaired(
        r#"{"list":1,"map":[],"option":{}}"#,
        &TypeDescriptor::Object(FIELDS),
    );
    assert_eq!(text, r#"{"list":[],"map":{},"option":null}"#);
    assert_eq!(
        reports,
        [
            "/list: invalid type: number, expected an array",
            "/map: invalid type: array, expected an object",
            "/option: invalid type: map, expected u8",
        ]
    );
    // That it is absent is not tolerated.
    assert_eq!(
        refused(r#"{"map":{}}"#, &TypeDescriptor::Object(FIELDS)),
        "/list: required member is missing"
    );
}

#[test]
fn null_is_a_value_where_it_means_the_default() {
    const FIELDS: &[Field] = &[
        Field::optional("list", NUMBERS).or_null(),
        Field::optional("number", NUMBER),
    ];
    let descriptor = TypeDescriptor::Object(FIELDS);
    assert_eq!(whole(r#"{"list":null}"#, &descriptor), r#"{"list":null}"#);
    assert_eq!(
        refused(r#"{"number":null}"#, &descriptor),
        "/number: invalid type: null, expected u8"
    );
}

#[test]
fn of_members_of_one_name_the_last_one_counts() {
    let (text, reports) = repaired(
        r#"{"name":"a","count":1,"name":5,"name":"b","name":"c"}"#,
        entry(),
    );
    assert_eq!(text, r#"{"name":"c","count":1}"#);
    let twice = "/name: duplicate member; the last one is used";
    assert_eq!(reports, [twice, twice, twice]);
    // That an earlier one is right does not help.
    assert_eq!(
        refused(r#"{"name":"a","name":5}"#, entry()),
        "/name: invalid type: integer `5`, expected a string"
    );
}

#[test]
fn of_members_of_one_name_in_a_map_the_last_one_counts_and_the_order_stays() {
    let map = Map::<u8>::descriptor();
    assert_eq!(whole(r#"{"b":300,"a":1,"b":2}"#, map), r#"{"a":1,"b":2}"#);
    assert_eq!(whole("{}", map), "{}");
    assert_eq!(
        refused(r#"{"a":1,"b":true}"#, map),
        "/b: invalid type: boolean `true`, expected u8"
    );
}

#[test]
fn names_are_escaped_as_json_and_as_pointers() {
    const FIELDS: &[Field] = &[Field::optional("q\"/~\n", NUMBER).or_default()];
    let descriptor = TypeDescriptor::Object(FIELDS);
    let text = r#"{"q\"\u002f~\n":1}"#;
    assert_eq!(whole(text, &descriptor), r#"{"q\"/~\n":1}"#);
    let (text, reports) = repaired(r#"{"q\"/~\n":[]}"#, &descriptor);
    assert_eq!(text, "{}");
    assert_eq!(reports, ["/q\"~1~0\n: invalid type: sequence, expected u8"]);
    let map = Map::<u8>::descriptor();
    assert_eq!(whole(r#"{"\t\\é":1}"#, map), r#"{"\t\\é":1}"#);
    assert_eq!(
        refused(r#"{"~0/":-1}"#, map),
        "/~00~1: invalid value: integer `-1`, expected u8"
    );
}

#[test]
fn what_is_no_object_is_called_by_its_kind() {
    for (text, kind) in [
        ("[]", "array"),
        ("\"{}\"", "string"),
        ("null", "null"),
        ("true", "boolean"),
        ("false", "boolean"),
        ("-1", "number"),
        ("1", "number"),
    ] {
        let wrong = format!(": invalid type: {kind}, expected an object");
        assert_eq!(refused(text, entry()), wrong);
        assert_eq!(refused(text, Map::<u8>::descriptor()), wrong);
    }
}

#[test]
fn what_is_no_json_is_refused_with_its_place() {
    assert_eq!(
        refused(r#"{"name":}"#, entry()),
        ": expected value at line 1 column 9"
    );
    assert_eq!(
        refused(r#"{"name":"n""#, entry()),
        ": EOF while parsing an object at line 1 column 11"
    );
    // A name is text, also of what nobody looks into.
    assert_eq!(
        refused(r#"{"\ud800":1}"#, entry()),
        ": unexpected end of hex escape at line 1 column 9"
    );
}

#[test]
fn any_value_stays_as_it_came() {
    const FIELDS: &[Field] = &[
        Field::optional("any", Json::descriptor),
        Field::optional("_meta", Meta::descriptor).or_default(),
    ];
    let descriptor = TypeDescriptor::Object(FIELDS);
    let text = r#"{"any":[1.0, {"a":1,"a":2}],"_meta":{"b": 1}}"#;
    assert_eq!(whole(text, &descriptor), text);
    let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    let text = format!(r#"{{"any":{deep}}}"#);
    assert_eq!(whole(&text, &descriptor), text);
    let (text, reports) = repaired(r#"{"any":1,"_meta":"b"}"#, &descriptor);
    assert_eq!(text, r#"{"any":1}"#);
    assert_eq!(reports, ["/_meta: invalid type: expected an object"]);
}

#[test]
fn typed_values_nest_as_deep_as_the_reader_goes() {
    fn chain() -> &'static TypeDescriptor {
        const FIELDS: &[Field] = &[Field::optional("in", chain)];
        &TypeDescriptor::Object(FIELDS)
    }
    let nested = |depth: usize| format!("{}{{}}{}", r#"{"in":"#.repeat(depth), "}".repeat(depth));
    assert_eq!(whole(&nested(127), chain()), nested(127));
    let path = "/in".repeat(128);
    assert_eq!(
        refused(&nested(128), chain()),
        format!("{path}: nested too deeply")
    );
    // What is beside it is as deep as its own object.
    fn list() -> &'static TypeDescriptor {
        &TypeDescriptor::List(list)
    }
    let siblings = format!("[{}[]]", "[],".repeat(300));
    assert_eq!(whole(&siblings, list()), siblings);
}

#[test]
fn null_and_what_is_inside_an_option_are_told_apart() {
    let option = Option::<Vec<String>>::descriptor();
    assert_eq!(whole("null", option), "null");
    assert_eq!(whole(r#"["a"]"#, option), r#"["a"]"#);
    assert_eq!(
        refused("1", option),
        ": invalid type: number, expected an array"
    );
    assert_eq!(whole("\"null\"", TEXT()), "\"null\"");
}
