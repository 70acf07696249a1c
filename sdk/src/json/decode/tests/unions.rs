//! Unions: by a tag, by the members that are there, by the form, and within another object.

use crate::json::descriptor::{DescriptorFn, Field, JsonKind, TaggedVariants, TypeDescriptor};
use crate::json::{Described, Map};

use super::{NUMBER, NUMBERS, TEXT, entry, refused, repaired, whole};

const UNIT: DescriptorFn = <()>::descriptor;

/// A union by the tag `type`.
const fn tagged(default: Option<DescriptorFn>, takes_unknown: bool) -> TypeDescriptor {
    TypeDescriptor::TaggedUnion(TaggedVariants {
        tag: "type",
        known: &[("entry", entry), ("nothing", UNIT), ("tricky", tricky)],
        default,
        takes_unknown,
    })
}

/// A payload with a member that is called as the tag.
fn tricky() -> &'static TypeDescriptor {
    const FIELDS: &[Field] = &[
        Field::optional("type", NUMBER),
        Field::optional("x", NUMBER),
    ];
    &TypeDescriptor::Object(FIELDS)
}

const CLOSED: TypeDescriptor = tagged(None, false);

#[test]
fn a_tag_is_written_first_wherever_it_stood() {
    let written = r#"{"type":"entry","name":"n","count":1}"#;
    for text in [
        written,
        r#"{"name":"n","type":"entry","count":1}"#,
        r#"{"count":1,"name":"n","type":"entry"}"#,
    ] {
        assert_eq!(whole(text, &CLOSED), written);
    }
    let text = r#"{"name":"n","type":"nothing"}"#;
    assert_eq!(whole(text, &CLOSED), r#"{"type":"nothing"}"#);
}

#[test]
fn a_tag_must_be_there_and_be_text() {
    assert_eq!(
        refused(r#"{"name":"n"}"#, &CLOSED),
        "/type: required member is missing"
    );
    assert_eq!(
        refused(r#"{"type":5}"#, &CLOSED),
        "/type: invalid type: integer `5`, expected a string"
    );
    assert_eq!(
        refused("[]", &CLOSED),
        ": invalid type: array, expected an object"
    );
}

#[test]
fn members_beside_a_tag_are_refused_or_left_out_as_they_would_be_without_it() {
    assert_eq!(
        refused(r#"{"type":"entry"}"#, &CLOSED),
        "/name: required member is missing"
    );
    let (text, reports) = repaired(r#"{"count":[],"name":"n","type":"entry"}"#, &CLOSED);
    assert_eq!(text, r#"{"type":"entry","name":"n"}"#);
    assert_eq!(reports, ["/count: invalid type: sequence, expected u8"]);
}

#[test]
fn a_tag_is_no_member_of_what_stands_beside_it() {
    assert_eq!(
        whole(r#"{"type":"tricky","x":1}"#, &CLOSED),
        r#"{"type":"tricky","x":1}"#
    );
    // The first of several tags counts, as in the strict pass.
    let (text, _) = repaired(
        r#"{"count":[],"name":"n","type":"entry","type":7}"#,
        &CLOSED,
    );
    assert_eq!(text, r#"{"type":"entry","name":"n"}"#);
}

#[test]
fn a_tag_may_have_escapes() {
    let text = r#"{"type":"en\u0074ry","name":"n"}"#;
    assert_eq!(whole(text, &CLOSED), text);
}

#[test]
fn an_unknown_tag_keeps_all_members_as_they_came() {
    let text = r#"{"b":[1, 2],"type":"later","a\n":{},"name":5}"#;
    assert_eq!(whole(text, &CLOSED), text);
    // So it does where an object without a tag would be another variant.
    let text = r#"{"x":1,"type":"later","name":"n"}"#;
    assert_eq!(whole(text, &tagged(Some(entry), false)), text);
}

#[test]
fn without_a_tag_the_default_is_read() {
    let descriptor = tagged(Some(entry), false);
    assert_eq!(
        whole(r#"{"name":"n","x":1}"#, &descriptor),
        r#"{"name":"n"}"#
    );
    assert_eq!(
        refused(r#"{"count":1}"#, &descriptor),
        "/name: required member is missing"
    );
    // A member may have the tag's name, and a form that no tag has.
    let text = r#"{"name":"n","type":null}"#;
    assert_eq!(whole(text, &descriptor), r#"{"name":"n"}"#);
    // When the default does not fit, either, the tag is to blame.
    assert_eq!(
        refused(r#"{"type":null}"#, &descriptor),
        "/type: invalid type: null, expected a string"
    );
}

#[test]
fn the_default_may_also_take_what_has_an_unknown_tag() {
    fn loose() -> &'static TypeDescriptor {
        const FIELDS: &[Field] = &[Field::required("type", TEXT), Field::required("n", NUMBER)];
        &TypeDescriptor::Object(FIELDS)
    }
    let descriptor = tagged(Some(loose), true);
    let text = r#"{"n":1,"more":2,"type":"later"}"#;
    assert_eq!(whole(text, &descriptor), r#"{"type":"later","n":1}"#);
    // What it does not take is kept as it came, and nothing of the attempt stays.
    let text = r#"{"n":"1","more":2,"type":"later"}"#;
    assert_eq!(whole(text, &descriptor), text);
    let text = r#"{"type":"later","x":1}"#;
    assert_eq!(whole(text, &descriptor), text);
}

/// A union of objects: one that may lose its `count`, and one with a list.
fn objects() -> &'static TypeDescriptor {
    fn listed() -> &'static TypeDescriptor {
        const FIELDS: &[Field] = &[
            Field::required("name", TEXT),
            Field::required("list", NUMBERS).or_default(),
        ];
        &TypeDescriptor::Object(FIELDS)
    }
    &TypeDescriptor::ObjectUnion {
        expected: "Objects (Entry, Listed)",
        branches: &[(&["name"], entry), (&["name", "list"], listed)],
    }
}

#[test]
fn a_branch_that_takes_all_goes_before_one_that_drops_something() {
    let text = r#"{"name":"n","list":[1],"count":"odd"}"#;
    assert_eq!(whole(text, objects()), r#"{"name":"n","list":[1]}"#);
    let (text, reports) = repaired(r#"{"name":"n","list":{},"count":"odd"}"#, objects());
    assert_eq!(text, r#"{"name":"n"}"#);
    assert_eq!(
        reports,
        [r#"/count: invalid type: string "odd", expected u8"#]
    );
    // The first branch would drop the list.
    let text = r#"{"list":[1],"name":"n"}"#;
    assert_eq!(whole(text, objects()), r#"{"name":"n","list":[1]}"#);
}

#[test]
fn a_branch_whose_members_are_not_there_is_asked_for_its_error_at_most() {
    assert_eq!(
        refused(r#"{"list":[1]}"#, objects()),
        "/name: required member is missing"
    );
    assert_eq!(
        refused(r#"{"name":[]}"#, objects()),
        "/name: invalid type: sequence, expected a string"
    );
}

#[test]
fn of_several_errors_the_deepest_counts() {
    fn outer() -> &'static TypeDescriptor {
        const FIELDS: &[Field] = &[Field::required("in", entry)];
        &TypeDescriptor::Object(FIELDS)
    }
    fn flat() -> &'static TypeDescriptor {
        const FIELDS: &[Field] = &[Field::required("in", NUMBER)];
        &TypeDescriptor::Object(FIELDS)
    }
    for branches in [
        &[(&["in"] as &[_], flat as DescriptorFn), (&["in"], outer)],
        &[(&["in"], outer), (&["in"], flat)],
    ] {
        let descriptor = TypeDescriptor::ObjectUnion {
            expected: "Either (Flat, Outer)",
            branches,
        };
        assert_eq!(
            refused(r#"{"in":{"name":5}}"#, &descriptor),
            "/in/name: invalid type: integer `5`, expected a string"
        );
    }
    let none = TypeDescriptor::ObjectUnion {
        expected: "Nothing ()",
        branches: &[],
    };
    assert_eq!(refused("{}", &none), ": invalid value: expected Nothing ()");
}

#[test]
fn the_first_of_equally_deep_errors_counts() {
    fn first() -> &'static TypeDescriptor {
        const FIELDS: &[Field] = &[Field::required("a", NUMBER)];
        &TypeDescriptor::Object(FIELDS)
    }
    fn second() -> &'static TypeDescriptor {
        const FIELDS: &[Field] = &[Field::required("b", NUMBER)];
        &TypeDescriptor::Object(FIELDS)
    }
    let descriptor = TypeDescriptor::ObjectUnion {
        expected: "Either (First, Second)",
        branches: &[(&["a"], first), (&["b"], second)],
    };
    assert_eq!(refused("{}", &descriptor), "/a: required member is missing");
    // Only the second one has its members.
    assert_eq!(
        refused(r#"{"b":"x"}"#, &descriptor),
        r#"/b: invalid type: string "x", expected u8"#
    );
}

#[test]
fn a_branch_is_complete_with_all_its_members() {
    fn both() -> &'static TypeDescriptor {
        const FIELDS: &[Field] = &[Field::required("a", NUMBER), Field::required("b", NUMBER)];
        &TypeDescriptor::Object(FIELDS)
    }
    fn second() -> &'static TypeDescriptor {
        const FIELDS: &[Field] = &[Field::required("b", NUMBER)];
        &TypeDescriptor::Object(FIELDS)
    }
    let descriptor = TypeDescriptor::ObjectUnion {
        expected: "Either (Both, Second)",
        branches: &[(&["a", "b"], both), (&["b"], second)],
    };
    assert_eq!(
        refused(r#"{"b":{}}"#, &descriptor),
        "/b: invalid type: map, expected u8"
    );
}

#[test]
fn what_is_tolerated_is_not_to_blame() {
    fn tolerant() -> &'static TypeDescriptor {
        const FIELDS: &[Field] = &[
            Field::optional("count", NUMBER).or_default(),
            Field::required("name", TEXT),
        ];
        &TypeDescriptor::Object(FIELDS)
    }
    let by_members = TypeDescriptor::ObjectUnion {
        expected: "One (Tolerant)",
        branches: &[(&["name"], tolerant)],
    };
    let by_form = TypeDescriptor::ValueUnion {
        expected: "One (Tolerant)",
        branches: &[(JsonKind::Object, tolerant)],
    };
    for descriptor in [by_members, by_form] {
        assert_eq!(
            refused(r#"{"count":"odd","name":5}"#, &descriptor),
            "/name: invalid type: integer `5`, expected a string"
        );
    }
}

/// A union of values: nothing, a number, a list whose items may be dropped, an object.
fn values() -> &'static TypeDescriptor {
    &TypeDescriptor::ValueUnion {
        expected: "Values (Null, Number, List, Entry)",
        branches: &[
            (JsonKind::Null, UNIT),
            (JsonKind::Number, NUMBER),
            (JsonKind::Array, NUMBERS),
            (JsonKind::Object, entry),
        ],
    }
}

#[test]
fn a_value_is_read_by_its_form() {
    for text in ["null", "5", "[]", "[1,2]", r#"{"name":"n"}"#] {
        assert_eq!(whole(text, values()), text);
    }
    assert_eq!(
        refused("\"5\"", values()),
        ": invalid type: string, expected Values (Null, Number, List, Entry)"
    );
    assert_eq!(
        refused("[1,null]", values()),
        "/1: invalid type: null, expected u8"
    );
    // An error that lies no deeper than the value is the union's.
    assert_eq!(
        refused("300", values()),
        ": invalid type: number, expected Values (Null, Number, List, Entry)"
    );
    let (text, reports) = repaired(r#"{"name":"n","count":""}"#, values());
    assert_eq!((text.as_str(), reports.len()), (r#"{"name":"n"}"#, 1));
}

#[test]
fn a_value_that_one_branch_takes_as_it_is_loses_nothing_to_another() {
    fn tolerant() -> &'static TypeDescriptor {
        const FIELDS: &[Field] = &[Field::optional("a", NUMBER).or_default()];
        &TypeDescriptor::Object(FIELDS)
    }
    fn strict() -> &'static TypeDescriptor {
        const FIELDS: &[Field] = &[Field::required("a", TEXT)];
        &TypeDescriptor::Object(FIELDS)
    }
    let descriptor = TypeDescriptor::ValueUnion {
        expected: "Either (Tolerant, Strict)",
        branches: &[(JsonKind::Any, tolerant), (JsonKind::Any, strict)],
    };
    assert_eq!(whole(r#"{"a":"x"}"#, &descriptor), r#"{"a":"x"}"#);
    assert_eq!(whole(r#"{"a":1}"#, &descriptor), r#"{"a":1}"#);
    let (text, reports) = repaired(r#"{"a":[]}"#, &descriptor);
    assert_eq!((text.as_str(), reports.len()), ("{}", 1));
    // Dropping a duplicate member is not strict.
    let (text, reports) = repaired(r#"{"a":"x","a":"y"}"#, &descriptor);
    assert_eq!(text, "{}");
    assert_eq!(reports.len(), 2);
}

#[test]
fn what_comes_behind_a_union_may_be_dropped_again() {
    const FIELDS: &[Field] = &[
        Field::required("value", values),
        Field::optional("object", objects),
        Field::optional("count", NUMBER).or_default(),
    ];
    for text in [
        r#"{"count":"","value":1}"#,
        r#"{"count":"","value":1,"object":{"name":"n"}}"#,
    ] {
        let (text, reports) = repaired(text, &TypeDescriptor::Object(FIELDS));
        assert!(text.starts_with(r#"{"value":1"#), "{text}");
        assert_eq!(reports, [r#"/count: invalid type: string "", expected u8"#]);
    }
}

#[test]
fn a_branch_is_only_tried_with_values_of_its_form() {
    let descriptor = TypeDescriptor::ValueUnion {
        expected: "List (List)",
        branches: &[(JsonKind::Array, Option::<Vec<u8>>::descriptor)],
    };
    assert_eq!(whole("[1]", &descriptor), "[1]");
    assert_eq!(
        refused("null", &descriptor),
        ": invalid type: null, expected List (List)"
    );
}

#[test]
fn a_union_in_a_union_drops_nothing_while_that_tries_strictly() {
    fn tolerant() -> &'static TypeDescriptor {
        const FIELDS: &[Field] = &[Field::optional("a", NUMBER).or_default()];
        &TypeDescriptor::ValueUnion {
            expected: "One (Tolerant)",
            branches: &[(JsonKind::Any, || &TypeDescriptor::Object(FIELDS))],
        }
    }
    let descriptor = TypeDescriptor::ValueUnion {
        expected: "Either (Tolerant, Texts)",
        branches: &[
            (JsonKind::Any, tolerant),
            (JsonKind::Any, Map::<String>::descriptor),
        ],
    };
    assert_eq!(whole(r#"{"a":"x"}"#, &descriptor), r#"{"a":"x"}"#);
    assert_eq!(repaired(r#"{"a":[]}"#, &descriptor).0, "{}");
}

/// An object that shares its members with a union by the tag `type`.
fn shared(fields: &'static [Field]) -> TypeDescriptor {
    TypeDescriptor::Object(fields)
}

fn closed() -> &'static TypeDescriptor {
    &CLOSED
}

#[test]
fn a_union_has_members_of_the_object_around_it() {
    const FIELDS: &[Field] = &[
        Field::required("id", NUMBER),
        Field::required("type", closed).flattened(),
    ];
    assert_eq!(
        whole(r#"{"name":"n","type":"entry","id":1}"#, &shared(FIELDS)),
        r#"{"id":1,"type":"entry","name":"n"}"#
    );
    assert_eq!(
        refused(r#"{"id":1,"name":"n"}"#, &shared(FIELDS)),
        "/type: required member is missing"
    );
    // What the object has taken is no member of an unknown variant.
    assert_eq!(
        whole(r#"{"x":1,"id":1,"type":"later"}"#, &shared(FIELDS)),
        r#"{"id":1,"x":1,"type":"later"}"#
    );
}

#[test]
fn a_union_that_may_be_absent_is_so_without_its_tag() {
    const FIELDS: &[Field] = &[
        Field::optional("type", Option::<Closed>::descriptor).flattened(),
        Field::required("id", NUMBER),
    ];
    #[derive(serde::Deserialize)]
    struct Closed;
    impl Described for Closed {
        fn descriptor() -> &'static TypeDescriptor {
            &CLOSED
        }
    }
    for text in [r#"{"id":1,"name":5}"#, r#"{"id":1,"type":null}"#] {
        assert_eq!(whole(text, &shared(FIELDS)), r#"{"id":1}"#);
    }
    assert_eq!(
        whole(r#"{"id":1,"type":"entry","name":"n"}"#, &shared(FIELDS)),
        r#"{"type":"entry","name":"n","id":1}"#
    );
    assert_eq!(
        refused(r#"{"id":1,"type":"entry"}"#, &shared(FIELDS)),
        "/name: required member is missing"
    );
}

#[test]
fn the_tag_of_an_absent_union_is_nobodys_member() {
    fn by_kind() -> &'static TypeDescriptor {
        &TypeDescriptor::TaggedUnion(TaggedVariants {
            tag: "kind",
            known: &[],
            default: None,
            takes_unknown: false,
        })
    }
    const FIELDS: &[Field] = &[
        Field::optional("type", closed).flattened(),
        Field::required("kind", by_kind).flattened(),
    ];
    assert_eq!(
        whole(r#"{"type":null,"kind":"later","x":1}"#, &shared(FIELDS)),
        r#"{"kind":"later","x":1}"#
    );
}

#[test]
fn what_the_object_has_taken_makes_no_branch_complete() {
    fn by_id() -> &'static TypeDescriptor {
        const FIELDS: &[Field] = &[Field::required("id", NUMBER)];
        &TypeDescriptor::Object(FIELDS)
    }
    fn by_x() -> &'static TypeDescriptor {
        const FIELDS: &[Field] = &[Field::required("x", NUMBER)];
        &TypeDescriptor::Object(FIELDS)
    }
    fn union() -> &'static TypeDescriptor {
        &TypeDescriptor::ObjectUnion {
            expected: "Either (ById, ByX)",
            branches: &[(&["id"], by_id), (&["x"], by_x)],
        }
    }
    const FIELDS: &[Field] = &[
        Field::required("id", NUMBER),
        Field::required("", union).flattened(),
    ];
    assert_eq!(
        refused(r#"{"id":1,"x":[]}"#, &shared(FIELDS)),
        "/x: invalid type: sequence, expected u8"
    );
}

#[test]
fn an_odd_union_is_left_out_and_its_members_are_free_again() {
    const FIELDS: &[Field] = &[
        Field::optional("type", closed).or_default().flattened(),
        Field::required("name", NUMBER),
    ];
    let (text, reports) = repaired(r#"{"type":"entry","name":7}"#, &shared(FIELDS));
    assert_eq!(text, r#"{"name":7}"#);
    assert_eq!(
        reports,
        ["/type: invalid type: integer `7`, expected a string"]
    );
}
