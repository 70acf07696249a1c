//! The bundled documents are complete, and broken ones are named.

use acp_schema::{CoalescingInfo, DIALECTS, Document, Error, Method, Protocol, Side, TextPattern};

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
fn the_documents_are_complete() {
    let counts = |document: Result<Document, Error>| {
        let document = document.expect("the document is valid");
        // Nobody else checks the bundled documents.
        document.check().expect("the document is valid");
        let protocol = Protocol::from_document(&document).expect("the document is valid");
        (document.defs().count(), protocol.methods().count())
    };
    assert_eq!(counts(Document::v1()), (178, 25));
    assert_eq!(counts(Document::v2()), (214, 18));
    let first = Document::v1_unstable();
    assert_eq!(counts(first), (252, 40));
    let second = Document::v2_unstable();
    assert_eq!(counts(second), (264, 33));
}

#[test]
fn the_documents_of_dialects_are_complete() {
    for (name, text) in DIALECTS {
        let document = Document::parse(name, text).expect("an object");
        document.check().expect("valid");
        let protocol = Protocol::from_document(&document).expect("valid");
        let mut methods = protocol.methods();
        assert!(methods.all(|method| method.facts.is_some()), "{name}");
    }
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
fn a_wrong_patch_is_named_with_its_index_and_path() {
    for (patch, expected) in [
        (
            r#"[{"op": "add", "path": "/$defs/A/title", "value": "t"},
                {"op": "add", "path": "/$defs/B/x", "value": 1}]"#,
            "mine.json: /x-patch/1: add at `/$defs/B/x`",
        ),
        (
            r#"[{"op": "test", "path": "/$defs/A/type", "value": "string"}]"#,
            "mine.json: /x-patch/0: test at `/$defs/A/type`",
        ),
        (
            r#"[{"op": "dance", "path": "/$defs/A"}]"#,
            "mine.json: /x-patch/0: ",
        ),
        (
            r#"[{"op": "add", "path": "/$defs/A/x"}]"#,
            "mine.json: /x-patch/0: ",
        ),
        (r#"{"op": "remove"}"#, "mine.json: /x-patch: not a list"),
    ] {
        let error = overlay_error(&format!(r#"{{"x-patch": {patch}}}"#));
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_misspelt_member_of_an_overlay_is_named() {
    let error = overlay_error(r#"{"x-pach": []}"#);
    assert!(error.starts_with("mine.json: /x-pach: "), "{error}");
    let error = overlay_error("[]");
    assert!(error.starts_with("mine.json: : not an object"), "{error}");
}

#[test]
fn faults_of_an_overlay_are_those_of_its_file() {
    for overlay in [
        r#"{"$defs": {"B": {"x-c": 1}}}"#,
        r#"{"$defs": {"BRequest": {"x-method": "b", "x-side": "agent"}}}"#,
        r#"{"$defs": {"BRequest": {"x-method": "b"}}}"#,
        r##"{"$defs": {"B": {"$ref": "#/$defs/Gone"}}}"##,
        r#"{"x-patch": [{"op": "add", "path": "/$defs/A/x-c", "value": 1}]}"#,
        r##"{"x-patch": [{"op": "add", "path": "/$defs/A/allOf", "value": [{"$ref": "#/$defs/Gone"}]}]}"##,
    ] {
        let document = Document::parse("base.json", BASE)
            .and_then(|base| base.overlay("other.json", r#"{"$defs": {"C": {}}}"#))
            .and_then(|base| base.overlay("mine.json", overlay))
            .expect("the overlay applies");
        let error = Protocol::from_document(&document).expect_err("must fail");
        assert!(
            error.to_string().starts_with("mine.json: /$defs/"),
            "{error}"
        );
    }
}

#[test]
fn faults_of_the_base_stay_its_own() {
    let document = Document::parse("base.json", r#"{"$defs": {"A": {"x-c": 1}}}"#)
        .and_then(|base| base.overlay("mine.json", r#"{"$defs": {"B": {}}}"#))
        .expect("the overlay applies");
    let error = Protocol::from_document(&document).expect_err("must fail");
    assert!(
        error.to_string().starts_with("base.json: /$defs/A/x-c"),
        "{error}"
    );
}

#[test]
fn a_reference_to_nothing_is_named() {
    for (reference, expected) in [
        (
            "#/$defs/Gone",
            "base.json: /$defs/A/properties/b/items/$ref: no definition `Gone`",
        ),
        (
            "other.json#/$defs/A",
            "base.json: /$defs/A/properties/b/items/$ref: ",
        ),
    ] {
        let error = table_error(&format!(
            r##"{{"$defs": {{"A": {{"properties": {{"b": {{"items": {{"$ref": "{reference}"}}}}}}}}}}}}"##
        ));
        assert!(error.starts_with(expected), "{error}");
    }
    let error = table_error(r##"{"$defs": {}, "anyOf": [{"$ref": "#/$defs/A"}]}"##);
    assert!(
        error.starts_with("base.json: /anyOf/0/$ref: no definition `A`"),
        "{error}"
    );
}

#[test]
fn a_member_called_ref_is_no_reference() {
    let text = r##"{"$defs": {
        "A": {"properties": {"$ref": {"type": "string"}}, "default": {"$ref": "#/nothing"}}
    }}"##;
    let document = Document::parse("base.json", text).expect("an object");
    Protocol::from_document(&document).expect("nothing is wrong");
}

/// One name as request and notification, and on both sides.
const FORMS: &str = r#"{"$defs": {
    "RelayRequest": {"x-method": "relay", "x-side": "proxy"},
    "RelayResponse": {"x-method": "relay", "x-side": "proxy"},
    "RelayNotification": {"x-method": "relay", "x-side": "proxy"},
    "SayRequest": {"x-method": "say", "x-side": "client"},
    "SayResponse": {"x-method": "say", "x-side": "client"},
    "SayNotification": {"x-method": "say", "x-side": "agent"}
}}"#;

#[test]
fn a_method_can_have_two_forms_and_two_sides() {
    let document = Document::parse("forms.json", FORMS).expect("an object");
    let protocol = Protocol::from_document(&document).expect("nothing is wrong");
    assert_eq!(protocol.methods().count(), 4);
    let params = |method: Option<&Method>| method.map(|method| method.kind.params().to_owned());
    for (side, name, request, notification) in [
        (
            Side::PROXY,
            "relay",
            Some("RelayRequest"),
            Some("RelayNotification"),
        ),
        (Side::CLIENT, "say", Some("SayRequest"), None),
        (Side::AGENT, "say", None, Some("SayNotification")),
        (Side::AGENT, "relay", None, None),
    ] {
        assert_eq!(params(protocol.request(side, name)).as_deref(), request);
        assert_eq!(
            params(protocol.notification(side, name)).as_deref(),
            notification
        );
        let any = params(protocol.method(side, name));
        assert_eq!(any.as_deref(), request.or(notification));
    }
}

#[test]
fn two_definitions_for_one_form_are_named() {
    let text = r#"{"$defs": {
        "ANotification": {"x-method": "a", "x-side": "agent"},
        "BNotification": {"x-method": "a", "x-side": "agent"}
    }}"#;
    let error = table_error(text);
    assert!(
        error.contains("/$defs/BNotification") && error.contains("ANotification"),
        "{error}"
    );
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
fn roles_are_those_that_the_document_names() {
    let text = r#"{"$defs": {
        "RunRequest": {"x-method": "run", "x-side": "kernel"},
        "RunResponse": {"x-method": "run", "x-side": "kernel"},
        "LogNotification": {"x-method": "log", "x-side": "both"},
        "ShowNotification": {"x-method": "show", "x-side": "code-editor"},
        "CancelNotification": {"x-method": "$/cancel", "x-side": "protocol"}
    }}"#;
    let document = Document::parse("notebook.json", text).expect("the document is valid");
    let protocol = Protocol::from_document(&document).expect("the table is complete");
    let [editor, kernel] = ["code-editor", "kernel"].map(|name| Side::new(name).expect("a name"));
    assert_eq!(protocol.roles(), [editor, kernel]);
    assert_eq!(protocol.peer(editor), Some(kernel));
    assert_eq!(protocol.peer(kernel), Some(editor));
    assert_eq!(protocol.peer(Side::AGENT), None);
    for role in [editor, kernel] {
        let log = protocol.notification(role, "log").expect("both handle it");
        assert_eq!(log.side, Side::BOTH);
        assert!(protocol.method(role, "$/cancel").is_none());
    }
    assert!(protocol.request(editor, "run").is_none());
}

#[test]
fn a_third_role_and_a_form_that_two_definitions_have_are_named() {
    let mark = |name: &str, side: &str| {
        format!(r#""{name}Notification": {{"x-method": "a", "x-side": "{side}"}}"#)
    };
    let error =
        |marks: [String; 3]| table_error(&format!(r#"{{"$defs": {{{}}}}}"#, marks.join(", ")));
    let third = error([mark("A", "agent"), mark("B", "client"), mark("C", "agnet")]);
    assert!(
        third.contains(
            "/$defs/CNotification/x-side: third role `agnet` beside `agent` and `client`"
        ),
        "{third}"
    );
    let twice = error([mark("A", "agent"), mark("B", "client"), mark("C", "both")]);
    assert!(
        twice.contains("/$defs/CNotification: `ANotification` is already"),
        "{twice}"
    );
}

#[test]
fn an_unknown_keyword_is_named_but_a_property_is_not_one() {
    let error = table_error(r#"{"$defs": {"A": {"properties": {"x-b": {"x-c": 1}}}}}"#);
    assert!(
        error.contains("/$defs/A/properties/x-b/x-c: unknown keyword"),
        "{error}"
    );
}

#[test]
fn the_versions_are_those_of_the_files() {
    let versions = [Document::v1(), Document::v2()].map(|document| {
        let document = document.expect("the document is valid");
        let version = document.version().expect("well formed");
        version.map(|version| {
            let leniency = [version.null_ids, version.late_initialize];
            (version.number, leniency, version.unsupported_code)
        })
    });
    let expected = [
        Some((1, [true; 2], None)),
        Some((2, [false; 2], Some(-32022))),
    ];
    assert_eq!(versions, expected);
}

#[test]
fn a_marked_notification_cancels_requests() {
    let definition = |name: &str, cancels: &str| {
        format!(
            r#""{name}": {{"type": "object", "properties": {{"job": {{"type": "string"}}}},
            "required": ["job"], "x-side": "protocol", "x-method": "job/{name}",
            "x-cancels": {cancels}}}"#
        )
    };
    let document = |definitions: &[String]| {
        let text = format!(r#"{{"$defs": {{{}}}}}"#, definitions.join(","));
        Document::parse("base.json", &text).unwrap().cancellation()
    };
    let found = document(&[definition("Abort", r#""job""#)])
        .unwrap()
        .unwrap();
    assert_eq!(
        (found.method.as_str(), found.request_id.as_str()),
        ("job/Abort", "job")
    );
    assert_eq!(document(&[]).unwrap(), None);
    let twice = [definition("A", r#""job""#), definition("B", r#""job""#)];
    for (definitions, expected) in [
        (
            &twice[..],
            "/$defs/B/x-cancels: `A` cancels requests already",
        ),
        (
            &[definition("A", "true")],
            "/$defs/A/x-cancels: not the name of a required member",
        ),
        (
            &[definition("A", r#""id""#)],
            "/$defs/A/x-cancels: not the name of a required member",
        ),
        (
            &[definition("ARequest", r#""job""#)],
            "not the params of a notification",
        ),
    ] {
        let error = document(definitions).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_notification_of_a_session_cancels_its_requests() {
    let document = |member: &str, cancels: &str| {
        let text = format!(
            r#"{{"$defs": {{
                "Abort": {{"required": ["job"], "x-side": "protocol", "x-method": "abort", "x-cancels": "job"}},
                "WorkRequest": {{"x-side": "agent", "x-method": "work"}},
                "WorkResponse": {{"x-side": "agent", "x-method": "work"}},
                "Stop": {{"required": ["{member}"], "x-side": "agent", "x-method": "stop", "x-cancels": {cancels}}}
            }}}}"#
        );
        Document::parse("base.json", &text).unwrap().cancellation()
    };
    let found = document("sessionId", r#"["work"]"#).unwrap().unwrap();
    assert_eq!(found.method, "abort");
    let [stop] = &found.of_sessions[..] else {
        panic!("{found:?}");
    };
    assert_eq!(
        (&*stop.method, &stop.requests[..]),
        ("stop", &["work".to_owned()][..])
    );
    for (member, cancels) in [
        ("job", r#"["work"]"#),
        ("sessionId", r#"["stop"]"#),
        ("sessionId", "[1]"),
    ] {
        let error = document(member, cancels).unwrap_err().to_string();
        assert!(
            error.contains("/$defs/Stop/x-cancels: not a list of requests"),
            "{error}"
        );
    }
}

#[test]
fn marked_notifications_are_joined_by_a_pattern() {
    let document = |method: &str, keyword: &str| {
        let text = format!(
            r##"{{"$defs": {{
                "Say": {{"type": "object", "properties": {{
                    "id": {{"type": "string"}},
                    "block": {{"$ref": "#/$defs/Block"}}}},
                    "x-side": "client", {method} "x-coalesce": {keyword}}},
                "Block": {{"oneOf": [
                    {{"type": "object", "properties": {{"kind": {{"const": "text"}}}},
                      "allOf": [{{"$ref": "#/$defs/Text"}}]}},
                    {{"type": "object", "properties": {{"kind": {{"const": "image"}}}}}}]}},
                "Text": {{"type": "object", "properties": {{
                    "text": {{"type": "string"}}, "size": {{"type": "integer"}}}}}}}}}}"##
        );
        Document::parse("base.json", &text).unwrap()
    };
    let method = r#""x-method": "say","#;
    let valid = r#"{"text": "/block/text", "tags": {"/block/kind": ["text"]}, "equal": ["/id"]}"#;
    let (text, tag) = (TextPattern::Text, TextPattern::Tag(vec!["text".into()]));
    let block = [("kind".to_owned(), tag), ("text".to_owned(), text)];
    let members = [
        ("block".to_owned(), TextPattern::Object(block.into())),
        ("id".to_owned(), TextPattern::Equal),
    ];
    let info = CoalescingInfo {
        method: "say".into(),
        params: TextPattern::Object(members.into()),
    };
    let marked = document(method, valid);
    assert_eq!(marked.coalescing().unwrap(), [("Say", info)]);
    assert!(marked.check().is_ok());
    for (method, keyword, expected) in [
        ("", valid, "not the params of a notification"),
        (method, "true", "invalid type"),
        (method, "{}", "missing field `text`"),
        (method, r#"{"text": "/a", "as": 1}"#, "unknown field `as`"),
        (method, r#"{"text": "id"}"#, "`id` is not a path"),
        (method, r#"{"text": "/text"}"#, "no member at `/text`"),
        (
            method,
            r#"{"text": "/block/size"}"#,
            "`/block/size` is not a string",
        ),
        (
            method,
            r#"{"text": "/id", "equal": ["/block/none"]}"#,
            "no member at `/block/none`",
        ),
        (
            method,
            r#"{"text": "/id", "tags": {"/block/kind": ["txt"]}}"#,
            "`txt` is not a value of `/block/kind`",
        ),
        (
            method,
            r#"{"text": "/id", "equal": ["/id"]}"#,
            "`/id` is named twice",
        ),
        (
            method,
            r#"{"text": "/block/text", "equal": ["/block"]}"#,
            "`/block` is named twice",
        ),
    ] {
        let error = document(method, keyword).coalescing().unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("base.json: /$defs/Say/x-coalesce: ") && error.contains(expected),
            "{error}"
        );
        assert!(document(method, keyword).check().is_err());
    }
}

#[test]
fn root_keywords_of_another_form_are_named() {
    for (keyword, expected) in [
        (r#""x-version": 1"#, "base.json: /x-version: not an object"),
        (r#""x-version": {}"#, "base.json: /x-version: no `number`"),
        (
            r#""x-version": {"number": 65536}"#,
            "base.json: /x-version/number: ",
        ),
        (
            r#""x-version": {"number": 1, "batches": true}"#,
            "base.json: /x-version/batches: unknown",
        ),
        (
            r#""x-transcript": []"#,
            "base.json: /x-transcript: not an object",
        ),
        (
            r#""x-transcript": {"show": ["a", 1]}"#,
            "base.json: /x-transcript/show: not a list",
        ),
        (
            r#""x-transcript": {"hide": []}"#,
            "base.json: /x-transcript/hide: unknown",
        ),
        (
            r#""x-sensitive": false"#,
            "base.json: /x-sensitive: not `true`",
        ),
    ] {
        let error = table_error(&format!(r#"{{{keyword}, "$defs": {{}}}}"#));
        assert!(error.starts_with(expected), "{error}");
    }
}
