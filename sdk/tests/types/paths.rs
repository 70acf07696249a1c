//! Errors name the exact place.

use acp_sdk::v1::*;

use crate::error;

#[test]
fn of_missing_and_mistyped_members() {
    for (text, path, message) in [
        (r#"{"mcpServers":[]}"#, "/cwd", "required member is missing"),
        (
            r#"{"cwd":"/w"}"#,
            "/mcpServers",
            "required member is missing",
        ),
        (
            r#"{"cwd":5,"mcpServers":[]}"#,
            "/cwd",
            "invalid type: integer `5`, expected a string",
        ),
        (
            r#"{"cwd":"/w","mcpServers":[{"name":"n","command":"c","args":[],"env":{"K":"V"}}]}"#,
            "/mcpServers/0/env",
            "invalid type: object, expected an array",
        ),
        (
            r#"{"cwd":"/w","mcpServers":[{"type":"http","name":"n","url":"u","headers":[{"name":1}]}]}"#,
            "/mcpServers/0/headers/0/name",
            "invalid type: integer `1`, expected a string",
        ),
        (r#"[]"#, "", "invalid type: array, expected an object"),
    ] {
        let error = error::<NewSessionRequest>(text);
        assert_eq!(
            (error.path.as_str(), error.message.as_str()),
            (path, message),
            "{text}"
        );
    }
}

#[test]
fn of_a_version_in_the_wrong_form() {
    let error = error::<InitializeRequest>(r#"{"protocolVersion":"1"}"#);
    assert_eq!(error.path, "/protocolVersion");
    assert_eq!(
        error.to_string(),
        "/protocolVersion: invalid type: string \"1\", expected u16"
    );
    assert_eq!(
        crate::error::<InitializeRequest>(r#"{"protocolVersion":65536}"#).path,
        "/protocolVersion"
    );
}

#[test]
fn inside_unions() {
    for (text, path) in [
        (
            r#"{"sessionId":"s","prompt":[{"text":"t"}]}"#,
            "/prompt/0/type",
        ),
        (
            r#"{"sessionId":"s","prompt":[{"type":5}]}"#,
            "/prompt/0/type",
        ),
        (
            r#"{"sessionId":"s","prompt":[{"type":"text","text":null}]}"#,
            "/prompt/0/text",
        ),
        (r#"{"sessionId":"s","prompt":["t"]}"#, "/prompt/0"),
        (
            r#"{"sessionId":"s","prompt":[{"type":"resource","resource":{"uri":"u"}}]}"#,
            "/prompt/0/resource/text",
        ),
    ] {
        assert_eq!(error::<PromptRequest>(text).path, path, "{text}");
    }
}

#[test]
fn inside_objects_that_share_their_members() {
    let update = r#"{"sessionId":"s","configId":"c","type":"boolean","value":"x"}"#;
    assert_eq!(
        error::<SetSessionConfigOptionRequest>(update).path,
        "/value"
    );
    let form = r#"{"message":"m","mode":"form","requestedSchema":{"properties":{"a/b~":{}}},"sessionId":"s"}"#;
    assert_eq!(
        error::<CreateElicitationRequest>(form).path,
        "/requestedSchema/properties/a~1b~0/type"
    );
    let scope = r#"{"message":"m","mode":"url","elicitationId":"e","url":"u"}"#;
    assert_eq!(error::<CreateElicitationRequest>(scope).path, "/sessionId");
}

#[test]
fn of_text_that_is_no_json() {
    let error = error::<PromptRequest>(r#"{"sessionId":"#);
    assert_eq!(error.path, "");
    assert!(error.message.contains("EOF"), "{error}");
}

#[test]
fn of_a_list_in_place_of_an_object_without_members() {
    assert_eq!(error::<CompactionCapabilities>("[]").path, "");
}

#[test]
fn a_variant_without_a_tag_may_have_a_member_of_that_name() {
    let text = r#"{"id":"a","name":"n","type":null}"#;
    let method: AuthMethod = crate::valid(text);
    assert_eq!(method, AuthMethod::Agent(AuthMethodAgent::new("a", "n")));
    // When it does not fit either, the tag is to blame.
    assert_eq!(error::<AuthMethod>(r#"{"type":5}"#).path, "/type");
}

#[test]
fn what_is_tolerated_is_not_to_blame() {
    // The type of the contents may be odd, so that it is a text decides.
    let text = r#"{"mimeType":[],"text":true,"uri":"u"}"#;
    assert_eq!(error::<EmbeddedResourceResource>(text).path, "/text");
}
