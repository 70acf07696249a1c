//! Lists, their odd items, and how many of them are reported.

use crate::json::Described;
use crate::json::descriptor::{Field, TypeDescriptor};

use super::{NUMBERS, entry, refused, repaired, whole};

fn entries() -> &'static TypeDescriptor {
    &TypeDescriptor::List(entry)
}

#[test]
fn an_item_is_refused_by_its_place() {
    assert_eq!(whole(" [ ] ", entries()), "[]");
    assert_eq!(
        whole(r#"[{"name":"a"}, {"name":"b"}]"#, entries()),
        r#"[{"name":"a"},{"name":"b"}]"#
    );
    assert_eq!(
        refused(r#"[{"name":"a"},{"name":[]}]"#, entries()),
        "/1/name: invalid type: sequence, expected a string"
    );
}

#[test]
fn leniency_inside_an_item_is_reported_by_its_path() {
    let (text, reports) = repaired(r#"[{"name":"a"},{"name":"b","count":-1}]"#, entries());
    assert_eq!(text, r#"[{"name":"a"},{"name":"b"}]"#);
    assert_eq!(
        reports,
        ["/1/count: invalid value: integer `-1`, expected u8"]
    );
}

#[test]
fn odd_items_are_left_out_wherever_they_stand() {
    const FIELDS: &[Field] = &[Field::optional("list", entries).valid_items()];
    let descriptor = TypeDescriptor::Object(FIELDS);
    let (text, reports) = repaired(
        r#"{"list":[1,{"name":"a"},{"count":1},{"name":"b"},{"name":{}}]}"#,
        &descriptor,
    );
    assert_eq!(text, r#"{"list":[{"name":"a"},{"name":"b"}]}"#);
    assert_eq!(
        reports,
        [
            "/list/0: invalid type: number, expected an object",
            "/list/2: /name: required member is missing",
            "/list/4: /name: invalid type: map, expected a string",
        ]
    );
    assert_eq!(repaired(r#"{"list":[1]}"#, &descriptor).0, r#"{"list":[]}"#);
    // The list itself must be one.
    assert_eq!(
        refused(r#"{"list":{}}"#, &descriptor),
        "/list: invalid type: object, expected an array"
    );
}

#[test]
fn odd_items_of_a_list_that_may_be_null_are_left_out_too() {
    const FIELDS: &[Field] = &[
        Field::optional("list", Option::<Vec<u8>>::descriptor).valid_items(),
        Field::optional("text", String::descriptor).valid_items(),
    ];
    let descriptor = TypeDescriptor::Object(FIELDS);
    assert_eq!(whole(r#"{"list":null}"#, &descriptor), r#"{"list":null}"#);
    let (text, reports) = repaired(r#"{"list":[1,"2",3],"text":"t"}"#, &descriptor);
    assert_eq!(text, r#"{"list":[1,3],"text":"t"}"#);
    assert_eq!(reports.len(), 1);
}

#[test]
fn items_of_lists_in_lists_are_all_or_nothing() {
    fn rows() -> &'static TypeDescriptor {
        &TypeDescriptor::List(NUMBERS)
    }
    const FIELDS: &[Field] = &[Field::optional("rows", rows).valid_items()];
    let (text, reports) = repaired(
        r#"{"rows":[[1,2],[3,"4"],[],[[]]]}"#,
        &TypeDescriptor::Object(FIELDS),
    );
    assert_eq!(text, r#"{"rows":[[1,2],[]]}"#);
    assert_eq!(
        reports,
        [
            r#"/rows/1: /1: invalid type: string "4", expected u8"#,
            "/rows/3: /0: invalid type: sequence, expected u8",
        ]
    );
}

#[test]
fn what_a_dropped_value_had_dropped_itself_is_forgotten() {
    const FIELDS: &[Field] = &[Field::optional("list", entries).valid_items()];
    let (text, reports) = repaired(
        r#"{"list":[{"name":"a","count":[]},{"count":[],"name":1}]}"#,
        &TypeDescriptor::Object(FIELDS),
    );
    assert_eq!(text, r#"{"list":[{"name":"a"}]}"#);
    assert_eq!(
        reports,
        [
            "/list/0/count: invalid type: sequence, expected u8",
            "/list/1: /name: invalid type: integer `1`, expected a string",
        ]
    );
}

#[test]
fn reports_are_counted_after_the_hundredth() {
    fn numbers() -> &'static TypeDescriptor {
        const FIELDS: &[Field] = &[Field::optional("list", NUMBERS).valid_items()];
        &TypeDescriptor::Object(FIELDS)
    }
    let odd = |count: usize| format!(r#"{{"list":[{}1]}}"#, "null,".repeat(count));
    let (text, reports) = repaired(&odd(100), numbers());
    assert_eq!((text.as_str(), reports.len()), (r#"{"list":[1]}"#, 100));
    assert!(reports[99].starts_with("/list/99: "), "{}", reports[99]);
    for more in [1, 3] {
        let (_, reports) = repaired(&odd(100 + more), numbers());
        assert_eq!(reports.len(), 101);
        assert_eq!(
            reports[100],
            format!(": {more} more values were dropped from this message")
        );
    }
}

#[test]
fn what_was_only_counted_is_forgotten_with_the_value_it_was_in() {
    fn row() -> &'static TypeDescriptor {
        const FIELDS: &[Field] = &[
            Field::optional("list", NUMBERS).valid_items(),
            Field::required("name", String::descriptor),
        ];
        &TypeDescriptor::Object(FIELDS)
    }
    const FIELDS: &[Field] = &[Field::optional("rows", Vec::<Row>::descriptor).valid_items()];
    #[derive(serde::Deserialize)]
    struct Row;
    impl Described for Row {
        fn descriptor() -> &'static TypeDescriptor {
            row()
        }
    }
    let nulls = "null,".repeat(150);
    let text = format!(r#"{{"rows":[{{"list":[{nulls}1]}},{{"list":[null],"name":"n"}}]}}"#);
    let (text, reports) = repaired(&text, &TypeDescriptor::Object(FIELDS));
    assert_eq!(text, r#"{"rows":[{"list":[],"name":"n"}]}"#);
    assert_eq!(
        reports,
        [
            "/rows/0: /name: required member is missing",
            "/rows/1/list/0: invalid type: null, expected u8",
        ]
    );
}
