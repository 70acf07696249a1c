//! Documents that cannot be generated: the error says where, what, and what to do.

use acp_codegen::{Error, Options, generate};
use acp_schema::Document;

/// The error of a document with the given definitions.
fn error(definitions: &str) -> String {
    let text = format!(r#"{{"$defs": {definitions}}}"#);
    let result: Result<_, Error> = Document::parse("test.json", &text)
        .map_err(Error::from)
        .and_then(|document| generate(&document, &Options::other()));
    result.expect_err("the document is at fault").to_string()
}

#[test]
fn each_fault_is_named_with_its_place_and_a_remedy() {
    for (definitions, expected) in [
        (
            r#"{"A": {"type": "object", "properties": {"b/c": {"type": "object", "properties": {
                "d": {"allOf": [{"type": "string"}, {"type": "integer"}]}}}}}}"#,
            "/$defs/A/properties/b~1c/properties/d: the parts of an `allOf` differ in `type`; \
             compose objects only, or define one schema with all members",
        ),
        (
            r#"{"A": {"anyOf": [{"type": "object", "properties": {"t": {"const": "x"}}},
                {"type": "object", "properties": {"b": {"type": "string"}}}]}}"#,
            "/$defs/A/anyOf/1: a branch has neither a tag nor a name; \
             give it a `title`, which becomes the name of the variant",
        ),
        (
            r#"{"AB": {"type": "string"}, "A": {"type": "object", "properties": {"b": {"type": "object",
                "properties": {"x": {"type": "string"}}}}}}"#,
            "/$defs/A/properties/b: its type would be called `AB`, as that of /$defs/AB is; \
             define one of them in `$defs`, under another name",
        ),
        (
            r##"{"A": {"oneOf": [{"type": "object", "required": ["t"], "allOf": [{"$ref": "#/$defs/B"}],
                "properties": {"t": {"type": "string", "const": "x"}, "more": {"type": "string"}}}]},
                "B": {"type": "object"}}"##,
            "/$defs/A/oneOf/0: a branch both refers to a type and adds properties; \
             move the properties into the type",
        ),
        (
            r#"{"A": {"type": "object", "properties": {"a": {"type": "integer", "format": "int8",
                "default": 300}}}}"#,
            "/$defs/A/properties/a/default: the default has no expression in Rust; write a value of \
             the member's type that is no union of objects, or remove it",
        ),
        (
            r#"{"A": {"type": "object", "properties": {"a": false, "b": {"enum": []}}}}"#,
            "/$defs/A/properties/b: no value is valid here; remove the schema, or allow a value",
        ),
        (
            r##"{"A": {"oneOf": [{"type": "object", "properties": {"t": {"const": "x"}},
                "allOf": [{"$ref": "#/$defs/B"}]}]}, "B": {"type": "string"}}"##,
            "/$defs/A/oneOf/0: a branch has a tag beside a type that is not an object; \
             refer to the definition of an object, or put the value into a property",
        ),
        (
            r#"{"A": {"type": "object", "additionalProperties": true, "oneOf": [{"type": "object",
                "properties": {"t": {"const": "x"}}}]}}"#,
            "/$defs/A: a union among the members of an object that may have further members; \
             remove `additionalProperties`, or move the union into a property",
        ),
        (
            r#"{"A": {"type": "object", "anyOf": [{"title": "Text", "type": "string"}]}}"#,
            "/$defs/A: a union among an object's members has a branch that is not an object; \
             make every branch an object, or move the union into a property",
        ),
        (
            r#"{"NewNotification": {"type": "object", "x-method": "_a", "x-side": "agent"}}"#,
            "/$defs/NewNotification: its method would be the function `new`, which all traits \
             and handles have already; rename the definition, which gives the function its name",
        ),
        (
            r#"{"Option": {"type": "string"}}"#,
            "/$defs/Option: the name is taken by Rust; rename the definition (and its `$ref`s)",
        ),
        (
            r#"{"a-b": {"type": "string"}}"#,
            "/$defs/a-b: `a-b` is not a valid name of a Rust type; \
             use letters and digits, a capital letter first",
        ),
        (
            r#"{"A": {"anyOf": [{"title": "1", "type": "integer", "const": 1}]}}"#,
            "/$defs/A: `1` is not a valid name of a constant; \
             give the value a `title` of letters and digits, a letter first",
        ),
        (
            r#"{"AgentHandle": {"type": "string"},
                "DoNotification": {"type": "object", "x-method": "do", "x-side": "agent"}}"#,
            "/$defs/AgentHandle: the name is taken by a generated trait or handle; \
             rename the definition (and its `$ref`s)",
        ),
        (
            r#"{"DoNotification": {"type": "object", "x-method": "do", "x-side": "both"}}"#,
            "/$defs/DoNotification/x-side: `both` in a document that does not name two roles; \
             mark other methods with the names of the roles, or use one role for all",
        ),
        (
            r#"{"A": {"type": "object", "properties": {"b": {"type": "object",
                "properties": {"x": {"type": "string"}}}}}, "AB": {"type": "string"}}"#,
            "/$defs/AB: the name is taken by /$defs/A/properties/b; \
             rename the definition (and its `$ref`s)",
        ),
    ] {
        assert_eq!(error(definitions), format!("test.json: {expected}"));
    }
}

#[test]
fn names_made_of_roles_are_checked() {
    let method = |side: &str| {
        format!(
            r#""{side}Notification": {{"type": "object", "x-method": "do", "x-side": "{side}"}}"#
        )
        .replacen(side, &side.replace(['-', '_'], "").to_uppercase(), 1)
    };
    assert_eq!(
        error(&format!("{{{}}}", method("service"))),
        "x-side: the name `Service`, made of a role, is taken by the runtime; rename the role"
    );
    let two = format!(
        r#"{{{}, "OtherNotification": {{"type": "object", "x-method": "do", "x-side": "a_b"}}}}"#,
        method("a-b")
    );
    assert_eq!(
        error(&two),
        "x-side: the name `AB`, made of a role, is taken by the other role; rename the role"
    );
}

#[test]
fn a_reference_to_nothing_is_named() {
    let text = error(r##"{"A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}}}"##);
    assert!(text.contains("/$defs/A/properties/b"), "{text}");
    assert!(text.contains('B'), "{text}");
}

#[test]
fn a_hint_that_nothing_uses_is_an_error_for_the_document_it_belongs_to() {
    let document = Document::parse("test.json", r#"{"$defs": {}}"#).unwrap();
    let error = generate(&document, &Options::v1()).unwrap_err().to_string();
    assert!(error.contains("session/prompt (RequiredMethod)"), "{error}");
    assert!(generate(&document, &Options::other()).is_ok());
}

/// Cargo shows the `Debug` form of what a build script's `main` returns.
#[test]
fn a_build_script_shows_the_message() {
    let result = acp_codegen::Builder::v1()
        .overlay("no-such-file.json")
        .generate();
    let error = result.unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
    assert!(
        error.to_string().starts_with("no-such-file.json: "),
        "{error}"
    );
}
