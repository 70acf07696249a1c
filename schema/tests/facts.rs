//! Facts of methods are complete, and agree with the definitions.

use acp_schema::{
    AccessRight, Attachment, Content, ContentInfo, Document, EXTENSIONS, Login, MethodFacts,
    Protocol, Retry, Scope, Side,
};
use serde_json::Value;

#[track_caller]
fn table_error(text: &str) -> String {
    let document = Document::parse("base.json", text).expect("an object");
    let error = Protocol::from_document(&document).expect_err("must fail");
    error.to_string()
}

/// A document with one request whose params have the keywords `facts` besides.
fn with_facts(facts: &str, required: &str) -> String {
    let marks = r#""x-side": "agent", "x-method": "do""#;
    let id = r#""properties": {"sessionId": {"type": "string"}}, "required": "#;
    format!(
        r#"{{"$defs": {{
            "DoRequest": {{"type": "object", {id}{required}, {marks} {facts}}},
            "DoResponse": {{"type": "object", {marks}}}
        }}}}"#
    )
}

#[test]
fn facts_are_complete_and_agree_with_the_params() {
    const ALL: &str =
        r#", "x-scope": "session", "x-access": "owner", "x-retry": "never", "x-joins": "leaves""#;
    let document = Document::parse("base.json", &with_facts(ALL, r#"["sessionId"]"#));
    let protocol = Protocol::from_document(&document.expect("an object")).expect("valid");
    let method = protocol.method(Side::AGENT, "do").expect("a method");
    let expected = MethodFacts {
        scope: Scope::Session,
        access: AccessRight::Owner,
        retry: Retry::Never,
        joins: Attachment::Leaves,
        login: None,
        capability: None,
    };
    assert_eq!(method.facts, Some(expected));

    let login =
        |word: &str| with_facts(&format!(r#"{ALL}, "x-login": {word}"#), r#"["sessionId"]"#);
    let document = Document::parse("base.json", &login(r#""out""#)).expect("an object");
    let protocol = Protocol::from_document(&document).expect("valid");
    let facts = protocol
        .method(Side::AGENT, "do")
        .and_then(|method| method.facts.clone());
    assert_eq!(facts.and_then(|facts| facts.login), Some(Login::Out));

    let replaced = |old: &str, new: &str| with_facts(&ALL.replace(old, new), r#"["sessionId"]"#);
    for (text, expected) in [
        (
            replaced(r#", "x-retry": "never""#, ""),
            "DoRequest/x-retry: missing beside `x-scope`",
        ),
        (
            replaced("owner", "anyone"),
            "DoRequest/x-access: unknown `anyone`; expected one of reader, session, owner",
        ),
        (
            replaced(r#""session""#, r#""connection""#),
            "DoRequest/x-scope: the params require `sessionId`",
        ),
        (
            with_facts(ALL, "[]"),
            "DoRequest/x-scope: the params do not require `sessionId`",
        ),
        (
            with_facts(&ALL.replace(r#""session""#, r#""connection""#), "[]"),
            "DoRequest/x-joins: the params do not require `sessionId`",
        ),
        (
            replaced("leaves", "creates"),
            "DoRequest/x-joins: the result does not require `sessionId`",
        ),
        (
            login(r#""again""#),
            "DoRequest/x-login: unknown `again`; expected one of in, out",
        ),
        (
            replaced(r#""leaves""#, r#""leaves", "x-capability": "do""#),
            "DoRequest/x-capability: no JSON Pointer",
        ),
        (
            with_facts(r#", "x-login": "in""#, "[]"),
            "DoRequest/x-scope: missing beside `x-login`",
        ),
        (
            with_facts("", "[]").replace(
                r#""DoResponse": {"#,
                r#""DoResponse": {"x-joins": "keeps", "#,
            ),
            "DoResponse/x-joins: not the params of a method",
        ),
    ] {
        let error = table_error(&text);
        let expected = format!("base.json: /$defs/{expected}");
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn a_file_has_facts_of_all_of_its_methods_or_of_none() {
    let facts =
        r#", "x-scope": "connection", "x-access": "owner", "x-retry": "safe", "x-joins": "keeps""#;
    let base = Document::parse("base.json", &with_facts(facts, "[]")).expect("an object");
    let overlay = r#"{"$defs": {
        "PingNotification": {"type": "object", "x-side": "agent", "x-method": "ping"}
    }}"#;
    let both = base.clone().overlay("mine.json", overlay).expect("applies");
    let protocol = Protocol::from_document(&both).expect("valid");
    let facts = |name| {
        protocol
            .method(Side::AGENT, name)
            .map(|it| it.facts.is_some())
    };
    assert_eq!((facts("do"), facts("ping")), (Some(true), Some(false)));

    let one = overlay.replace(
        r#""$defs": {"#,
        r#""$defs": {"PongNotification": {"type": "object", "x-side": "agent", "x-method": "pong",
            "x-scope": "connection", "x-access": "owner", "x-retry": "safe", "x-joins": "keeps"},"#,
    );
    let both = base.overlay("mine.json", &one).expect("applies");
    let error = Protocol::from_document(&both)
        .expect_err("must fail")
        .to_string();
    let expected = "mine.json: /$defs/PingNotification: no facts of `ping`";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn every_method_of_the_bundled_documents_has_facts() {
    for document in [Document::v1_unstable(), Document::v2_unstable()] {
        let document = document.and_then(|all| all.overlay("extensions.json", EXTENSIONS));
        let document = document.expect("the document is valid");
        let protocol = Protocol::from_document(&document).expect("the document is valid");
        let without: Vec<&str> = protocol
            .methods()
            .filter(|method| method.facts.is_none())
            .map(|method| method.name.as_str())
            .collect();
        assert!(without.is_empty(), "{without:?}");
        let ours = protocol
            .methods()
            .filter(|method| method.name.starts_with("_acp-sdk/"));
        assert_eq!(ours.count(), 7);
    }
}

#[test]
fn a_union_has_marks_at_all_of_its_tagged_variants_or_at_none() {
    let union = |second: &str| {
        let variant = |tag: &str, mark: &str| {
            format!(
                r#"{{{mark} "type": "object", "properties": {{"kind": {{"const": "{tag}"}}}}}}"#
            )
        };
        let (first, other) = (
            variant("a", r#""x-content": "input","#),
            variant("b", second),
        );
        let open = r#"{"type": "object"}"#;
        let text = format!(r#"{{"$defs": {{"U": {{"oneOf": [{first}, {other}, {open}]}}}}}}"#);
        Document::parse("base.json", &text).expect("an object")
    };
    let document = union(r#""x-content": "state","#);
    let found = document.contents().expect("valid");
    let variants = vec![("a", Content::Input), ("b", Content::State)];
    assert_eq!(
        found,
        [ContentInfo {
            union: "U",
            variants
        }]
    );
    let marked = document.value().to_string();
    let custom = marked
        .replace(r#""const":"b""#, r#""const":"_b""#)
        .replace("state", "output");
    let custom = custom.replace(r#""x-content":"output","#, "");
    let document = Document::parse("base.json", &custom).expect("an object");
    let found = document.contents().expect("valid");
    assert_eq!(found[0].variants, [("a", Content::Input)]);
    for mark in ["", r#""x-content": "words","#] {
        let error = union(mark).check().expect_err("must fail").to_string();
        let expected = "base.json: /$defs/U/oneOf/1/x-content: expected `input`";
        assert!(error.starts_with(expected), "{error}");
    }
}

/// Returns the schema of the capabilities that a side declares in `initialize`.
fn capabilities(document: &Document, side: Side) -> &Value {
    let name = match side == Side::AGENT {
        true => "AgentCapabilities",
        false => "ClientCapabilities",
    };
    document.def(name).expect("a definition")
}

/// Follows references, also those of an optional value.
fn resolved<'a>(document: &'a Document, schema: &'a Value) -> &'a Value {
    let branches = [schema.get("anyOf"), schema.get("allOf")];
    let branches = branches.into_iter().flatten().filter_map(Value::as_array);
    let reference = branches
        .flatten()
        .chain([schema])
        .find_map(|schema| schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/"));
    match reference {
        Some(name) => document.def(name).expect("a definition"),
        None => schema,
    }
}

#[test]
fn a_capability_is_a_member_of_the_capabilities_of_the_handling_side() {
    let documents = [Document::v1_unstable(), Document::v2_unstable()];
    let mut checked = 0;
    for document in documents.map(|document| document.expect("valid")) {
        let protocol = Protocol::from_document(&document).expect("valid");
        for method in protocol.methods() {
            let facts = method.facts.as_ref();
            let Some(pointer) = facts.and_then(|facts| facts.capability.as_deref()) else {
                continue;
            };
            let mut schema = capabilities(&document, method.side);
            for member in pointer.split('/').skip(1) {
                let properties = &resolved(&document, schema)["properties"];
                schema = &properties[member];
                assert!(schema.is_object(), "{}: {pointer}", method.name);
            }
            checked += 1;
        }
    }
    assert_eq!(checked, 38);
}
